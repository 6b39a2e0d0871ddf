//! A look at the outbox that knows which changes are open: their rows cannot be seen yet.

use sqlx::{Postgres as Driver, pool::PoolConnection};

use super::{CLOCK, Postgres, STORE, connect::APPLICATION, failed};
use crate::Error;

/// Our open transactions: when the oldest began, and how many of our sessions do not show whether they are in one; and the
/// last id of a row.
const OPEN: &str = "SELECT CAST(extract(epoch FROM min(xact_start)) * 1000000 AS BIGINT), \
    count(*) FILTER (WHERE query = '<insufficient privilege>' OR state = 'disabled'), \
    (SELECT last_value FROM outbox_ids) FROM pg_stat_activity \
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND starts_with(application_name, $1)";

/// A connection, and what was known when the look began.
pub(super) struct Look {
    /// Where to go on looking. Not in a transaction: each statement sees what is committed by then.
    pub(super) connection: PoolConnection<Driver>,
    /// The ledger's clock, before anything else was looked at.
    pub(super) now_us: i64,
    /// When the oldest open change began.
    pub(super) open_since_us: Option<i64>,
}

impl Postgres {
    /// First the clock, then the open transactions, then, by the caller, the rows. A change that begins after the second
    /// step carries a later time than the first; one that ends before it is seen by the third, because a transaction is
    /// visible to others before it is off the list.
    pub(super) async fn look(&self) -> Result<Look, Error> {
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        let now_us = sqlx::query_scalar(CLOCK).fetch_one(&mut *connection).await.map_err(failed)?;
        let open = sqlx::query_as(OPEN).bind(APPLICATION).fetch_one(&mut *connection).await;
        let (open_since_us, unknown, last_id): (Option<i64>, i64, i64) = open.map_err(failed)?;
        self.heads.check(last_id);
        if unknown > 0 {
            let cause = format!(
                "{unknown} sessions of freshet hide their transactions: connect as one role, with track_activities on"
            );
            return Err(Error::Unavailable { store: STORE, cause });
        }
        Ok(Look { connection, now_us, open_since_us })
    }
}
