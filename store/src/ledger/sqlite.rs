//! The embedded ledger: one SQLite file, one process. Writes begin IMMEDIATE on one connection, so that they never fail by
//! upgrading a read lock; reads have connections of their own.

// The SQL is one for both databases, and each driver has its own types: these are compiled once for each.
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

use std::{fs::File, path::Path, sync::Arc, time::Duration};

use chassis::Clock;
use sqlx::{
    QueryBuilder, Sqlite as Driver, SqlitePool, Transaction,
    migrate::{Migrate as _, Migrator},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous},
};
use tokio::sync::watch;

use super::{Lease, heads::Heads, migrations};
use crate::{Error, OpenError, Shard};

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");
const STORE: &str = "the ledger";
const READERS: u32 = 4;
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// What a SELECT ends with to keep others from changing the row: nothing, because a change has the file to itself.
const LOCK_ROW: &str = "";
/// And to wait for those that keep it: nothing either.
const LOCK_WHOLE_ROW: &str = "";
/// And only to keep it from being locked as a whole.
const KEEP_ROW: &str = "";
/// And to pass by the rows that others have locked: there are none.
const LOCK_FREE_ROW: &str = "";
/// How many rows there are to fill an archive with.
const ESTIMATE: &str = "SELECT (SELECT count(*) FROM posts) + (SELECT count(*) FROM follows)";

type SqlLedger = Sqlite;
type Row = SqliteRow;

/// The embedded ledger. The data folder is its own: a second process is refused.
pub struct Sqlite {
    writer: SqlitePool,
    reader: SqlitePool,
    clock: Arc<dyn Clock>,
    shards: u16,
    wakeups: watch::Sender<u64>,
    /// Rises with every commit that has written a job.
    jobs_made: watch::Sender<u64>,
    /// Removed rows are gone at once: none of them is ever raised.
    heads: Heads,
    _folder_lock: File,
}

/// An open transaction, and the clock's reading that its rows carry.
struct Change {
    transaction: Transaction<'static, Driver>,
    now_us: i64,
    events: usize,
    jobs: usize,
}

/// A look at the outbox, at a moment when no change is open.
struct Look {
    connection: Transaction<'static, Driver>,
    now_us: i64,
    /// When the oldest open change began.
    open_since_us: Option<i64>,
}

impl Sqlite {
    /// Opens or makes the ledger at this path, and brings its tables up to date.
    pub async fn open(path: &Path, shards: u16, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let folder_lock = lock_folder(path)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Each commit reaches the disk before it is answered: an acknowledged post survives a power cut.
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(LOCK_WAIT);
        let broken = |cause: &dyn std::fmt::Display| unusable(path, cause);
        let pool = |connections| SqlitePoolOptions::new().max_connections(connections).acquire_timeout(LOCK_WAIT);
        let writer = pool(1).connect_with(options.clone()).await.map_err(|cause| broken(&cause))?;
        bring_up_to_date(&writer).await.map_err(|cause| broken(&cause))?;
        let reader = pool(READERS).connect_with(options.read_only(true)).await.map_err(|cause| broken(&cause))?;
        let ledger = Self {
            writer,
            reader,
            clock,
            shards,
            wakeups: watch::Sender::new(0),
            jobs_made: watch::Sender::new(0),
            heads: Heads::default(),
            _folder_lock: folder_lock,
        };
        let keep = sqlx::query(install::KEEP_SHARDS).bind(shards.to_string());
        keep.execute(&ledger.writer).await.map_err(|cause| broken(&cause))?;
        ledger.check_install().await.map_err(|cause| broken(&cause))?;
        ledger.end_leases_of_the_dead().await.map_err(|cause| broken(&cause))?;
        Ok(ledger)
    }

