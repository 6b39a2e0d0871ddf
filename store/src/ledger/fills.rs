//! How far the archive was filled from the ledger, and the rows that it is filled with.

use std::{fmt, time::Duration};

use async_trait::async_trait;

use super::Post;
use crate::{
    Error,
    archive::{Edge, Generation},
};

/// The last row that a fill has written, by the table that it is in. Tables come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// In the posts, by id.
    Posts(i64),
    /// In the follows, by follower and followee.
    Follows(i64, i64),
}

impl Cursor {
    /// Before the first row.
    pub const BEGINNING: Self = Self::Posts(0);
    /// Before the first follow.
    pub const FOLLOWS: Self = Self::Follows(0, 0);
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Posts(_) => "posts",
            Self::Follows(..) => "follows",
        })
    }
}

/// The right to fill a generation of the archive, and how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillLease {
    /// Which generation.
    pub generation: Generation,
    /// Whose it is.
    pub owner: String,
    /// Higher than every earlier owner's.
    pub epoch: i64,
    /// What was written already.
    pub cursor: Cursor,
    /// How many rows that were.
    pub rows_done: u64,
}

/// What is known of a fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillStatus {
    /// Whether the archive has every row.
    pub complete: bool,
    /// What was written already.
    pub cursor: Cursor,
    /// How many rows that were.
    pub rows_done: u64,
    /// How many there were when it began, roughly.
    pub rows_estimated: u64,
    /// Who fills, while anyone does.
    pub owner: Option<String>,
}

/// How far the archive was filled, by the ledger's clock. Of all generations only the newest is known: one that comes back
/// from a backup is filled again.
#[async_trait]
pub trait ArchiveFills: Send + Sync {
    /// The generation that has every row, where there is one.
    async fn completed(&self) -> Result<Option<Generation>, Error>;

    /// How far a generation is; `None` when nobody has begun.
    async fn status(&self, generation: Generation) -> Result<Option<FillStatus>, Error>;

    /// Takes the right to fill a generation, where the last one stopped. `None` when it is complete, or another's. From then
    /// on no other generation counts as complete.
    async fn claim(&self, generation: Generation, owner: &str, ttl: Duration) -> Result<Option<FillLease>, Error>;

    /// Writes down how far it is, and renews the lease. False, and nothing is written, when the lease was lost.
    async fn checkpoint(&self, lease: &FillLease, ttl: Duration) -> Result<bool, Error>;

    /// Writes down that every row is in the archive. False, and nothing is written, when the lease was lost.
    async fn finish(&self, lease: &FillLease) -> Result<bool, Error>;

    /// Gives the lease up.
    async fn release(&self, lease: &FillLease) -> Result<(), Error>;

    /// Makes a complete generation begin again. False when it is not complete.
    async fn begin_again(&self, generation: Generation) -> Result<bool, Error>;

    /// Posts with ids above one, in order; without those that are deleted, or for their authors alone.
    async fn posts_after(&self, id: i64, limit: u32) -> Result<Vec<Post>, Error>;

    /// Follows after one of (follower, followee), in that order; those that have ended too.
    async fn follows_after(&self, pair: (i64, i64), limit: u32) -> Result<Vec<Edge>, Error>;
}
