//! The outbox.

use async_trait::async_trait;
use chassis::failpoint;
use proto::event::Topic;
use sqlx::{QueryBuilder, Row as _};
use tokio::sync::watch;

use super::{Row, STORE, SqlLedger, failed, leases::SHARDS, push_is_one_of, row::number};
use crate::{
    Error, Shard,
    error::damaged,
    ledger::{Lease, Outbox, OutboxRow},
};

#[async_trait]
impl Outbox for SqlLedger {
    async fn oldest(&self, shard: Shard, limit: u32) -> Result<Vec<OutboxRow>, Error> {
        let query = sqlx::query(
            "SELECT id, topic, key, type, payload, traceparent, created_at_ms FROM outbox WHERE shard = $1 \
             ORDER BY id LIMIT $2",
        )
        .bind(i64::from(shard.0))
        .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(outbox_row).collect()
    }

    async fn remove(&self, lease: &Lease, ids: &[i64]) -> Result<bool, Error> {
        if self.removed_at_once(lease, ids).await? {
            return Ok(true);
        }
        self.retried(|| self.try_remove(lease, ids)).await
    }

    async fn bury(&self, lease: &Lease, id: i64, error: &str) -> Result<bool, Error> {
        self.retried(|| self.try_bury_refused(lease, id, error)).await
    }

    async fn marks(&self, leases: &[Lease]) -> Result<Vec<(Shard, i64)>, Error> {
        self.retried(|| self.try_marks(leases)).await
    }

    async fn waiting(&self) -> Result<Vec<Shard>, Error> {
        // A look at each shard's first row. DISTINCT would read all rows of a long backlog, and so would EXISTS, which
        // PostgreSQL turns into a join.
        let query = format!(
            "{SHARDS} SELECT shard FROM shards WHERE (SELECT id FROM outbox WHERE outbox.shard = shards.shard \
                 ORDER BY id LIMIT 1) IS NOT NULL ORDER BY shard"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(i64::from(self.shards));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "shard").map(Shard)).collect()
    }

    async fn backlog(&self) -> Result<u64, Error> {
        let query = sqlx::query_scalar("SELECT count(*) FROM outbox");
        let rows: i64 = self.answered(query.fetch_one(self.reader())).await?;
        Ok(rows.unsigned_abs())
    }

    fn wakeups(&self) -> watch::Receiver<u64> {
        self.wakeups.subscribe()
    }
}

impl SqlLedger {
    async fn try_remove(&self, lease: &Lease, ids: &[i64]) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        if !self.locks_lease(&mut change, lease).await? && !failpoint::is_on("outbox.removes_without_lease") {
            return Ok(false);
        }
        let mut query = QueryBuilder::new("DELETE FROM outbox WHERE shard = ");
        query.push_bind(i64::from(lease.shard.0)).push(" AND id");
        push_is_one_of(&mut query, ids.to_vec());
        query.build().execute(&mut *change.transaction).await.map_err(failed)?;
        self.commit(change).await?;
        Ok(true)
    }
}

fn outbox_row(row: &Row) -> Result<OutboxRow, Error> {
    let topic: &str = row.try_get("topic").map_err(failed)?;
    Ok(OutboxRow {
        id: row.try_get("id").map_err(failed)?,
        topic: Topic::named(topic).ok_or_else(|| damaged(STORE, format_args!("topic {topic:?}")))?,
        key: row.try_get("key").map_err(failed)?,
        kind: row.try_get("type").map_err(failed)?,
        payload: row.try_get::<Vec<u8>, _>("payload").map_err(failed)?.into(),
        traceparent: row.try_get("traceparent").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
    })
}
