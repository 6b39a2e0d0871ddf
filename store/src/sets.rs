//! The sets: sorted sets and small records that are made from the truth and can be lost. In Redis at scale, in the process
//! when embedded.

mod attempts;
mod authors;
pub mod entry;
mod memory;
mod redis;
mod sessions;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
pub use attempts::{Attempts, KNOWN_SOURCES_MAX, Limit};
pub use authors::{AuthorState, Authors, FOLLOWED_KEPT_MS, FollowVersion, STATE_WRITE_MS_MAX, Special};
use bytes::Bytes;
pub use entry::{Coverage, Entry};
pub use memory::Memory;
use proto::{EntryId, PostId, UserId};
pub(crate) use redis::Redis;
pub use sessions::{
    InvalidSessionId, SESSION_SEEN_MS, SESSIONS_A_PERSON_MAX, Session, SessionHash, SessionId, Sessions,
};

use crate::{Error, Shard, event_log::Lane, ledger::Likes};

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

/// How long a build may take: then its builder is taken for dead, and another one begins.
pub const BUILD_MS_MAX: i64 = 5_000;

/// The sets, each by the trait of its concern.
#[derive(Clone)]
pub struct Sets {
    /// Readers' home timelines.
    pub homes: Arc<dyn HomeTimelines>,
    /// What readers' authors are to them.
    pub authors: Arc<dyn Authors>,
    /// Authors' newest posts.
    pub recents: Arc<dyn Recents>,
    /// Who is signed in.
    pub sessions: Arc<dyn Sessions>,
    /// How often something was tried.
    pub attempts: Arc<dyn Attempts>,
    /// Who is connected where.
    pub connections: Arc<dyn Connections>,
    /// What edge pods are told.
    pub pod_streams: Arc<dyn PodStreams>,
    /// The hot posts of each day.
    pub hot_lists: Arc<dyn HotLists>,
    /// Which relays there are.
    pub relay_members: Arc<dyn RelayMembers>,
    /// How far events are applied.
    pub progress: Arc<dyn Progress>,
    /// How far what is in the sets is whole.
    pub settled: Arc<dyn Settled>,
}

impl Sets {
    /// All of them by one adapter.
    pub(crate) fn of<A>(adapter: Arc<A>) -> Self
    where
        A: HomeTimelines
            + Authors
            + Recents
            + Sessions
            + Attempts
            + Connections
            + PodStreams
            + HotLists
            + RelayMembers
            + Settled
            + Progress
            + 'static,
    {
        Self {
            homes: adapter.clone(),
            authors: adapter.clone(),
            recents: adapter.clone(),
            sessions: adapter.clone(),
            attempts: adapter.clone(),
            connections: adapter.clone(),
            pod_streams: adapter.clone(),
            hot_lists: adapter.clone(),
            relay_members: adapter.clone(),
            settled: adapter.clone(),
            progress: adapter,
        }
    }
}

/// The right to build a home: only its holder's writes count as the build's. It tells when the build began, so that a
/// builder that died can be told from one at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildToken(pub u64);

impl BuildToken {
    /// 48 bits of the millisecond when the build began, 16 of randomness.
    #[must_use]
    pub fn new(began_unix_ms: i64, random: u64) -> Self {
        Self(began_unix_ms.unsigned_abs() << 16 | random & 0xFFFF)
    }

    /// When the build began.
    #[must_use]
    pub fn began_unix_ms(self) -> i64 {
        (self.0 >> 16).cast_signed()
    }
}

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
    /// What the reader's authors are to them, as of the same moment: entries of those who are hidden are among the others.
    pub authors: Vec<AuthorState>,
}

/// Names an edge pod.
pub type PodName = String;

/// What a reader's home is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// Whose home.
    pub reader: UserId,
    /// In any order.
    pub entries: Vec<Entry>,
}

/// Readers' home timelines.
#[async_trait]
pub trait HomeTimelines: Send + Sync {
    /// Adds entries to those of the readers' homes that exist (those being built too), and tells which readers are
    /// connected where, whether they have a home or not. A reader is named once. Refused as [`Error::Unavailable`] when the
    /// clock is past `not_after_unix_ms`: whoever was frozen must fetch the events again.
    async fn push(&self, pushes: &[Push], not_after_unix_ms: i64) -> Result<BTreeMap<PodName, Vec<UserId>>, Error>;