    /// Takes the ledger at this path away, unless a process has it open.
    pub fn erase(path: &Path) -> Result<(), OpenError> {
        let _folder_lock = lock_folder(path)?;
        for suffix in ["", "-wal", "-shm"] {
            let mut file = path.as_os_str().to_owned();
            file.push(suffix);
            match std::fs::remove_file(&file) {
                Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                    return Err(unusable(path, &cause));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The folder's lock says that no other process lives, so what one held when it died need not run out first.
    async fn end_leases_of_the_dead(&self) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE shard_leases SET expires_us = 0").execute(&self.writer).await?;
        sqlx::query("UPDATE writer_leases SET expires_us = 0").execute(&self.writer).await?;
        sqlx::query("UPDATE archive_fills SET expires_us = 0").execute(&self.writer).await?;
        sqlx::query("UPDATE jobs SET expires_us = 0").execute(&self.writer).await?;
        Ok(())
    }

    async fn begin(&self) -> Result<Change, Error> {
        let transaction = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        Ok(Change { transaction, now_us: self.clock.unix_us(), events: 0, jobs: 0 })
    }

    async fn commit(&self, change: Change) -> Result<(), Error> {
        change.transaction.commit().await.map_err(failed)?;
        if change.events > 0 {
            self.wakeups.send_modify(|generation| *generation += 1);
        }
        if change.jobs > 0 {
            self.jobs_made.send_modify(|generation| *generation += 1);
        }
        Ok(())
    }

    /// Alone on the file, as a change is: all that began before is committed or undone.
    async fn look(&self) -> Result<Look, Error> {
        let change = self.begin().await?;
        Ok(Look { connection: change.transaction, now_us: change.now_us, open_since_us: None })
    }

    /// Whether rows were removed in one statement: there are no round trips to save.
    #[expect(clippy::unused_async, reason = "another ledger does it")]
    async fn removed_at_once(&self, _lease: &Lease, _ids: &[i64]) -> Result<bool, Error> {
        Ok(false)
    }

    /// A change that is alone on a table: every change is.
    async fn begin_alone_on(&self, _table: &'static str) -> Result<Change, Error> {
        self.begin().await
    }

    /// Makes a change. It has the file to itself, so there is nothing to try again.
    async fn retried<T, Attempt>(&self, attempt: impl Fn() -> Attempt + Send) -> Result<T, Error>
    where
        Attempt: Future<Output = Result<T, Error>> + Send,
    {
        attempt().await
    }

    /// Awaits a read.
    async fn answered<T>(&self, query: impl Future<Output = sqlx::Result<T>> + Send) -> Result<T, Error> {
        query.await.map_err(failed)
    }

    /// The pool for reads, for the stores that live in the ledger's file.
    pub(crate) fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    /// The pool with the one connection for writes.
    pub(crate) fn writer(&self) -> &SqlitePool {
        &self.writer
    }

    /// The ledger's clock, in microseconds since 1970.
    #[expect(clippy::unused_async, reason = "another ledger's clock must be asked for")]
    async fn now_us(&self) -> Result<i64, Error> {
        Ok(self.clock.unix_us())
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(crate) fn shards(&self) -> u16 {
        self.shards
    }
}

fn unusable(path: &Path, cause: &dyn std::fmt::Display) -> OpenError {
    OpenError::Unusable { store: STORE, place: path.display().to_string(), cause: cause.to_string() }
}

fn lock_folder(path: &Path) -> Result<File, OpenError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let broken = |cause: std::io::Error| unusable(path, &cause);
    std::fs::create_dir_all(folder).map_err(broken)?;
    let lock = File::create(folder.join("freshet.lock")).map_err(broken)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::FolderInUse { folder: folder.into() }),
        Err(std::fs::TryLockError::Error(cause)) => Err(broken(cause)),
    }
}

/// Makes the tables, or brings those of an older release up to date.
async fn bring_up_to_date(writer: &SqlitePool) -> Result<(), String> {
    let text = |cause: &dyn std::fmt::Display| cause.to_string();
    let mut connection = writer.acquire().await.map_err(|cause| text(&cause))?;
    connection.ensure_migrations_table(migrations::TABLE).await.map_err(|cause| text(&cause))?;
    let applied = connection.list_applied_migrations(migrations::TABLE).await.map_err(|cause| text(&cause))?;
    drop(connection);
    migrations::pending(&MIGRATIONS, &applied)?;
    MIGRATIONS.run(writer).await.map_err(|cause| text(&cause))
}

