//! The ledger of many pods: PostgreSQL. Transactions are READ COMMITTED, so every change is made by statements that are exact
//! when others run beside them, or under a row's lock. The time is the database's.
#![expect(clippy::duplicate_mod, reason = "the SQL is one for both databases, and each driver has its own types")]

mod connect;
mod failure;
mod look;
mod migrate;
mod remove;
mod slots;
mod wakeups;

// Compiled once for each driver.
#[path = "sql/accounts.rs"]
mod accounts;
#[path = "sql/archive.rs"]
mod archive;
#[path = "sql/blocks.rs"]
mod blocks;
#[path = "sql/counters.rs"]
mod counters;
#[path = "sql/dead_letters.rs"]
mod dead_letters;
#[path = "sql/departures.rs"]
mod departures;
#[path = "sql/event.rs"]
mod event;
#[path = "sql/fills.rs"]
mod fills;
#[path = "sql/graph.rs"]
mod graph;
#[path = "sql/install.rs"]
mod install;
#[path = "sql/jobs.rs"]
mod jobs;
#[path = "sql/keys.rs"]
mod keys;
#[path = "sql/leases.rs"]
mod leases;
#[path = "sql/letter_orders.rs"]
mod letter_orders;
#[path = "sql/likes.rs"]
mod likes;
#[path = "sql/marks.rs"]
mod marks;
#[path = "sql/modes.rs"]
mod modes;
#[path = "sql/outbox.rs"]
mod outbox;
#[path = "sql/pairs.rs"]
mod pairs;
#[path = "sql/posts.rs"]
mod posts;
#[path = "sql/refused.rs"]
mod refused;
#[path = "sql/relations.rs"]
mod relations;
#[path = "sql/remote.rs"]
mod remote;
#[path = "sql/requests.rs"]
mod requests;
#[path = "sql/revisions.rs"]
mod revisions;
#[path = "sql/row.rs"]
mod row;
#[path = "sql/sight.rs"]
mod sight;
#[path = "sql/writers.rs"]
mod writers;

use std::{sync::Arc, time::Duration};

use chassis::{Random, config::without_password};
use failure::{failed, no_answer};
pub(crate) use migrate::migrate;
use slots::Sweeper;
use sqlx::{PgPool, Postgres as Driver, QueryBuilder, Transaction, postgres::PgRow};
use tokio::{sync::watch, time::timeout};
use wakeups::Wakeups;

use super::{CHANGE_MAX, heads::Heads};
use crate::{Config, Error, OpenError, Parts, Shard};

const STORE: &str = "the ledger";
/// How long a store may take to be opened.
const OPEN_MAX: Duration = Duration::from_secs(5);
/// How long a read may take, the wait for a connection included.
const READ_MAX: Duration = Duration::from_secs(5);
/// How often a change is made that others are in the way of.
const TRIES_MAX: u32 = 5;
const RETRY_AFTER_MAX: Duration = Duration::from_millis(20);
/// What a SELECT ends with to keep others from changing the row. New rows may still refer to it.
const LOCK_ROW: &str = " FOR NO KEY UPDATE";
/// And to wait for those that keep it, with what refers to it.
const LOCK_WHOLE_ROW: &str = " FOR UPDATE";
/// And only to keep it from being locked as a whole, as a row that refers to it does anyway. Many can at once, beside one that
/// changes it.
const KEEP_ROW: &str = " FOR KEY SHARE";
/// And to pass by the rows that others have locked.
const LOCK_FREE_ROW: &str = " FOR NO KEY UPDATE SKIP LOCKED";
/// The time of day, in microseconds since 1970. Not now(), which is when the transaction began.
const CLOCK: &str = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
/// How many rows there are to fill an archive with, roughly: counting many takes too long, and of few there are no statistics.
const ESTIMATE: &str = "SELECT CAST(sum(greatest(reltuples, counted)) AS BIGINT) FROM (VALUES \
    ('posts'::regclass, (SELECT count(*) FROM (SELECT 1 FROM posts LIMIT 10000) AS few)), \
    ('follows'::regclass, (SELECT count(*) FROM (SELECT 1 FROM follows LIMIT 10000) AS few))) AS tables (name, counted) \
    JOIN pg_class ON pg_class.oid = tables.name";

type SqlLedger = Postgres;
type Row = PgRow;

/// The ledger of many pods.
pub(crate) struct Postgres {
    pool: PgPool,
    shards: u16,
    random: Arc<dyn Random>,
    wakeups: Wakeups,
    /// Rises with every commit of this process that has written a job.
    jobs_made: watch::Sender<u64>,
    heads: Heads,
}

/// An open transaction, and the clock's reading that its rows carry.
struct Change {
    transaction: Transaction<'static, Driver>,
    now_us: i64,
    events: usize,
    jobs: usize,
}

