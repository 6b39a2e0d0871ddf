//! The embedded ledger: one SQLite file, one process. Writes begin IMMEDIATE on one connection, so that they never fail by
//! upgrading a read lock; reads have connections of their own.

mod accounts;
mod graph;
mod leases;
mod outbox;
mod posts;
pub(crate) use posts::{COLUMNS, post};
mod writers;

use std::{fs::File, path::Path, sync::Arc, time::Duration};

use chassis::{Clock, trace};
use prost::Message as _;
use proto::freshet::event::v1::Envelope;
use sqlx::{
    Sqlite as Driver, SqlitePool, Transaction,
    migrate::Migrator,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous},
};
use tokio::sync::watch;

use super::Event;
use crate::{Error, OpenError, Shard, error::damaged};

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/sqlite");
const STORE: &str = "the ledger";
const READERS: u32 = 4;
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The embedded ledger. The data folder is its own: a second process is refused.
pub struct Sqlite {
    writer: SqlitePool,
    reader: SqlitePool,
    clock: Arc<dyn Clock>,
    shards: u16,
    committed: watch::Sender<u64>,
    _folder_lock: File,
}

/// An open transaction, and the clock's reading that its rows carry.
struct Change {
    transaction: Transaction<'static, Driver>,
    now_us: i64,
    events: usize,
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
        MIGRATIONS.run(&writer).await.map_err(|cause| broken(&cause))?;
        let reader = pool(READERS).connect_with(options.read_only(true)).await.map_err(|cause| broken(&cause))?;
        let ledger =
            Self { writer, reader, clock, shards, committed: watch::Sender::new(0), _folder_lock: folder_lock };
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

    /// The shard count is part of the data: with another one, a key's events would change their lane and their order.
    async fn check_install(&self) -> Result<(), String> {
        let text = |cause: sqlx::Error| cause.to_string();
        sqlx::query("INSERT INTO install (name, value) VALUES ('shards', $1) ON CONFLICT (name) DO NOTHING")
            .bind(self.shards.to_string())
            .execute(&self.writer)
            .await
            .map_err(text)?;
        let made: String = sqlx::query_scalar("SELECT value FROM install WHERE name = 'shards'")
            .fetch_one(&self.writer)
            .await
            .map_err(text)?;
        if made == self.shards.to_string() {
            return Ok(());
        }
        Err(format!("it was made with {made} shards, and stores.shards is {}: set it back to {made}", self.shards))
    }

    /// The folder's lock says that no other process lives, so what one held when it died need not run out first.
    async fn end_leases_of_the_dead(&self) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE shard_leases SET expires_us = 0").execute(&self.writer).await?;
        sqlx::query("UPDATE writer_leases SET expires_us = 0").execute(&self.writer).await?;
        Ok(())
    }

    async fn begin(&self) -> Result<Change, Error> {
        let transaction = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        Ok(Change { transaction, now_us: self.clock.unix_us(), events: 0 })
    }

    async fn commit(&self, change: Change) -> Result<(), Error> {
        change.transaction.commit().await.map_err(failed)?;
        if change.events > 0 {
            self.committed.send_modify(|generation| *generation += 1);
        }
        Ok(())
    }

    /// The one place where events are written: into the outbox, in the transaction of the change that they tell of.
    async fn write_event<Row: Sync>(
        &self,
        change: &mut Change,
        event: &Event<'_, Row>,
        version: i64,
        row: &Row,
    ) -> Result<(), Error> {
        let payload = (event.compose)(row);
        let topic = payload.topic();
        let envelope = Envelope::new(event.id, change.now_us.div_euclid(1000), version, payload);
        sqlx::query(
            "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(i64::from(Shard::of(&envelope.key, self.shards).0))
        .bind(topic.name())
        .bind(&envelope.key)
        .bind(&envelope.r#type)
        .bind(envelope.encode_to_vec())
        .bind(trace::current())
        .bind(change.now_us.div_euclid(1000))
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        change.events += 1;
        Ok(())
    }

    /// The pool for reads, for the stores that live in the ledger's file.
    pub(crate) fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    /// The pool with the one connection for writes.
    pub(crate) fn writer(&self) -> &SqlitePool {
        &self.writer
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

/// max(previous + 1, microseconds now): it rises even when the clock goes back.
fn next_version(previous: i64, now_us: i64) -> i64 {
    now_us.max(previous + 1)
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

/// Reads an id from a column.
pub(crate) fn id<Id: TryFrom<i64>>(row: &SqliteRow, column: &str) -> Result<Id, Error> {
    use sqlx::Row as _;
    let number: i64 = row.try_get(column).map_err(failed)?;
    Id::try_from(number).map_err(|_| damaged(STORE, format_args!("{column} = {number}")))
}
