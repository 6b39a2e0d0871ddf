//! The archive: wide rows for reading at scale, made from events. Embedded, it is the ledger's own tables, which have every
//! row since its transaction: there is nothing to write then, and nothing to fill.

mod fallback;
mod fill;
mod filled;
mod generation;
mod scylla;

use std::sync::Arc;

use async_trait::async_trait;
pub use fill::{Chunk, Filling};
pub(crate) use filled::open_scylla;
pub use generation::Generation;
use proto::{PostId, UserId};
pub(crate) use scylla::migrate as migrate_scylla;

use crate::Error;

/// The archive, each part by the trait of its concern.
#[derive(Clone)]
pub struct Archive {
    /// Every author's posts.
    pub posts_by_author: Arc<dyn PostsByAuthor>,
    /// Who follows whom.
    pub follows: Arc<dyn Follows>,
    /// All public posts.
    pub public_posts: Arc<dyn PublicPosts>,
    /// How it is filled from the ledger; `None` where it is the ledger.
    pub filling: Option<Arc<Filling>>,
}

/// A post as the archive has it: enough to find it, and to say what it said. Who may see it is asked of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedPost {
    /// Which.
    pub id: PostId,
    /// Who wrote it.
    pub author: UserId,
    /// What it says.
    pub text: String,
    /// When it was written.
    pub created_at_ms: i64,
}

/// Every author's posts, to the oldest: those that belong into timelines, and not what is for the author alone.
#[async_trait]
pub trait PostsByAuthor: Send + Sync {
    /// Adds posts that the ledger has, each with its version. Adding twice, or late, changes nothing.
    async fn add(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error>;

    /// Takes a post away, as of this version: one that is added with the same or a lower version stays away.
    async fn remove(&self, author: UserId, post: PostId, version: i64) -> Result<(), Error>;

    /// An author's posts with ids below `below`, newest first.
    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<ArchivedPost>, Error>;
}

/// That one follows the other, or has ended it, as of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who follows.
    pub follower: UserId,
    /// Whom.
    pub followee: UserId,
    /// Whether it is so; false: it has ended.
    pub active: bool,
    /// Of two, the higher one is the newer truth.
    pub version: i64,
}

/// Who follows whom, from both ends.
#[async_trait]
pub trait Follows: Send + Sync {
    /// Sets edges that the ledger has. In any order and any number of times, the highest version of an edge counts in the
    /// end; where two are equal, the end of it does.
    async fn set(&self, edges: &[Edge]) -> Result<(), Error>;

    /// The followers of several authors as one list of (author, follower), in that order: a chunk of it, beginning after a
    /// pair. A chunk that is shorter than `limit` is the last one.
    async fn followers(
        &self,
        authors: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
    ) -> Result<Vec<(UserId, UserId)>, Error>;

    /// The people whom a reader follows, in order of their ids: a chunk, beginning after one.
    async fn followees(&self, reader: UserId, after: Option<UserId>, limit: u32) -> Result<Vec<UserId>, Error>;
}

/// Which public posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of this server's people.
    Local,
    /// Those of everyone whom this server knows of.
    Global,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Local, Self::Global];
}

/// A page of public posts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicPage {
    /// Newest first.
    pub posts: Vec<ArchivedPost>,
    /// Where to go on; `None` when there is nothing older. A page may be short, or even empty, and still go on: one call
    /// looks through a limited stretch of time.
    pub next: Option<PostId>,
}

/// All public posts, to the oldest.
#[async_trait]
pub trait PublicPosts: Send + Sync {
    /// Adds posts that the ledger has, each with its version, to every scope. Adding twice, or late, changes nothing.
    async fn add(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error>;

    /// Takes a post out of every scope, as of this version: one that is added with the same or a lower version stays away.
    async fn remove(&self, post: PostId, version: i64) -> Result<(), Error>;

    /// The posts of a scope with ids below `below`.
    async fn page(&self, scope: Scope, below: Option<PostId>, limit: u32) -> Result<PublicPage, Error>;
}
