//! Fills an archive that is new, or was lost, from the ledger's rows.
//!
//! Why that makes it whole: whatever was written to a lost archive had been committed to the ledger before, so before the new
//! archive had its mark; and a fill begins after it has read the mark, so it reads all of that. What commits later comes by
//! its event, which is applied to the new archive. Where both come, the version decides. A row may surface behind the
//! fill's cursor for the same reason: it has committed late, and its event brings it.

use std::{sync::Arc, time::Duration};

use chassis::{Random, failpoint};
use futures_util::future::try_join;

use super::{ArchivedPost, Follows, Generation, PostsByAuthor, PublicPosts, scylla::Mark};
use crate::{
    Error,
    ledger::{ArchiveFills, Cursor, FillLease, FillStatus, Post, Visibility},
};

/// Few enough to be done well before the lease runs out; and the next one begins only when all of it is written, so that a
/// fill never has more under way than a busy relay has.
const CHUNK_ROWS: u32 = 500;
const LEASE_TTL: Duration = Duration::from_secs(15);

/// Fills an archive, chunk by chunk.
pub struct Filling {
    pub(super) posts_by_author: Arc<dyn PostsByAuthor>,
    pub(super) follows: Arc<dyn Follows>,
    pub(super) public_posts: Arc<dyn PublicPosts>,
    pub(super) mark: Arc<Mark>,
    pub(super) fills: Arc<dyn ArchiveFills>,
    pub(super) random: Arc<dyn Random>,
}

/// What came of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// It is written, and there are more.
    Written,
    /// It was the last one: the archive has every row.
    Last,
    /// The lease was lost, or the archive: whoever has the right begins, or goes on.
    Lost,
}

impl Filling {
    /// The generation that the archive is in; one that has no mark gets it. `None` while that is under way.
    pub async fn generation(&self) -> Result<Option<Generation>, Error> {
        self.mark.read_or_make(&*self.random).await
    }

    /// How far a generation is; `None` when nobody has begun.
    pub async fn status(&self, generation: Generation) -> Result<Option<FillStatus>, Error> {
        self.fills.status(generation).await
    }

    /// Makes a generation that is complete begin again. False when it is not complete.
    pub async fn begin_again(&self, generation: Generation) -> Result<bool, Error> {
        self.fills.begin_again(generation).await
    }

    /// Takes the right to fill the archive as it is now. `None` when there is nothing to do, or another one does it.
    pub async fn claim(&self, owner: &str) -> Result<Option<FillLease>, Error> {
        let Some(generation) = self.generation().await? else { return Ok(None) };
        match self.fills.status(generation).await? {
            // A look first: it costs less than a claim that fails.
            Some(FillStatus { complete: true, .. }) => Ok(None),
            Some(FillStatus { owner: Some(holder), .. }) if holder != owner => Ok(None),
            _ => self.fills.claim(generation, owner, LEASE_TTL).await,
        }
    }

    /// Writes the next chunk, and then how far it is. A death in between makes the next one write the chunk again.
    pub async fn write_chunk(&self, lease: &mut FillLease) -> Result<Chunk, Error> {
        failpoint::reach("fill.before_chunk").await;
        let (next, rows) = self.copy(lease.cursor).await?;
        // Read after the writes were answered: while the mark stands, they went to the archive that it belongs to.
        if self.mark.read().await? != Some(lease.generation) {
            return Ok(Chunk::Lost);
        }
        lease.rows_done += rows as u64;
        lease.cursor = next.unwrap_or(lease.cursor);
        let kept = match next {
            Some(_) => self.fills.checkpoint(lease, LEASE_TTL).await?,
            None => self.fills.finish(lease).await?,
        };
        failpoint::reach("fill.after_chunk").await;
        Ok(match next {
            _ if !kept => Chunk::Lost,
            Some(_) => Chunk::Written,
            None => Chunk::Last,
        })
    }

    /// Gives the right up: another one can go on at once.
    pub async fn release(&self, lease: &FillLease) -> Result<(), Error> {
        self.fills.release(lease).await
    }

    /// Copies the rows after a cursor. Gives the cursor after them, if there may be more, and their number.
    async fn copy(&self, cursor: Cursor) -> Result<(Option<Cursor>, usize), Error> {
        let is_full = |rows: usize| rows >= CHUNK_ROWS as usize;
        match cursor {
            Cursor::Posts(after) => {
                let posts = self.fills.posts_after(after, CHUNK_ROWS).await?;
                let archived = |post: &Post| (ArchivedPost::from(post), post.version);
                let all: Vec<_> = posts.iter().map(archived).collect();
                let public = posts.iter().filter(|post| post.visibility == Visibility::Public).map(archived);
                let public: Vec<_> = public.collect();
                try_join(self.posts_by_author.add(&all), self.public_posts.add(&public)).await?;
                let last = posts.last().filter(|_| is_full(posts.len()));
                let next = last.map_or(Cursor::FOLLOWS, |post| Cursor::Posts(post.id.get()));
                Ok((Some(next), posts.len()))
            }
            Cursor::Follows(follower, followee) => {
                let edges = self.fills.follows_after((follower, followee), CHUNK_ROWS).await?;
                self.follows.set(&edges).await?;
                let last = edges.last().filter(|_| is_full(edges.len()));
                Ok((last.map(|edge| Cursor::Follows(edge.follower.get(), edge.followee.get())), edges.len()))
            }
        }
    }
}
