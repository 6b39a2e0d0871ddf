//! Events that the event log refuses for good.

use super::{SqlLedger, failed};
use crate::{Error, ledger::Lease};

impl SqlLedger {
    /// One transaction: a row is waiting or buried, never both and never neither, wherever the process dies.
    pub(super) async fn try_bury_refused(&self, lease: &Lease, id: i64, error: &str) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        if !self.locks_lease(&mut change, lease).await? {
            return Ok(false);
        }
        sqlx::query(
            "INSERT INTO dead_letters (consumer_group, topic, shard, position, key, type, payload, traceparent, epoch, \
                 logged_at_ms, cause, error, attempts, pod, release, buried_at_ms) \
             SELECT '', topic, shard, id, key, type, payload, traceparent, $3, created_at_ms, 'refused', $4, 1, $5, $6, $7 \
             FROM outbox WHERE shard = $1 AND id = $2",
        )
        .bind(i64::from(lease.shard.0))
        .bind(id)
        .bind(lease.epoch)
        .bind(error)
        .bind(&lease.owner)
        .bind(env!("CARGO_PKG_VERSION"))
        .bind(change.now_us.div_euclid(1000))
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        sqlx::query("DELETE FROM outbox WHERE shard = $1 AND id = $2")
            .bind(i64::from(lease.shard.0))
            .bind(id)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.commit(change).await?;
        Ok(true)
    }
}
