//! The sets: sorted sets and small records that are made from the truth and can be lost. In Redis at scale, in the process
//! when embedded.

pub mod entry;
mod memory;

use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
pub use entry::{Coverage, Entry};
pub use memory::Memory;
use proto::{EntryId, PostId, UserId};
use sha2::{Digest as _, Sha256};

use crate::{Error, ledger::Likes};

/// What a home timeline, its sentinel included, holds at the most. Redis turns a larger sorted set into a skiplist, of five
/// times the memory, and never back.
pub const HOME_MEMBERS_MAX: usize = 128;
/// To how many members a full home is cut before anything is added.
pub const HOME_MEMBERS_KEPT: usize = 96;
/// How many of an author's newest posts are kept.
pub const RECENT_MEMBERS_MAX: usize = 128;
/// How many messages wait for an edge pod at the most.
pub const POD_STREAM_MESSAGES_MAX: usize = 10_000;
const _: () = assert!(HOME_MEMBERS_KEPT < HOME_MEMBERS_MAX);

/// The right to build a home: only its holder's writes count as the build's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildToken(pub u64);

/// What a reader's home was when somebody wanted to build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Build {
    /// There was none: it is made, empty, and the caller builds it.
    Mine(BuildToken),
    /// Another one builds it.
    Theirs,
    /// It is there.
    Done,
}

/// A page of a home's set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Newest first; none below the coverage.
    pub entries: Vec<Entry>,
    /// Down to where the set is complete.
    pub coverage: Coverage,
}

/// Names an edge pod.
pub type PodName = String;

/// Readers' home timelines.
#[async_trait]
pub trait HomeTimelines: Send + Sync {
    /// Adds an entry to those of the readers' homes that exist (those being built too), and tells which readers are
    /// connected where, whether they have a home or not. Refused as [`Error::Unavailable`] when the clock is past
    /// `not_after_unix_ms`: whoever was frozen must fetch the event again.
    async fn push(
        &self,
        readers: &[UserId],
        entry: Entry,
        not_after_unix_ms: i64,
    ) -> Result<BTreeMap<PodName, Vec<UserId>>, Error>;

    /// Adds older entries to a home that exists: all that there are down to `complete_to`.
    async fn merge(&self, reader: UserId, entries: &[Entry], complete_to: Coverage) -> Result<(), Error>;

    /// Down to where a home is complete; `None` when there is no home.
    async fn coverage(&self, reader: UserId) -> Result<Option<Coverage>, Error>;

    /// A page of a complete home, newest first, with ids below `below`; `None` when there is no complete home.
    async fn page(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Option<Page>, Error>;

    /// Begins to build a home where there is none, or where a builder died.
    async fn begin_build(&self, reader: UserId) -> Result<Build, Error>;

    /// Ends a build: adds what was read, down to `complete_to`. False when the token is no longer the home's.
    async fn finish_build(
        &self,
        reader: UserId,
        token: BuildToken,
        entries: &[Entry],
        complete_to: Coverage,
    ) -> Result<bool, Error>;
}

/// Authors' newest posts.
#[async_trait]
pub trait Recents: Send + Sync {
    /// Adds a post.
    async fn push(&self, entry: Entry) -> Result<(), Error>;

    /// An author's newest entries, newest first.
    async fn newest(&self, author: UserId, limit: usize) -> Result<Vec<Entry>, Error>;
}

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whose.
    pub user: UserId,
    /// When it ends.
    pub expires_at_ms: i64,
}

/// The hash of a session's secret: the secret itself is stored nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionHash([u8; 32]);

impl SessionHash {
    /// The hash of a secret.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }
}

/// Who is signed in.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Opens a session.
    async fn open(&self, hash: SessionHash, session: Session) -> Result<(), Error>;

    /// The session, while it lasts.
    async fn find(&self, hash: SessionHash) -> Result<Option<Session>, Error>;

    /// Ends a session.
    async fn end(&self, hash: SessionHash) -> Result<(), Error>;
}

/// An event stream that a reader holds open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Unique.
    pub id: String,
    /// Where it is held.
    pub pod: PodName,
    /// Whose.
    pub user: UserId,
}

/// Who is connected where.
#[async_trait]
pub trait Connections: Send + Sync {
    /// Registers a pod's connections, or renews them, for so many milliseconds.
    async fn register(&self, connections: &[Connection], ttl_ms: i64) -> Result<(), Error>;

    /// Forgets a connection.
    async fn forget(&self, connection: &Connection) -> Result<(), Error>;

    /// A reader's connections.
    async fn of_user(&self, user: UserId) -> Result<Vec<Connection>, Error>;
}

/// A message on a pod's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodMessage {
    /// Its place: it rises.
    pub position: u64,
    /// An encoded `freshet.event.v1.Delivery`.
    pub delivery: Bytes,
}

/// What edge pods are told, each on its own capped stream: a dropped connection loses nothing.
#[async_trait]
pub trait PodStreams: Send + Sync {
    /// Tells a pod.
    async fn send(&self, pod: &str, delivery: Bytes) -> Result<(), Error>;

    /// What a pod was told after a position, oldest first. Waits until there is something.
    async fn receive(&self, pod: &str, after: u64) -> Result<Vec<PodMessage>, Error>;
}

/// A post's place in a hot list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Which post.
    pub post: PostId,
    /// Its score.
    pub score: i64,
}

/// The hot posts of each day, by the day's name (`YYYYMMDD`).
#[async_trait]
pub trait HotLists: Send + Sync {
    /// Whether the day's list is complete. It is not after the sets were lost.
    async fn is_complete(&self, day: &str) -> Result<bool, Error>;

    /// Says that everything up to now was recorded.
    async fn set_complete(&self, day: &str) -> Result<(), Error>;

    /// Records a post's likes, unless a newer version is there.
    async fn record(&self, day: &str, post: PostId, likes: Likes, score: i64) -> Result<(), Error>;

    /// The hottest first; of two with the same score, the newer.
    async fn top(&self, day: &str, limit: usize) -> Result<Vec<Hot>, Error>;
}
