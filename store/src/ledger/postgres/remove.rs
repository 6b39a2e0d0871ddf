//! Published rows are removed in one round trip: a relay does it thousands of times a second.

use super::{Postgres, failed};
use crate::{Error, ledger::Lease};

/// The lease's row is not locked. Whoever claims the shard at this moment may read the rows once more, and send again what the
/// log has: that is allowed. What would not be, to remove a row that the log has not, cannot happen: these have been sent.
const REMOVE: &str = "DELETE FROM outbox WHERE shard = $1 AND id = ANY($2) AND EXISTS (SELECT 1 FROM shard_leases \
    WHERE shard = $1 AND owner = $3 AND epoch = $4 \
        AND expires_us > CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT))";

impl Postgres {
    /// Whether all of these rows were there, and are removed under the lease. When not, some or all may be: the caller asks in
    /// the slow way what that means.
    pub(super) async fn removed_at_once(&self, lease: &Lease, ids: &[i64]) -> Result<bool, Error> {
        let remove = || async {
            let query =
                sqlx::query(REMOVE).bind(i64::from(lease.shard.0)).bind(ids).bind(&lease.owner).bind(lease.epoch);
            query.execute(&self.pool).await.map_err(failed)
        };
        let removed = self.retried(remove).await?.rows_affected();
        Ok(!ids.is_empty() && removed == ids.len() as u64)
    }
}
