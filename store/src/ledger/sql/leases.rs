//! Who may publish which shard.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row as _;

use super::{Change, LOCK_ROW, Row, SqlLedger, failed, row::number};
use crate::{
    Error, Shard,
    ledger::{Lease, ShardLeases, ShardStatus, Share},
};

/// Every shard, of as many as `$1` says.
pub(super) const SHARDS: &str = "WITH RECURSIVE shards (shard) AS \
     (SELECT CAST(0 AS BIGINT) UNION ALL SELECT shard + 1 FROM shards WHERE shard + 1 < $1)";

#[async_trait]
impl ShardLeases for SqlLedger {
    async fn claim(&self, owner: &str, ttl: Duration, share: Share) -> Result<Vec<Lease>, Error> {
        self.retried(|| self.try_claim_shards(owner, ttl, share)).await
    }

    async fn release(&self, owner: &str) -> Result<(), Error> {
        let release = || async {
            let query = sqlx::query("UPDATE shard_leases SET expires_us = 0 WHERE owner = $1").bind(owner);
            query.execute(self.writer()).await.map(|_| ()).map_err(failed)
        };
        self.retried(release).await
    }

    async fn overview(&self) -> Result<Vec<ShardStatus>, Error> {
        let now_us = self.now_us().await?;
        let query = format!(
            "{SHARDS} SELECT shards.shard, leases.owner, coalesce(leases.epoch, 0) AS epoch, \
                 coalesce($2 - leases.since_us, 0) AS held_us, coalesce(leases.expires_us, 0) AS expires_us, \
                 (SELECT count(*) FROM outbox WHERE outbox.shard = shards.shard) AS backlog, \
                 (SELECT min(created_at_ms) FROM outbox WHERE outbox.shard = shards.shard) AS oldest_at_ms \
             FROM shards LEFT JOIN shard_leases AS leases ON leases.shard = shards.shard ORDER BY shards.shard"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(i64::from(self.shards)).bind(now_us);
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| status(row, now_us)).collect()
    }
}

fn status(row: &Row, now_us: i64) -> Result<ShardStatus, Error> {
    let owner: Option<String> = row.try_get("owner").map_err(failed)?;
    let held = row.try_get::<i64, _>("expires_us").map_err(failed)? > now_us;
    let oldest_at_ms: Option<i64> = row.try_get("oldest_at_ms").map_err(failed)?;
    Ok(ShardStatus {
        shard: Shard(number(row, "shard")?),
        owner: owner.filter(|_| held),
        epoch: row.try_get("epoch").map_err(failed)?,
        held_ms: row.try_get::<i64, _>("held_us").map_err(failed)?.div_euclid(1000),
        backlog: row.try_get::<i64, _>("backlog").map_err(failed)?.unsigned_abs(),
        oldest_ms: oldest_at_ms.map(|at| now_us.div_euclid(1000) - at),
    })
}

impl SqlLedger {
    /// Whether a lease stands. Then its row is locked to the end of the change: nobody else can claim the shard before what
    /// is done under it is done.
    pub(super) async fn locks_lease(&self, change: &mut Change, lease: &Lease) -> Result<bool, Error> {
        let held = format!(
            "SELECT 1 FROM shard_leases WHERE shard = $1 AND owner = $2 AND epoch = $3 AND expires_us > $4{LOCK_ROW}"
        );
        let held = sqlx::query(sqlx::AssertSqlSafe(held))
            .bind(i64::from(lease.shard.0))
            .bind(&lease.owner)
            .bind(lease.epoch)
            .bind(change.now_us)
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?;
        Ok(held.is_some())
    }

    async fn try_claim_shards(&self, owner: &str, ttl: Duration, share: Share) -> Result<Vec<Lease>, Error> {
        let mut change = self.begin().await?;
        sqlx::query("UPDATE shard_leases SET expires_us = 0 WHERE owner = $1 AND expires_us > 0 AND shard % $2 <> $3")
            .bind(owner)
            .bind(i64::from(share.of))
            .bind(i64::from(share.place))
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        // A lease that ran out gets a new epoch even when its owner comes back: in between, the shard was anyone's.
        // What another one holds is left out first: an upsert would lock its row only to leave it as it is. All claim in
        // the order of shards, so that no two wait for each other.
        let query = format!(
            "{SHARDS} INSERT INTO shard_leases (shard, owner, epoch, since_us, expires_us) \
             SELECT shard, $2, 1, $4, $3 FROM shards WHERE shard % $5 = $6 AND NOT EXISTS (SELECT 1 FROM shard_leases \
                 AS held WHERE held.shard = shards.shard AND held.owner <> $2 AND held.expires_us > $4) ORDER BY shard \
             ON CONFLICT (shard) DO UPDATE SET \
                 epoch = shard_leases.epoch + CASE WHEN shard_leases.expires_us <= $4 THEN 1 ELSE 0 END, \
                 since_us = CASE WHEN shard_leases.expires_us <= $4 THEN $4 ELSE shard_leases.since_us END, \
                 owner = excluded.owner, expires_us = excluded.expires_us \
             WHERE shard_leases.expires_us <= $4 OR shard_leases.owner = excluded.owner RETURNING shard, epoch"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(i64::from(self.shards))
            .bind(owner)
            .bind(change.now_us + i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 2))
            .bind(change.now_us)
            .bind(i64::from(share.of))
            .bind(i64::from(share.place))
            .fetch_all(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.commit(change).await?;
        let mut leases = rows.iter().map(|row| lease(row, owner)).collect::<Result<Vec<_>, Error>>()?;
        leases.sort_unstable_by_key(|lease| lease.shard);
        Ok(leases)
    }
}

fn lease(row: &Row, owner: &str) -> Result<Lease, Error> {
    let shard = Shard(number(row, "shard")?);
    Ok(Lease { shard, owner: owner.to_owned(), epoch: row.try_get("epoch").map_err(failed)? })
}
