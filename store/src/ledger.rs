//! The ledger: the truth, in SQL. A method that changes something is one transaction, and takes the event that is written
//! with it, so that nobody can forget it.

mod accounts;
pub mod dead_letters;
mod departures;
mod fills;
mod graph;
mod heads;
mod jobs;
mod migrations;
mod modes;
mod postgres;
mod posts;
mod sqlite;

use std::{sync::Arc, time::Duration};

pub use accounts::{Account, Accounts, Credentials, NewAccount, OwnAccount, ProfileChange};
use async_trait::async_trait;
use bytes::Bytes;
use chassis::id::Grant;
pub use dead_letters::DeadLetters;
pub use departures::{Departures, Tie, Unliked};
pub use fills::{ArchiveFills, Cursor, FillLease, FillStatus};
pub use graph::{
    BlockOutcome, Blocks, Counters, FollowOutcome, FollowRequests, Graph, GraphChange, List, Listed, Mutes, Outcome,
    Pair, Place, Relations, Relationship, RemoteAuthor, RemoteAuthors, Wish,
};
pub use jobs::{Job, JobKind, Jobs};
pub use modes::{AuthorMode, FanOut, FollowLimits, Mode, Modes, Written};
pub(crate) use postgres::{Postgres, migrate as migrate_postgres};
pub use posts::{Content, Deleted, Likes, NewPost, Post, PostChange, PostKey, Posts, Revision, Viewer, Visibility};
use proto::{EventId, event::Topic, freshet::event::v1::envelope::Payload};
pub use sqlite::Sqlite;
pub(crate) use sqlite::failed as sqlite_failed;
use tokio::sync::watch;

use crate::{
    Error, Shard,
    archive::{Archive, Follows, PostsByAuthor, PublicPosts},
    event_log::{EventLog, SqliteLog},
    writer::CLOCK_OFF_MAX_MS,
};

/// How long a change may take, with all its tries. So a transaction lives at most so long, and begins at most so long after
/// its ids were minted.
pub(crate) const CHANGE_MAX: Duration = Duration::from_secs(5);
/// How old an event's id may be, by the ledger's clock, when its change begins: besides, a pod's clock may be slow. The ledger
/// refuses what is older, so a pod that was frozen after it minted cannot bring up an id that others count as settled.
pub(crate) const EVENT_AGE_MAX_MS: i64 = CHANGE_MAX.as_millis() as i64 + CLOCK_OFF_MAX_MS;

/// The ledger, each part by the trait of its concern.
#[derive(Clone)]
pub struct Ledger {
    /// People.
    pub accounts: Arc<dyn Accounts>,
    /// Who follows whom.
    pub graph: Arc<dyn Graph>,
    /// Who blocks whom.
    pub blocks: Arc<dyn Blocks>,
    /// Who mutes whom.
    pub mutes: Arc<dyn Mutes>,
    /// Who asks to follow whom.
    pub follow_requests: Arc<dyn FollowRequests>,
    /// All of that, read.
    pub relations: Arc<dyn Relations>,
    /// Authors of other servers.
    pub remote_authors: Arc<dyn RemoteAuthors>,
    /// Posts and likes.
    pub posts: Arc<dyn Posts>,
    /// Committed events.
    pub outbox: Arc<dyn Outbox>,
    /// Events that could not be published or applied.
    pub dead_letters: Arc<dyn DeadLetters>,
    /// Who publishes which shard.
    pub shard_leases: Arc<dyn ShardLeases>,
    /// Who mints ids under which number.
    pub writer_numbers: Arc<dyn WriterNumbers>,
    /// How far the archive was filled.
    pub archive_fills: Arc<dyn ArchiveFills>,
    /// How authors' posts reach their followers.
    pub modes: Arc<dyn Modes>,
    /// What is left to be done.
    pub jobs: Arc<dyn Jobs>,
    /// What is left to end when a person is gone.
    pub departures: Arc<dyn Departures>,
    /// Its tables, read as an archive.
    pub(crate) as_archive: Archive,
    /// Its own event log, where it has one.
    pub(crate) as_event_log: Option<Arc<dyn EventLog>>,
}

