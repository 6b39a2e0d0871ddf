//! The outbox.

use async_trait::async_trait;
use chassis::failpoint;
use proto::event::Topic;
use sqlx::{QueryBuilder, Row as _};
use tokio::sync::watch;

use super::{Row, STORE, SqlLedger, failed, oldest_rows, push_is_one_of, row::number};
use crate::{
    Error, Shard,
    error::damaged,
    ledger::{Lease, Outbox, OutboxRow, Read, ReadFrom},
};

/// What is read of a row.
pub(super) const COLUMNS: &str = "outbox.id, outbox.shard, outbox.topic, outbox.key, outbox.type, outbox.payload, \
    outbox.traceparent, outbox.created_at_ms";

#[async_trait]
impl Outbox for SqlLedger {
    async fn read(&self, from: &[ReadFrom], limit: u32, had: &[i64]) -> Result<Read, Error> {
        if from.is_empty() {
            return Ok(Read { rows: Vec::new(), decided: 0 });
        }
        let sight = self.heads.see();
        let begin = |from: &ReadFrom| (from.shard, self.heads.of(from.shard).max(from.after + 1));
        let begins: Vec<_> = from.iter().map(begin).collect();
        let mut query = oldest_rows(&begins, i64::from(limit), had.to_vec());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        let mut rows = rows.iter().map(outbox_row).collect::<Result<Vec<_>, Error>>()?;
        rows.sort_unstable_by_key(|row| (row.shard, row.id));
        for ReadFrom { shard, kept, .. } in from {
            let found = rows.iter().find(|row| row.shard == *shard).map(|row| row.id);
            // What the reader has beyond may be of any of its shards.
            let first = kept.iter().chain(had).copied().chain(found).min();
            self.heads.found(*shard, sight, first);
        }
        Ok(Read { rows, decided: sight.horizon })
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
        shard: Shard(number(row, "shard")?),
        topic: Topic::named(topic).ok_or_else(|| damaged(STORE, format_args!("topic {topic:?}")))?,
        key: row.try_get("key").map_err(failed)?,
        kind: row.try_get("type").map_err(failed)?,
        payload: row.try_get::<Vec<u8>, _>("payload").map_err(failed)?.into(),
        traceparent: row.try_get("traceparent").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
    })
}