impl Postgres {
    /// Opens the ledger, if `freshet migrate` has prepared it for this release.
    pub(crate) async fn open(url: &str, config: &Config, parts: &Parts) -> Result<Self, OpenError> {
        let options = connect::options(url, parts.pod.name()).map_err(|cause| unusable(url, &cause))?;
        migrate::require_up_to_date(&options).await.map_err(|cause| unusable(url, &cause))?;
        let pool = connect::pool(&options, config.ledger_connections_max);
        let wakeups = Wakeups::start(&pool, &options, parts);
        Sweeper::start(&pool, wakeups.wanted(), parts);
        let ledger = Self {
            pool,
            shards: config.shards,
            random: parts.random.clone(),
            wakeups,
            jobs_made: watch::Sender::new(0),
            heads: Heads::default(),
        };
        match timeout(OPEN_MAX, ledger.check_install()).await {
            Ok(checked) => checked.map_err(|cause| unusable(url, &cause))?,
            Err(_) => return Err(unusable(url, &format_args!("no answer within {OPEN_MAX:?}"))),
        }
        Ok(ledger)
    }

    async fn begin(&self) -> Result<Change, Error> {
        let transaction = self.pool.begin().await.map_err(failed)?;
        timed(transaction).await
    }

    /// A change that is alone on a table. The clock is read after the lock is had: every change of others is older then, and
    /// one that is not was made before the clock went back.
    async fn begin_alone_on(&self, table: &'static str) -> Result<Change, Error> {
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        let lock = sqlx::AssertSqlSafe(format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"));
        sqlx::query(lock).execute(&mut *transaction).await.map_err(failed)?;
        timed(transaction).await
    }

    async fn commit(&self, change: Change) -> Result<(), Error> {
        change.transaction.commit().await.map_err(failed)?;
        if change.events > 0 {
            self.wakeups.committed();
        }
        if change.jobs > 0 {
            self.jobs_made.send_modify(|generation| *generation += 1);
        }
        Ok(())
    }

    /// Makes a change, and makes it again when others were in its way.
    async fn retried<T, Attempt>(&self, attempt: impl Fn() -> Attempt + Send) -> Result<T, Error>
    where
        Attempt: Future<Output = Result<T, Error>> + Send,
    {
        let tries = async {
            for _ in 1..TRIES_MAX {
                match attempt().await {
                    Err(Error::Conflict { .. }) => tokio::time::sleep(self.jitter()).await,
                    settled => return settled,
                }
            }
            attempt().await
        };
        timeout(CHANGE_MAX, tries).await.unwrap_or_else(|_| Err(no_answer(CHANGE_MAX)))
    }

    /// Awaits a read, for so long and no longer.
    async fn answered<T>(&self, query: impl Future<Output = sqlx::Result<T>> + Send) -> Result<T, Error> {
        match timeout(READ_MAX, query).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(no_answer(READ_MAX)),
        }
    }

    /// Two that were in each other's way must not meet again at once.
    fn jitter(&self) -> Duration {
        let max = u64::try_from(RETRY_AFTER_MAX.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.random.number() % max)
    }

    /// The ledger's clock, in microseconds since 1970.
    async fn now_us(&self) -> Result<i64, Error> {
        self.answered(sqlx::query_scalar(CLOCK).fetch_one(&self.pool)).await
    }

    fn reader(&self) -> &PgPool {
        &self.pool
    }

    fn writer(&self) -> &PgPool {
        &self.pool
    }
}

async fn timed(mut transaction: Transaction<'static, Driver>) -> Result<Change, Error> {
    let now_us = sqlx::query_scalar(CLOCK).fetch_one(&mut *transaction).await.map_err(failed)?;
    Ok(Change { transaction, now_us, events: 0, jobs: 0 })
}

/// Goes on with ` = ANY($1)`: one statement to prepare, whatever the number of ids.
fn push_is_one_of(query: &mut QueryBuilder<Driver>, ids: Vec<i64>) {
    query.push(" = ANY(").push_bind(ids).push(")");
}

/// The oldest rows of shards from these heads on, so many of each, without these.
fn oldest_rows(heads: &[(Shard, i64)], limit: i64, except: Vec<i64>) -> QueryBuilder<Driver> {
    let mut query = QueryBuilder::new("WITH shards (shard, head) AS (");
    query.push_values(heads, |mut row, (shard, head)| {
        row.push_bind(i64::from(shard.0)).push_bind(*head);
    });
    query.push(") SELECT found.* FROM shards CROSS JOIN LATERAL (SELECT ").push(outbox::COLUMNS);
    query.push(" FROM outbox WHERE outbox.shard = shards.shard AND id >= head AND id <> ALL(").push_bind(except);
    query.push(") ORDER BY id LIMIT ").push_bind(limit).push(") AS found");
    query
}

fn unusable(url: &str, cause: &dyn std::fmt::Display) -> OpenError {
    OpenError::Unusable { store: STORE, place: without_password(url), cause: cause.to_string() }
}