impl Ledger {
    /// The embedded ledger.
    pub(crate) fn sqlite(ledger: Sqlite) -> Self {
        let ledger = Arc::new(ledger);
        Self { as_event_log: Some(Arc::new(SqliteLog::new(ledger.clone()))), ..Self::of(ledger) }
    }

    /// A ledger of many pods.
    pub(crate) fn postgres(ledger: Postgres) -> Self {
        Self::of(Arc::new(ledger))
    }

    fn of<L>(ledger: Arc<L>) -> Self
    where
        L: Accounts
            + Graph
            + Blocks
            + Mutes
            + FollowRequests
            + Relations
            + RemoteAuthors
            + Posts
            + Outbox
            + DeadLetters
            + ShardLeases
            + WriterNumbers
            + ArchiveFills
            + Modes
            + Jobs
            + Departures
            + AsArchive
            + 'static,
    {
        Self {
            accounts: ledger.clone(),
            graph: ledger.clone(),
            blocks: ledger.clone(),
            mutes: ledger.clone(),
            follow_requests: ledger.clone(),
            relations: ledger.clone(),
            remote_authors: ledger.clone(),
            posts: ledger.clone(),
            outbox: ledger.clone(),
            dead_letters: ledger.clone(),
            shard_leases: ledger.clone(),
            writer_numbers: ledger.clone(),
            archive_fills: ledger.clone(),
            modes: ledger.clone(),
            jobs: ledger.clone(),
            departures: ledger.clone(),
            as_archive: Archive {
                posts_by_author: ledger.clone(),
                follows: ledger.clone(),
                public_posts: ledger,
                filling: None,
            },
            as_event_log: None,
        }
    }
}

/// What a ledger is as an archive.
trait AsArchive: PostsByAuthor + Follows + PublicPosts {}

impl<L: PostsByAuthor + Follows + PublicPosts> AsArchive for L {}

/// The event of a change: its id, and how its payload is made from the row as it was written. A call that changes nothing
/// writes no event.
pub struct Event<'a, Row> {
    /// Minted before every other id of the change, and just before it: its age tells the age of all of them.
    pub id: EventId,
    /// Makes the payload from the row as it was written.
    pub compose: &'a (dyn Fn(&Row) -> Payload + Send + Sync),
}

/// An event that waits to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// The row.
    pub id: i64,
    /// By its key.
    pub shard: Shard,
    /// Where it goes.
    pub topic: Topic,
    /// Order is kept a key.
    pub key: String,
    /// The event's type.
    pub kind: String,
    /// The encoded envelope.
    pub payload: Bytes,
    /// The call that caused it.
    pub traceparent: String,
    /// When it was written, in milliseconds since 1970.
    pub created_at_ms: i64,
}

/// Where a reader is in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFrom {
    /// Which shard.
    pub shard: Shard,
    /// It has had all rows up to here.
    pub after: i64,
    /// The first of those that are not removed yet.
    pub kept: Option<i64>,
}

impl ReadFrom {
    /// A reader that has had nothing.
    #[must_use]
    pub const fn the_first(shard: Shard) -> Self {
        Self { shard, after: 0, kept: None }
    }
}

/// What was read of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// In order a shard.
    pub rows: Vec<OutboxRow>,
    /// Rows surface in the order of commits, not of ids; but up to this id all are there that ever will be. So a reader that
    /// has had those need not look there again, until this falls: then the ledger is an earlier one, or too much time has
    /// passed to be sure.
    pub decided: i64,
}