/// Goes on with ` IN ($1, $2, …)`.
fn push_is_one_of(query: &mut QueryBuilder<Driver>, ids: Vec<i64>) {
    query.push(" IN (");
    let mut list = query.separated(", ");
    for id in ids {
        list.push_bind(id);
    }
    query.push(")");
}

/// The oldest rows of shards from these heads on, so many of each, without these. CROSS: shards are the outer loop.
fn oldest_rows(heads: &[(Shard, i64)], limit: i64, except: Vec<i64>) -> QueryBuilder<Driver> {
    let mut query = QueryBuilder::new("WITH shards (shard, head) AS (");
    query.push_values(heads, |mut row, (shard, head)| {
        row.push_bind(i64::from(shard.0)).push_bind(*head);
    });
    query.push(") SELECT ").push(outbox::COLUMNS).push(
        " FROM shards CROSS JOIN outbox ON outbox.id IN (SELECT oldest.id FROM outbox AS oldest \
         WHERE oldest.shard = shards.shard AND oldest.id >= head AND oldest.id NOT",
    );
    push_is_one_of(&mut query, except);
    query.push(" ORDER BY oldest.id LIMIT ").push_bind(limit).push(")");
    query
}

/// What a driver's error means for a caller.
pub(crate) fn failed(cause: sqlx::Error) -> Error {
    let text = cause.to_string();
    let busy = cause.as_database_error().is_some_and(|error| error.message().contains("locked"));
    match cause {
        sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed | sqlx::Error::Io(_) => {
            Error::Unavailable { store: STORE, cause: text }
        }
        _ if busy => Error::Unavailable { store: STORE, cause: text },
        _ => Error::Fault { store: STORE, cause: text },
    }
}

#[cfg(test)]
mod tests {
    use chassis::clock::System;
    use proto::{
        EventId, UserId,
        id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
    };

    use super::*;
    use crate::ledger::{Event, FollowLimits, Graph as _, GraphChange, Pair};

    fn fresh_id() -> EventId {
        EventId::new((System.unix_ms() - EPOCH_UNIX_MS) << (WRITER_BITS + SEQUENCE_BITS)).unwrap()
    }

    #[tokio::test]
    async fn what_is_done_again_has_a_higher_version_whatever_the_clock_says() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Sqlite::open(&folder.path().join("freshet.db"), 4, Arc::new(System)).await.unwrap();
        let far = 4_000_000_000_000_000_i64;
        let rows = format!(
            "INSERT INTO accounts (id, handle, display_name, created_at_ms, version) \
                 VALUES (1, 'a', '', 0, 0), (2, 'b', '', 0, 0); \
             INSERT INTO user_counters (user_id) VALUES (1), (2); \
             INSERT INTO follows VALUES (1, 2, FALSE, {far})"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(ledger.writer()).await.unwrap();
        let limits = FollowLimits { followees_max: 10, celebrity_followers: 10 };
        let pair = Pair { from: UserId::new(1).unwrap(), to: UserId::new(2).unwrap() };
        let events = [(); 3].map(|()| Event { id: fresh_id(), compose: &GraphChange::payload });
        assert!(ledger.follow(pair, limits, events).await.unwrap().changed);
        let version: i64 = sqlx::query_scalar("SELECT version FROM follows").fetch_one(ledger.reader()).await.unwrap();
        assert_eq!(version, far + 1);
    }

    #[tokio::test]
    async fn a_file_of_a_newer_release_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("freshet.db");
        let open = || Sqlite::open(&path, 4, Arc::new(System));
        let ledger = open().await.unwrap();
        sqlx::query("UPDATE _sqlx_migrations SET version = 9999 WHERE version = 1")
            .execute(ledger.writer())
            .await
            .unwrap();
        ledger.writer().close().await;
        drop(ledger);
        let told = open().await.err().unwrap().to_string();
        assert!(told.contains("newer release (version 9999)"), "{told}");
    }
}
