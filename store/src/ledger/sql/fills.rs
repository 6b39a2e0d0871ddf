//! How far the archive was filled, and the rows that it is filled with.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row as _;

use super::{
    ESTIMATE, Row, STORE, SqlLedger, failed,
    posts::{COLUMNS, post},
    row::number,
};
use crate::{
    Error,
    archive::{Edge, Generation},
    error::damaged,
    ledger::{ArchiveFills, Cursor, FillLease, FillStatus, Post},
};

#[async_trait]
impl ArchiveFills for SqlLedger {
    async fn completed(&self) -> Result<Option<Generation>, Error> {
        let query = sqlx::query_scalar("SELECT generation FROM archive_fills WHERE complete");
        let found: Option<i64> = self.answered(query.fetch_optional(self.reader())).await?;
        Ok(found.map(Generation::new))
    }

    async fn status(&self, generation: Generation) -> Result<Option<FillStatus>, Error> {
        let now_us = self.now_us().await?;
        let query = sqlx::query("SELECT * FROM archive_fills WHERE generation = $1").bind(generation.get());
        let row = self.answered(query.fetch_optional(self.reader())).await?;
        row.as_ref().map(|row| status(row, now_us)).transpose()
    }

    async fn claim(&self, generation: Generation, owner: &str, ttl: Duration) -> Result<Option<FillLease>, Error> {
        self.retried(|| self.try_claim_fill(generation, owner, ttl)).await
    }

    async fn checkpoint(&self, lease: &FillLease, ttl: Duration) -> Result<bool, Error> {
        self.retried(|| self.try_keep(lease, false, micros(ttl))).await
    }

    async fn finish(&self, lease: &FillLease) -> Result<bool, Error> {
        self.retried(|| self.try_keep(lease, true, 0)).await
    }

    async fn release(&self, lease: &FillLease) -> Result<(), Error> {
        let release = || async {
            sqlx::query("UPDATE archive_fills SET expires_us = 0 WHERE generation = $1 AND owner = $2 AND epoch = $3")
                .bind(lease.generation.get())
                .bind(&lease.owner)
                .bind(lease.epoch)
                .execute(self.writer())
                .await
                .map(|_| ())
                .map_err(failed)
        };
        self.retried(release).await
    }

    async fn begin_again(&self, generation: Generation) -> Result<bool, Error> {
        let (part, first, second) = columns(Cursor::BEGINNING);
        let begin = || async {
            sqlx::query(
                "UPDATE archive_fills SET complete = FALSE, part = $2, after_first = $3, after_second = $4, \
                 rows_done = 0, expires_us = 0 WHERE generation = $1 AND complete",
            )
            .bind(generation.get())
            .bind(part)
            .bind(first)
            .bind(second)
            .execute(self.writer())
            .await
            .map(|done| done.rows_affected() > 0)
            .map_err(failed)
        };
        self.retried(begin).await
    }

