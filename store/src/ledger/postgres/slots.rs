//! The outbox's slots. Rows are written to four of them in turn (see the migration), and here a slot whose turn is over and
//! whose rows are gone is emptied by TRUNCATE: its space comes back, and its dead rows are forgotten whatever snapshot is
//! held. Only who holds a lock on the slot itself keeps it as it is, such as a dump of the whole database.

use std::{convert::Infallible, time::Duration};

use chassis::{OnFailure, Stage, Stop};
use sqlx::PgPool;
use tokio::{sync::watch, time::timeout};
use tracing::{debug, warn};

use crate::Parts;

/// How often slots are looked at. A turn takes 10 s.
const SWEEP_EVERY: Duration = Duration::from_secs(3);
/// While a slot's lock is not to be had, each try makes others wait behind it: they come ever more rarely, up to this.
const SWEEP_EVERY_MAX: Duration = Duration::from_secs(60);
/// How long one look may take, with all that it does.
const SWEEP_MAX: Duration = Duration::from_secs(5);

/// The slots that hold something, dead or alive, and are not written to now or next. Those who write are never in the way
/// then, but for a transaction that began before.
const OUT_OF_TURN: &str = "SELECT slot FROM generate_series(0, 3) AS slot \
    WHERE slot NOT IN (outbox_slot(), (outbox_slot() + 1) % 4) AND pg_relation_size('outbox_' || slot) > 0";

/// Empties slots, where somebody publishes.
#[derive(Clone)]
pub(super) struct Sweeper {
    pool: PgPool,
    wanted: watch::Receiver<bool>,
}

impl Sweeper {
    /// Starts to sweep once somebody here publishes. Several pods at once do no harm: of two, the later one finds nothing.
    pub(super) fn start(pool: &PgPool, wanted: watch::Receiver<bool>, parts: &Parts) {
        let sweeper = Self { pool: pool.clone(), wanted };
        parts
            .pod
            .tasks
            .spawn("outbox sweeper", Stage::Foundations, OnFailure::Restart, move |stop| sweeper.clone().run(stop));
    }

    /// Sweeps until the pod has drained, or the ledger is gone.
    async fn run(mut self, stop: Stop) -> Result<(), Infallible> {
        let sweeping = async {
            if self.wanted.wait_for(|wanted| *wanted).await.is_ok() {
                // It only ever becomes true: a change now means that nobody holds the other end.
                tokio::select! { _ = self.wanted.wait_for(|wanted| !wanted) => {}, () = keep_sweeping(&self.pool) => {} }
            }
        };
        tokio::select! { () = stop.cancelled() => {}, () = sweeping => {} }
        Ok(())
    }
}

async fn keep_sweeping(pool: &PgPool) {
    let mut wait = SWEEP_EVERY;
    loop {
        tokio::time::sleep(wait).await;
        wait = match timeout(SWEEP_MAX, sweep(pool)).await {
            Ok(Ok(())) => SWEEP_EVERY,
            Ok(Err(cause)) if is_lock_timeout(&cause) => {
                debug!("somebody holds a slot of the outbox, which is emptied later: {cause}");
                (wait * 2).min(SWEEP_EVERY_MAX)
            }
            Ok(Err(cause)) => {
                warn!("cannot empty the slots of the outbox, trying again later: {cause}");
                (wait * 2).min(SWEEP_EVERY_MAX)
            }
            Err(_) => {
                warn!("cannot empty the slots of the outbox within {SWEEP_MAX:?}, trying again later");
                (wait * 2).min(SWEEP_EVERY_MAX)
            }
        };
    }
}

/// Empties what can be emptied. One slot that cannot keeps none from being tried.
async fn sweep(pool: &PgPool) -> sqlx::Result<()> {
    let slots: Vec<i32> = sqlx::query_scalar(OUT_OF_TURN).fetch_all(pool).await?;
    let mut swept = Ok(());
    for slot in slots {
        // First without the lock: a slot in which rows wait is left alone, and nobody notices that it was looked at.
        let look = format!("SELECT EXISTS (SELECT 1 FROM outbox_{slot})");
        let rows_wait: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(look)).fetch_one(pool).await?;
        if !rows_wait {
            swept = swept.and(empty(pool, slot).await);
        }
    }
    swept
}

/// Empties a slot, if there is still no row in it once nobody else is at it: whoever has written to it holds a lock until
/// their rows can be seen. In one statement, so that a pod that is frozen here does not keep the lock.
async fn empty(pool: &PgPool, slot: i32) -> sqlx::Result<()> {
    let statement = format!(
        "DO $$ BEGIN \
             PERFORM set_config('lock_timeout', '50ms', TRUE); \
             LOCK TABLE outbox_{slot} IN ACCESS EXCLUSIVE MODE; \
             IF NOT EXISTS (SELECT 1 FROM outbox_{slot}) THEN TRUNCATE outbox_{slot}; END IF; \
         END $$"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(pool).await.map(|_| ())
}

fn is_lock_timeout(cause: &sqlx::Error) -> bool {
    cause.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "55P03")
}
