//! Jobs: rows with a lease.

use std::time::Duration;

use async_trait::async_trait;
use proto::UserId;
use sqlx::Row as _;
use tokio::sync::watch;

use super::{Change, LOCK_FREE_ROW, Row, STORE, SqlLedger, failed, row::number};
use crate::{
    Error,
    error::damaged,
    ledger::{Job, JobKind, Jobs},
};

#[async_trait]
impl Jobs for SqlLedger {
    async fn claim(&self, owner: &str, ttl: Duration) -> Result<Option<Job>, Error> {
        // A look first: it costs less than a claim that finds nothing.
        let now_us = self.now_us().await?;
        let free = format!("SELECT 1 FROM jobs WHERE expires_us <= $1 AND {} LIMIT 1", is_known());
        let free = sqlx::query(sqlx::AssertSqlSafe(free)).bind(now_us);
        if self.answered(free.fetch_optional(self.reader())).await?.is_none() {
            return Ok(None);
        }
        self.retried(|| self.try_claim_job(owner, ttl)).await
    }

    async fn advance(&self, job: &Job, step: i64) -> Result<bool, Error> {
        self.retried(|| self.try_give_back(job, step, Duration::ZERO)).await
    }

    async fn postpone(&self, job: &Job, span: Duration) -> Result<(), Error> {
        self.retried(|| self.try_give_back(job, job.step, span)).await.map(|_| ())
    }

    async fn finish(&self, job: &Job) -> Result<bool, Error> {
        self.retried(|| self.try_finish_job(job)).await
    }

    async fn waiting(&self) -> Result<u64, Error> {
        let query = sqlx::query("SELECT count(*) AS waiting FROM jobs");
        number(&self.answered(query.fetch_one(self.reader())).await?, "waiting")
    }

    fn made(&self) -> watch::Receiver<u64> {
        self.jobs_made.subscribe()
    }
}

impl SqlLedger {
    async fn try_claim_job(&self, owner: &str, ttl: Duration) -> Result<Option<Job>, Error> {
        let mut change = self.begin().await?;
        // Who finds a job locked takes another one instead of waiting for it.
        let query = format!(
            "UPDATE jobs SET owner = $1, epoch = epoch + 1, expires_us = $2, turn_us = $3 WHERE id = \
                 (SELECT id FROM jobs WHERE expires_us <= $3 AND {} ORDER BY turn_us, id LIMIT 1{LOCK_FREE_ROW}) \
             RETURNING *",
            is_known()
        );
        let row = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(owner)
            .bind(change.now_us + micros(ttl))
            .bind(change.now_us)
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.commit(change).await?;
        row.as_ref().map(job).transpose()
    }

    /// Under the lease: who lost it writes nothing.
    async fn try_give_back(&self, job: &Job, step: i64, span: Duration) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        let given = sqlx::query(
            "UPDATE jobs SET step = $4, expires_us = $5 WHERE id = $1 AND owner = $2 AND epoch = $3 AND expires_us > $6",
        )
        .bind(job.id)
        .bind(&job.owner)
        .bind(job.epoch)
        .bind(step)
        .bind(change.now_us + micros(span))
        .bind(change.now_us)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        self.commit(change).await?;
        Ok(given.rows_affected() > 0)
    }

    async fn try_finish_job(&self, job: &Job) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        let finished = end_job(&mut change, job).await?;
        self.commit(change).await?;
        Ok(finished)
    }
}

/// Writes a job, with the change that needs it.
pub(super) async fn begin_job(change: &mut Change, kind: JobKind, subject: UserId, version: i64) -> Result<(), Error> {
    sqlx::query("INSERT INTO jobs (kind, subject, version, turn_us, created_at_ms) VALUES ($1, $2, $3, $4, $5)")
        .bind(kind.name())
        .bind(subject.get())
        .bind(version)
        .bind(change.now_us)
        .bind(change.now_us.div_euclid(1000))
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
    change.jobs += 1;
    Ok(())
}

/// Takes a job away, if its lease still stands.
pub(super) async fn end_job(change: &mut Change, job: &Job) -> Result<bool, Error> {
    let ended = sqlx::query("DELETE FROM jobs WHERE id = $1 AND owner = $2 AND epoch = $3 AND expires_us > $4")
        .bind(job.id)
        .bind(&job.owner)
        .bind(job.epoch)
        .bind(change.now_us);
    let ended = ended.execute(&mut *change.transaction).await.map_err(failed)?;
    Ok(ended.rows_affected() > 0)
}

/// A job of a newer release is left to its pods.
fn is_known() -> String {
    let kinds = JobKind::ALL.map(|kind| format!("'{}'", kind.name()));
    format!("kind IN ({})", kinds.join(", "))
}

fn job(row: &Row) -> Result<Job, Error> {
    let kind: String = row.try_get("kind").map_err(failed)?;
    Ok(Job {
        id: row.try_get("id").map_err(failed)?,
        kind: JobKind::named(&kind).ok_or_else(|| damaged(STORE, format_args!("a job of kind {kind:?}")))?,
        subject: number(row, "subject")?,
        version: row.try_get("version").map_err(failed)?,
        step: row.try_get("step").map_err(failed)?,
        owner: row.try_get("owner").map_err(failed)?,
        epoch: row.try_get("epoch").map_err(failed)?,
    })
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 2)
}