/// Events that are committed and not yet published.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// The oldest rows of each of several shards, in order a shard and so many of each, from where a reader is; without `had`,
    /// which it has beyond that.
    async fn read(&self, from: &[ReadFrom], limit: u32, had: &[i64]) -> Result<Read, Error>;

    /// The shard's oldest rows, in order.
    async fn oldest(&self, shard: Shard, limit: u32) -> Result<Vec<OutboxRow>, Error> {
        Ok(self.read(&[ReadFrom::the_first(shard)], limit, &[]).await?.rows)
    }

    /// Takes published rows away, if the lease still stands. False, and nothing is taken away, when it does not.
    async fn remove(&self, lease: &Lease, ids: &[i64]) -> Result<bool, Error>;

    /// Moves a row that the event log refuses for good to the dead letters, with the reason, if the lease still stands.
    /// False, and nothing is moved, when it does not. A row that is gone already is no obstacle.
    async fn bury(&self, lease: &Lease, id: i64, error: &str) -> Result<bool, Error>;

    /// How far the shards of these leases are settled, in milliseconds since 1970; those whose lease does not stand are left
    /// out. An event whose ids were minted up to that millisecond is out of the outbox, or will never be in it: it is in the
    /// log already, or a dead letter. That stays true, however late it is told, and whoever holds the shard by then.
    async fn marks(&self, leases: &[Lease]) -> Result<Vec<(Shard, i64)>, Error>;

    /// How many rows wait.
    async fn backlog(&self) -> Result<u64, Error>;

    /// Changes whenever rows were committed.
    fn wakeups(&self) -> watch::Receiver<u64>;
}

/// The right to publish a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Which shard.
    pub shard: Shard,
    /// Whose it is.
    pub owner: String,
    /// Higher than every earlier owner's.
    pub epoch: i64,
}

/// A part of the shards: of as many parts as there are relays, this one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    place: u16,
    of: u16,
}

impl Share {
    /// All shards.
    pub const ALL: Self = Self { place: 0, of: 1 };

    /// What falls to one of several members, by its place among all of them in order; `None` when it is not one of them.
    #[must_use]
    pub fn of_member(member: &str, members: &[String]) -> Option<Self> {
        let place = members.iter().position(|one| one == member)?;
        Some(Self { place: u16::try_from(place).ok()?, of: u16::try_from(members.len()).ok()? })
    }

    /// Whether a shard is part of it.
    #[must_use]
    pub const fn includes(self, shard: Shard) -> bool {
        shard.0 % self.of == self.place
    }
}

/// What is known of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// Which.
    pub shard: Shard,
    /// Who may publish it, while anyone may.
    pub owner: Option<String>,
    /// How many owners it has had.
    pub epoch: i64,
    /// For how long the owner has held it, in milliseconds.
    pub held_ms: i64,
    /// How many rows wait.
    pub backlog: u64,
    /// How long the oldest one has waited, in milliseconds.
    pub oldest_ms: Option<i64>,
}

/// Who may publish which shard, by the ledger's clock.
#[async_trait]
pub trait ShardLeases: Send + Sync {
    /// Takes the shards of a share that nobody holds, renews those of it that this owner holds, and gives up what it holds
    /// beyond. What is left of its earlier leases and not in the answer is lost.
    async fn claim(&self, owner: &str, ttl: Duration, share: Share) -> Result<Vec<Lease>, Error>;

    /// Gives up what this owner holds.
    async fn release(&self, owner: &str) -> Result<(), Error>;

    /// Every shard: whose it is, and what waits in it.
    async fn overview(&self) -> Result<Vec<ShardStatus>, Error>;
}

/// A leased writer number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterLease {
    /// What may be minted under it.
    pub grant: Grant,
    /// Higher than every earlier owner's of this number.
    pub epoch: i64,
    /// The ledger's clock when it was given, in milliseconds since 1970.
    pub ledger_unix_ms: i64,
}

/// The numbers under which ids are minted.
#[async_trait]
pub trait WriterNumbers: Send + Sync {
    /// Takes a number that nobody holds.
    async fn claim(&self, owner: &str, terms: WriterTerms) -> Result<WriterLease, Error>;

    /// Renews it and raises its ceiling. `None` when it was lost.
    async fn renew(
        &self,
        owner: &str,
        lease: &WriterLease,
        untouched_unix_ms: i64,
        terms: WriterTerms,
    ) -> Result<Option<WriterLease>, Error>;

    /// Gives it up: the next owner may begin where this one stopped.
    async fn release(&self, owner: &str, lease: &WriterLease, untouched_unix_ms: i64) -> Result<(), Error>;
}

/// For how long a writer number is given.
#[derive(Clone, Copy, Debug)]
pub struct WriterTerms {
    /// How long the lease stands without renewal.
    pub ttl: Duration,
    /// How far past the ledger's clock ids may be minted.
    pub window: Duration,
}