    /// A follow: adds the author's older entries to a home that exists, all that there are down to `complete_to`, and ends
    /// "unfollowed" in the same step, so that the author is never shown with a hole. Does nothing where a newer version of
    /// the follow is known. Refused as [`Error::Unavailable`] when the clock is past `not_after_unix_ms`.
    async fn merge(
        &self,
        follow: FollowVersion,
        entries: &[Entry],
        complete_to: Coverage,
        not_after_unix_ms: i64,
    ) -> Result<(), Error> {
        let followed = AuthorState::new(follow.author, Special::Unfollowed, false, follow.version);
        self.merge_with(follow.reader, &[followed], entries, complete_to, not_after_unix_ms).await
    }

    /// Adds an author's entries to a home that exists, all that there are down to `complete_to`, and sets states of the author
    /// in the same step, each unless a newer one is there. Does nothing where a newer one of the first is. Refused as
    /// [`Error::Unavailable`] when the clock is past `not_after_unix_ms`.
    async fn merge_with(
        &self,
        reader: UserId,
        states: &[AuthorState],
        entries: &[Entry],
        complete_to: Coverage,
        not_after_unix_ms: i64,
    ) -> Result<(), Error>;

    /// Takes an entry out of the homes of these readers, those being built too. Its post is gone for good, so that it does not
    /// matter when this comes, or how often.
    async fn take_out(&self, readers: &[UserId], entry: Entry) -> Result<(), Error>;

    /// Down to where a home is complete; `None` when there is no home.
    async fn coverage(&self, reader: UserId) -> Result<Option<Coverage>, Error>;

    /// A page of a complete home, newest first, with ids below `below`; `None` when there is no complete home, or when the
    /// states of its authors are not of the same build: a lost key must not look like "nobody is hidden".
    async fn page(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Option<Page>, Error>;

    /// Begins to build a home where there is none, or where a builder died.
    async fn begin_build(&self, reader: UserId) -> Result<Build, Error>;

    /// Ends a build: adds what was read, down to `complete_to`, and the states of authors, each unless a newer one was set
    /// meanwhile. False when the token is no longer the home's.
    async fn finish_build(
        &self,
        reader: UserId,
        token: BuildToken,
        entries: &[Entry],
        complete_to: Coverage,
        authors: &[AuthorState],
    ) -> Result<bool, Error>;

    /// Takes a reader's home away, with the states of its authors; a build that is under way too.
    async fn remove(&self, reader: UserId) -> Result<(), Error>;
}

/// Authors' newest posts.
#[async_trait]
pub trait Recents: Send + Sync {
    /// Adds posts, each to its author's.
    async fn push(&self, entries: &[Entry]) -> Result<(), Error>;

    /// Takes a post that is gone for good out of its author's.
    async fn take_out(&self, entry: Entry) -> Result<(), Error>;

    /// An author's newest entries, newest first.
    async fn newest(&self, author: UserId, limit: usize) -> Result<Vec<Entry>, Error>;
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
    /// Registers a pod's connections, or renews them, for so many milliseconds. Tells which of them were not registered
    /// until now: for a renewal that means that the registry was lost, and that the relay knew nothing of them meanwhile.
    /// What this round itself registered counts as new again: so whoever missed the answer asks once more with the same
    /// number, and every other call has another one.
    async fn register(&self, connections: &[Connection], ttl_ms: i64, round: u64) -> Result<Vec<Connection>, Error>;

    /// Forgets a connection.
    async fn forget(&self, connection: &Connection) -> Result<(), Error>;

    /// A reader's connections.
    async fn of_user(&self, user: UserId) -> Result<Vec<Connection>, Error>;
}

/// A place in a pod's stream: how many messages there were before it, and the store's own name of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodPosition {
    /// Messages are numbered from 1 on, without a gap, for as long as the stream is not lost.
    pub number: u64,
    /// The store's own name of it.
    pub token: (u64, u64),
}

