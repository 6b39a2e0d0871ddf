//! Who follows whom.

use async_trait::async_trait;
use proto::UserId;

use super::{SqlLedger, accounts::require_users, failed, row::number};
use crate::{
    Error,
    ledger::{Event, Graph},
};

#[async_trait]
impl Graph for SqlLedger {
    async fn follow(&self, follower: UserId, followee: UserId, event: Event<'_, ()>) -> Result<bool, Error> {
        self.retried(|| self.try_follow(follower, followee, &event)).await
    }

    async fn followees(&self, reader: UserId) -> Result<Vec<UserId>, Error> {
        let query = sqlx::query("SELECT followee FROM follows WHERE follower = $1 AND active").bind(reader.get());
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "followee")).collect()
    }

    async fn followers(&self, author: UserId, after: Option<UserId>, limit: u32) -> Result<Vec<UserId>, Error> {
        let query = sqlx::query(
            "SELECT follower FROM follows WHERE followee = $1 AND follower > $2 AND active ORDER BY follower LIMIT $3",
        )
        .bind(author.get())
        .bind(after.map_or(0, UserId::get))
        .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "follower")).collect()
    }
}

impl SqlLedger {
    async fn try_follow(&self, follower: UserId, followee: UserId, event: &Event<'_, ()>) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [follower, followee]).await?;
        // One statement: of many at once, the row's lock lets one through, and the others then find it active.
        let version: Option<i64> = sqlx::query_scalar(
            "INSERT INTO follows (follower, followee, active, version) VALUES ($1, $2, TRUE, $3) \
             ON CONFLICT (follower, followee) DO UPDATE SET active = TRUE, version = \
                 CASE WHEN follows.version < excluded.version THEN excluded.version ELSE follows.version + 1 END \
             WHERE NOT follows.active RETURNING version",
        )
        .bind(follower.get())
        .bind(followee.get())
        .bind(change.now_us)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let Some(version) = version else { return Ok(false) };
        self.write_event(&mut change, event, version, &()).await?;
        self.commit(change).await?;
        Ok(true)
    }
}
