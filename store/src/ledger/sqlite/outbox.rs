//! The outbox in SQLite.

use async_trait::async_trait;
use proto::event::Topic;
use sqlx::{QueryBuilder, Row as _, sqlite::SqliteRow};
use tokio::sync::watch;

use super::{STORE, Sqlite, failed};
use crate::{
    Error, Shard,
    error::damaged,
    ledger::{Lease, Outbox, OutboxRow},
};

#[async_trait]
impl Outbox for Sqlite {
    async fn oldest(&self, shard: Shard, limit: u32) -> Result<Vec<OutboxRow>, Error> {
        let rows = sqlx::query(
            "SELECT id, topic, key, type, payload, traceparent FROM outbox WHERE shard = $1 ORDER BY id LIMIT $2",
        )
        .bind(i64::from(shard.0))
        .bind(limit)
        .fetch_all(self.reader())
        .await
        .map_err(failed)?;
        rows.iter().map(outbox_row).collect()
    }

    async fn remove(&self, lease: &Lease, ids: &[i64]) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        let held = sqlx::query(
            "SELECT 1 FROM shard_leases WHERE shard = $1 AND owner = $2 AND epoch = $3 AND expires_us > $4",
        )
        .bind(i64::from(lease.shard.0))
        .bind(&lease.owner)
        .bind(lease.epoch)
        .bind(change.now_us)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        if held.is_none() {
            return Ok(false);
        }
        let mut query = QueryBuilder::new("DELETE FROM outbox WHERE id IN (");
        let mut list = query.separated(", ");
        for id in ids {
            list.push_bind(*id);
        }
        query.push(")");
        query.build().execute(&mut *change.transaction).await.map_err(failed)?;
        self.commit(change).await?;
        Ok(true)
    }

    async fn waiting(&self) -> Result<Vec<Shard>, Error> {
        let shards: Vec<u16> = sqlx::query_scalar("SELECT DISTINCT shard FROM outbox ORDER BY shard")
            .fetch_all(self.reader())
            .await
            .map_err(failed)?;
        Ok(shards.into_iter().map(Shard).collect())
    }

    async fn backlog(&self) -> Result<u64, Error> {
        let rows: i64 =
            sqlx::query_scalar("SELECT count(*) FROM outbox").fetch_one(self.reader()).await.map_err(failed)?;
        Ok(rows.unsigned_abs())
    }

    fn wakeups(&self) -> watch::Receiver<u64> {
        self.committed.subscribe()
    }
}

fn outbox_row(row: &SqliteRow) -> Result<OutboxRow, Error> {
    let topic: &str = row.try_get("topic").map_err(failed)?;
    Ok(OutboxRow {
        id: row.try_get("id").map_err(failed)?,
        topic: Topic::named(topic).ok_or_else(|| damaged(STORE, format_args!("topic {topic:?}")))?,
        key: row.try_get("key").map_err(failed)?,
        kind: row.try_get("type").map_err(failed)?,
        payload: row.try_get::<Vec<u8>, _>("payload").map_err(failed)?.into(),
        traceparent: row.try_get("traceparent").map_err(failed)?,
    })
}
