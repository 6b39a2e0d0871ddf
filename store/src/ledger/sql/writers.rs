//! The numbers under which ids are minted.

use async_trait::async_trait;
use chassis::id::{Grant, WRITERS_MAX};
use sqlx::Row as _;

use super::{Change, STORE, SqlLedger, failed, row::number};
use crate::{
    Error,
    ledger::{WriterLease, WriterNumbers, WriterTerms},
};

#[async_trait]
impl WriterNumbers for SqlLedger {
    async fn claim(&self, owner: &str, terms: WriterTerms) -> Result<WriterLease, Error> {
        self.retried(|| self.try_claim_writer(owner, terms)).await
    }

    async fn renew(
        &self,
        owner: &str,
        lease: &WriterLease,
        untouched_unix_ms: i64,
        terms: WriterTerms,
    ) -> Result<Option<WriterLease>, Error> {
        self.retried(|| self.try_renew_writer(owner, lease, untouched_unix_ms, terms)).await
    }

    async fn release(&self, owner: &str, lease: &WriterLease, untouched_unix_ms: i64) -> Result<(), Error> {
        let release = || async {
            sqlx::query(
                "UPDATE writer_leases SET expires_us = 0, ceiling_ms = $1 \
                 WHERE writer = $2 AND owner = $3 AND epoch = $4",
            )
            .bind(untouched_unix_ms)
            .bind(i64::from(lease.grant.writer))
            .bind(owner)
            .bind(lease.epoch)
            .execute(self.writer())
            .await
            .map(|_| ())
            .map_err(failed)
        };
        self.retried(release).await
    }
}

impl SqlLedger {
    async fn try_claim_writer(&self, owner: &str, terms: WriterTerms) -> Result<WriterLease, Error> {
        let mut change = self.begin_alone_on("writer_leases").await?;
        let (writer, floor_unix_ms) = free_number(&mut change).await?;
        let floor_unix_ms = floor_unix_ms.max(floor_after_a_clock_step(&mut change).await?);
        let ceiling_unix_ms = change.now_us.div_euclid(1000).max(floor_unix_ms) + millis(terms.window);
        let epoch = sqlx::query_scalar(
            "INSERT INTO writer_leases (writer, owner, epoch, renewed_us, expires_us, ceiling_ms) \
             VALUES ($1, $2, 1, $3, $4, $5) ON CONFLICT (writer) DO UPDATE SET owner = excluded.owner, \
             epoch = writer_leases.epoch + 1, renewed_us = excluded.renewed_us, expires_us = excluded.expires_us, \
             ceiling_ms = excluded.ceiling_ms RETURNING epoch",
        )
        .bind(i64::from(writer))
        .bind(owner)
        .bind(change.now_us)
        .bind(change.now_us + millis(terms.ttl) * 1000)
        .bind(ceiling_unix_ms)
        .fetch_one(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let ledger_unix_ms = change.now_us.div_euclid(1000);
        self.commit(change).await?;
        Ok(WriterLease { grant: Grant { writer, floor_unix_ms, ceiling_unix_ms }, epoch, ledger_unix_ms })
    }

    async fn try_renew_writer(
        &self,
        owner: &str,
        lease: &WriterLease,
        untouched_unix_ms: i64,
        terms: WriterTerms,
    ) -> Result<Option<WriterLease>, Error> {
        let mut change = self.begin().await?;
        let ledger_unix_ms = change.now_us.div_euclid(1000);
        // A clock that went back leaves the minter ahead of it: the window begins where the minter is.
        let ceiling_unix_ms = ledger_unix_ms.max(untouched_unix_ms) + millis(terms.window);
        let ceiling: Option<i64> = sqlx::query_scalar(
            "UPDATE writer_leases SET renewed_us = $1, expires_us = $2, \
             ceiling_ms = CASE WHEN ceiling_ms < $3 THEN $3 ELSE ceiling_ms END \
             WHERE writer = $4 AND owner = $5 AND epoch = $6 AND expires_us > $1 RETURNING ceiling_ms",
        )
        .bind(change.now_us)
        .bind(change.now_us + millis(terms.ttl) * 1000)
        .bind(ceiling_unix_ms)
        .bind(i64::from(lease.grant.writer))
        .bind(owner)
        .bind(lease.epoch)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let Some(ceiling_unix_ms) = ceiling else { return Ok(None) };
        self.commit(change).await?;
        let grant = Grant { ceiling_unix_ms, ..lease.grant };
        Ok(Some(WriterLease { grant, epoch: lease.epoch, ledger_unix_ms }))
    }
}

/// A number that nobody holds and the millisecond where its next owner begins: one whose ceiling has passed, else a fresh
/// one, so that nobody waits for a dead pod's ceiling.
async fn free_number(change: &mut Change) -> Result<(u16, i64), Error> {
    let used = sqlx::query(
        "SELECT writer, ceiling_ms FROM writer_leases WHERE expires_us <= $1 AND ceiling_ms <= $2 ORDER BY writer LIMIT 1",
    )
    .bind(change.now_us)
    .bind(change.now_us.div_euclid(1000))
    .fetch_optional(&mut *change.transaction)
    .await
    .map_err(failed)?;
    if let Some(row) = used {
        return Ok((number(&row, "writer")?, row.try_get("ceiling_ms").map_err(failed)?));
    }
    let fresh: i64 = sqlx::query_scalar("SELECT coalesce(max(writer) + 1, 0) FROM writer_leases")
        .fetch_one(&mut *change.transaction)
        .await
        .map_err(failed)?;
    match u16::try_from(fresh).ok().filter(|writer| *writer < WRITERS_MAX) {
        Some(writer) => Ok((writer, 0)),
        None => Err(Error::Unavailable { store: STORE, cause: format!("all {WRITERS_MAX} writer numbers are held") }),
    }
}

/// When somebody renewed at a later time than now, the ledger's clock went back. New ids then begin above every id that
/// was minted before, so that they still increase.
async fn floor_after_a_clock_step(change: &mut Change) -> Result<i64, Error> {
    sqlx::query_scalar("SELECT CASE WHEN max(renewed_us) > $1 THEN max(ceiling_ms) ELSE 0 END FROM writer_leases")
        .bind(change.now_us)
        .fetch_one(&mut *change.transaction)
        .await
        .map(|floor: Option<i64>| floor.unwrap_or_default())
        .map_err(failed)
}

fn millis(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4000)
}