/// What a pod was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Encoded `freshet.event.v1.Delivery` messages, oldest first.
    pub deliveries: Vec<Bytes>,
    /// Whether messages before these were lost: the stream was cut at its cap, or the store lost it.
    pub missed: bool,
    /// Where to go on.
    pub position: PodPosition,
}

/// What edge pods are told, each on its own capped stream: a dropped connection loses nothing.
#[async_trait]
pub trait PodStreams: Send + Sync {
    /// Tells a pod, in this order.
    async fn send(&self, pod: &str, deliveries: &[Bytes]) -> Result<(), Error>;

    /// What a pod was told after a position; a new pod begins at the default one. Waits until there is something.
    async fn receive(&self, pod: &str, after: PodPosition) -> Result<Told, Error>;
}

/// A post's place in a hot list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hot {
    /// Which post.
    pub post: PostId,
    /// Its score.
    pub score: i64,
}

/// A filling of a day's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fill(pub u64);

/// The hot posts of each day, by the day's name (`YYYYMMDD`).
#[async_trait]
pub trait HotLists: Send + Sync {
    /// Whether the day's list is complete. It is not after the sets were lost.
    async fn is_complete(&self, day: &str) -> Result<bool, Error>;

    /// Begins to fill a day's list: what is recorded from now on stays, for as long as the list is not lost.
    async fn begin_fill(&self, day: &str) -> Result<Fill, Error>;

    /// Says that all was recorded since this fill began. False, and the list is not complete, when it was lost meanwhile.
    async fn set_complete(&self, day: &str, fill: Fill) -> Result<bool, Error>;

    /// Records a post's likes, unless a newer version is there.
    async fn record(&self, day: &str, post: PostId, likes: Likes, score: i64) -> Result<(), Error>;

    /// The hottest first; of two with the same score, the newer.
    async fn top(&self, day: &str, limit: usize) -> Result<Vec<Hot>, Error>;
}

/// Which relays there are: the hint by which they divide the shards. The right to publish one is a lease of the ledger.
#[async_trait]
pub trait RelayMembers: Send + Sync {
    /// Says that a relay is there for so many milliseconds, and tells of all that are, in order.
    async fn ping(&self, member: &str, ttl_ms: i64) -> Result<Vec<PodName>, Error>;

    /// Says that a relay is there no longer.
    async fn leave(&self, member: &str) -> Result<(), Error>;
}

/// How far events are applied to readers' homes. It is kept beside the homes, a bucket of readers at a time, so that it can be
/// no newer than they are: when a copy that was behind takes over, or an old one is restored, it tells what they lack.
#[async_trait]
pub trait Progress: Send + Sync {
    /// Notes how far a lane is applied; without a position it only asks. Answers up to where it is applied really, when the
    /// homes are of an earlier time: from there on events must be applied again. Homes that nothing is known of are dropped,
    /// to be built when they are asked for.
    ///
    /// It goes on to answer so until that is accepted.
    async fn note(&self, lane: Lane, position: Option<i64>) -> Result<Option<i64>, Error>;

    /// Says that the lane's consumer has gone back to where the homes are, and that this is safe from its death.
    async fn accept(&self, lane: Lane) -> Result<(), Error>;
}

/// How far the events of each partition of the posts were applied, by the marks among them. It lies with what they were applied
/// to, and is lost with it.
#[async_trait]
pub trait Settled: Send + Sync {
    /// Says that a mark was passed: all of its partition from up to this millisecond was applied. It never goes back.
    async fn passed(&self, shard: Shard, unix_ms: i64) -> Result<(), Error>;

    /// The millisecond of each of so many shards, in order; `None` where no mark was passed since the sets were lost.
    async fn all(&self, shards: u16) -> Result<Vec<Option<i64>>, Error>;

    /// The millisecond up to which all of them are settled: the least. `None` where one is missing: that one may be far behind.
    async fn settled(&self, shards: u16) -> Result<Option<i64>, Error> {
        Ok(self.all(shards).await?.into_iter().min().flatten())
    }
}