    async fn posts_after(&self, id: i64, limit: u32) -> Result<Vec<Post>, Error> {
        let query = format!(
            "SELECT {COLUMNS} FROM posts WHERE id > $1 AND deleted_at_ms IS NULL AND visibility < 2 ORDER BY id LIMIT $2"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(id).bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(post).collect()
    }

    async fn follows_after(&self, (follower, followee): (i64, i64), limit: u32) -> Result<Vec<Edge>, Error> {
        let query = sqlx::query(
            "SELECT follower, followee, active, version FROM follows WHERE (follower, followee) > ($1, $2) \
             ORDER BY follower, followee LIMIT $3",
        )
        .bind(follower)
        .bind(followee)
        .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(edge).collect()
    }
}

impl SqlLedger {
    async fn try_claim_fill(
        &self,
        generation: Generation,
        owner: &str,
        ttl: Duration,
    ) -> Result<Option<FillLease>, Error> {
        let mut change = self.begin().await?;
        sqlx::query("DELETE FROM archive_fills WHERE generation <> $1")
            .bind(generation.get())
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        let rows: i64 = sqlx::query_scalar(ESTIMATE).fetch_one(&mut *change.transaction).await.map_err(failed)?;
        let (part, first, second) = columns(Cursor::BEGINNING);
        let row = sqlx::query(
            "INSERT INTO archive_fills (generation, complete, part, after_first, after_second, rows_done, \
                 rows_estimated, owner, epoch, expires_us, updated_us) \
             VALUES ($1, FALSE, $2, $3, $4, 0, $5, $6, 1, $7, $8) \
             ON CONFLICT (generation) DO UPDATE SET rows_estimated = excluded.rows_estimated, owner = excluded.owner, \
                 epoch = archive_fills.epoch + 1, expires_us = excluded.expires_us, updated_us = excluded.updated_us \
             WHERE NOT archive_fills.complete \
                 AND (archive_fills.expires_us <= $8 OR archive_fills.owner = excluded.owner) \
             RETURNING epoch, part, after_first, after_second, rows_done",
        )
        .bind(generation.get())
        .bind(part)
        .bind(first)
        .bind(second)
        .bind(rows)
        .bind(owner)
        .bind(change.now_us + micros(ttl))
        .bind(change.now_us)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        self.commit(change).await?;
        row.map(|row| {
            let epoch = row.try_get("epoch").map_err(failed)?;
            let (cursor, rows_done) = (cursor(&row)?, number(&row, "rows_done")?);
            Ok(FillLease { generation, owner: owner.to_owned(), epoch, cursor, rows_done })
        })
        .transpose()
    }

    /// Writes down where a fill is, if its lease still stands, and for how much longer it does.
    async fn try_keep(&self, lease: &FillLease, complete: bool, ttl_us: i64) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        let (part, first, second) = columns(lease.cursor);
        let kept = sqlx::query(
            "UPDATE archive_fills SET complete = $4, part = $5, after_first = $6, after_second = $7, rows_done = $8, \
                 expires_us = $9, updated_us = $10 \
             WHERE generation = $1 AND owner = $2 AND epoch = $3 AND expires_us > $10 AND NOT complete",
        )
        .bind(lease.generation.get())
        .bind(&lease.owner)
        .bind(lease.epoch)
        .bind(complete)
        .bind(part)
        .bind(first)
        .bind(second)
        .bind(i64::try_from(lease.rows_done).unwrap_or(i64::MAX))
        .bind(change.now_us + ttl_us)
        .bind(change.now_us)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        self.commit(change).await?;
        Ok(kept.rows_affected() > 0)
    }
}

fn status(row: &Row, now_us: i64) -> Result<FillStatus, Error> {
    let complete: bool = row.try_get("complete").map_err(failed)?;
    let held = row.try_get::<i64, _>("expires_us").map_err(failed)? > now_us;
    let owner: String = row.try_get("owner").map_err(failed)?;
    Ok(FillStatus {
        complete,
        cursor: cursor(row)?,
        rows_done: number(row, "rows_done")?,
        rows_estimated: number(row, "rows_estimated")?,
        owner: (held && !complete).then_some(owner),
    })
}

fn columns(cursor: Cursor) -> (&'static str, i64, i64) {
    match cursor {
        Cursor::Posts(id) => ("posts", id, 0),
        Cursor::Follows(follower, followee) => ("follows", follower, followee),
    }
}

fn cursor(row: &Row) -> Result<Cursor, Error> {
    let [first, second] = ["after_first", "after_second"].map(|column| row.try_get(column).map_err(failed));
    match row.try_get("part").map_err(failed)? {
        "posts" => Ok(Cursor::Posts(first?)),
        "follows" => Ok(Cursor::Follows(first?, second?)),
        other => Err(damaged(STORE, format_args!("part {other:?}"))),
    }
}

pub(super) fn edge(row: &Row) -> Result<Edge, Error> {
    Ok(Edge {
        follower: number(row, "follower")?,
        followee: number(row, "followee")?,
        active: row.try_get("active").map_err(failed)?,
        version: row.try_get("version").map_err(failed)?,
    })
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 2)
}
