//! Published rows are removed in one round trip: a relay does it thousands of times a second.

use super::{Postgres, failed};
use crate::{
    Error,
    ledger::{Lease, heads::Sight},
};

/// The lease's row is locked to the end: a relay that claims the shard at this moment, or gives it up, waits until these rows
/// are gone.
///
/// It tells besides what it sees of the ledger, by which reads know where to begin. A transaction has its number before it is
/// given an id of a row (see the migration of the ids).
const REMOVE: &str = "WITH held AS MATERIALIZED ( \
        SELECT 1 FROM shard_leases WHERE shard = $1 AND owner = $3 AND epoch = $4 \
            AND expires_us > CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT) FOR SHARE), \
    removed AS (DELETE FROM outbox WHERE shard = $1 AND id = ANY($2) AND EXISTS (SELECT 1 FROM held) RETURNING 1) \
    SELECT (SELECT count(*) FROM removed), (SELECT last_value FROM outbox_ids), \
        CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT), \
        CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)";

impl Postgres {
    /// Whether all of these rows were there, and are removed under the lease. When not, some or all may be: the caller asks in
    /// the slow way what that means.
    pub(super) async fn removed_at_once(&self, lease: &Lease, ids: &[i64]) -> Result<bool, Error> {
        let remove = || async {
            let removal = self.heads.removal_begins();
            let query =
                sqlx::query_as(REMOVE).bind(i64::from(lease.shard.0)).bind(ids).bind(&lease.owner).bind(lease.epoch);
            let seen: (i64, i64, i64, i64) = query.fetch_one(&self.pool).await.map_err(failed)?;
            let (removed, last_id, transaction, open_from) = seen;
            self.heads.removal_saw(removal, Sight { last_id, transaction, open_from });
            Ok(removed.unsigned_abs())
        };
        let removed = self.retried(remove).await?;
        Ok(!ids.is_empty() && removed == ids.len() as u64)
    }
}
