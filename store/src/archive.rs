//! The archive: wide rows for reading at scale, made from events. Embedded, it is the ledger's own tables.

mod scylla;

use std::sync::Arc;

use async_trait::async_trait;
use proto::{PostId, UserId};
pub(crate) use scylla::{Scylla, migrate as migrate_scylla};

use crate::{Error, ledger::Post};

/// The archive, each part by the trait of its concern.
#[derive(Clone)]
pub struct Archive {
    /// Every author's posts.
    pub posts_by_author: Arc<dyn PostsByAuthor>,
}

/// Every author's posts, to the oldest.
#[async_trait]
pub trait PostsByAuthor: Send + Sync {
    /// Adds a post that the ledger has. Adding twice, or late, changes nothing.
    async fn add(&self, post: &Post, version: i64) -> Result<(), Error>;

    /// An author's posts with ids below `below`, newest first.
    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<Post>, Error>;
}
