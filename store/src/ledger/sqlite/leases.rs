//! Who may publish which shard, in SQLite.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row as _;

use super::{Sqlite, failed};
use crate::{
    Error, Shard,
    ledger::{Lease, ShardLeases},
};

#[async_trait]
impl ShardLeases for Sqlite {
    async fn claim(&self, owner: &str, ttl: Duration) -> Result<Vec<Lease>, Error> {
        let mut change = self.begin().await?;
        let expires_us = change.now_us + i64::try_from(ttl.as_micros()).unwrap_or(i64::MAX / 2);
        for shard in 0..self.shards {
            // A lease that ran out gets a new epoch even when its owner comes back: in between, the shard was anyone's.
            sqlx::query(
                "INSERT INTO shard_leases (shard, owner, epoch, expires_us) VALUES ($1, $2, 1, $3) \
                 ON CONFLICT (shard) DO UPDATE SET \
                     epoch = epoch + (expires_us <= $4), owner = excluded.owner, expires_us = excluded.expires_us \
                 WHERE expires_us <= $4 OR owner = excluded.owner",
            )
            .bind(i64::from(shard))
            .bind(owner)
            .bind(expires_us)
            .bind(change.now_us)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        }
        let rows =
            sqlx::query("SELECT shard, epoch FROM shard_leases WHERE owner = $1 AND expires_us > $2 ORDER BY shard")
                .bind(owner)
                .bind(change.now_us)
                .fetch_all(&mut *change.transaction)
                .await
                .map_err(failed)?;
        self.commit(change).await?;
        let lease = |row: &sqlx::sqlite::SqliteRow| {
            let shard = Shard(row.try_get("shard").map_err(failed)?);
            Ok(Lease { shard, owner: owner.to_owned(), epoch: row.try_get("epoch").map_err(failed)? })
        };
        rows.iter().map(lease).collect()
    }

    async fn release(&self, owner: &str) -> Result<(), Error> {
        sqlx::query("UPDATE shard_leases SET expires_us = 0 WHERE owner = $1")
            .bind(owner)
            .execute(self.writer())
            .await
            .map_err(failed)?;
        Ok(())
    }
}
