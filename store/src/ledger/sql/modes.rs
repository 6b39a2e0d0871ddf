//! How authors' posts reach their followers, and how that changes.

use async_trait::async_trait;
use proto::UserId;
use sqlx::{QueryBuilder, Row as _};

use super::{
    Change, Row, STORE, SqlLedger, failed,
    jobs::{begin_job, end_job},
    push_is_one_of,
    row::number,
};
use crate::{
    Error,
    error::damaged,
    ledger::{AuthorMode, Event, GraphChange, Job, JobKind, Mode, Modes},
};

#[async_trait]
impl Modes for SqlLedger {
    async fn modes(&self, authors: &[UserId]) -> Result<Vec<AuthorMode>, Error> {
        if authors.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(
            "SELECT user_id, mode, mode_version FROM user_counters WHERE mode_version > 0 AND user_id",
        );
        push_is_one_of(&mut query, authors.iter().map(|author| author.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(author_mode).collect()
    }

    async fn merged_followees(&self, reader: UserId) -> Result<Vec<AuthorMode>, Error> {
        // From the few authors who are not simply pushed, not from the many whom the reader may follow.
        let query = sqlx::query(
            "SELECT user_id, mode, mode_version FROM user_counters JOIN follows ON followee = user_id \
             WHERE mode <> 0 AND mode <> $2 AND follower = $1 AND active",
        )
        .bind(reader.get())
        .bind(Mode::Falling.number());
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(author_mode).collect()
    }

    async fn settle(&self, job: &Job, event: Event<'_, GraphChange>) -> Result<bool, Error> {
        self.retried(|| self.try_settle_mode(job, &event)).await
    }
}

impl SqlLedger {
    /// Writes that an author crosses a threshold, where this number of followers makes it so, with the job that tells every
    /// home. Under the lock of the author's numbers.
    pub(super) async fn cross(
        &self,
        change: &mut Change,
        before: AuthorMode,
        followers: i64,
        (celebrity_followers, event): (u32, &Event<'_, GraphChange>),
    ) -> Result<(), Error> {
        let Some(mode) = before.mode.crossed(followers, celebrity_followers) else { return Ok(()) };
        let after = AuthorMode { mode, version: change.now_us.max(before.version + 1), ..before };
        let kind = if mode == Mode::Rising { JobKind::MarkPull } else { JobKind::MergePulled };
        begin_job(change, kind, after.author, after.version).await?;
        set_mode(change, after).await?;
        self.write_event(change, event, after.version, &GraphChange::ModeChanged(after.author, mode)).await
    }

    async fn try_settle_mode(&self, job: &Job, event: &Event<'_, GraphChange>) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        if !end_job(&mut change, job).await? {
            return Ok(false);
        }
        let query = format!(
            "SELECT user_id, mode, mode_version FROM user_counters WHERE user_id = $1 AND mode_version = $2{}",
            super::LOCK_ROW
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(job.subject.get())
            .bind(job.version)
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?;
        if let Some(before) = row.as_ref().map(author_mode).transpose()? {
            let version = change.now_us.max(before.version + 1);
            let after = AuthorMode { mode: before.mode.settled(), version, ..before };
            set_mode(&mut change, after).await?;
            self.write_event(&mut change, event, version, &GraphChange::ModeChanged(after.author, after.mode)).await?;
        }
        self.commit(change).await?;
        Ok(true)
    }
}

async fn set_mode(change: &mut Change, after: AuthorMode) -> Result<(), Error> {
    let set = sqlx::query("UPDATE user_counters SET mode = $2, mode_version = $3 WHERE user_id = $1")
        .bind(after.author.get())
        .bind(after.mode.number())
        .bind(after.version);
    set.execute(&mut *change.transaction).await.map(|_| ()).map_err(failed)
}

/// A mode, of a row of the counters.
pub(super) fn author_mode(row: &Row) -> Result<AuthorMode, Error> {
    Ok(AuthorMode {
        author: number(row, "user_id")?,
        mode: mode(row)?,
        version: row.try_get("mode_version").map_err(failed)?,
    })
}

pub(super) fn mode(row: &Row) -> Result<Mode, Error> {
    let number: i64 = row.try_get("mode").map_err(failed)?;
    Mode::numbered(number).ok_or_else(|| damaged(STORE, format_args!("mode = {number}")))
}
