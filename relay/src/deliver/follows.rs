//! Someone follows someone: what the followee wrote comes into the follower's home.

use std::sync::Arc;

use async_trait::async_trait;
use proto::{PostId, freshet::event::v1::envelope::Payload};
use store::{
    Stores,
    archive::{Archive, Edge},
    consumer::{Event, Failure, Handler},
    sets::{Coverage, Entry, HOME_MEMBERS_KEPT, HomeTimelines},
};
use tokio::time::Instant;

use super::{mismatch, parse};

/// Applies follows.
pub(super) struct Followed {
    archive: Archive,
    homes: Arc<dyn HomeTimelines>,
}

impl Followed {
    pub(super) fn new(stores: &Stores) -> Self {
        Self { archive: stores.archive.clone(), homes: stores.sets.homes.clone() }
    }

    /// Merges the followee's posts into a home that is there, down to its coverage. A home that is not there will be built
    /// with them.
    async fn merge(&self, Edge { follower: reader, followee, .. }: Edge) -> Result<(), Failure> {
        if self.homes.coverage(reader).await?.is_none() {
            return Ok(());
        }
        let wanted = HOME_MEMBERS_KEPT - 1;
        let rows = u32::try_from(wanted).unwrap_or(u32::MAX);
        let posts = self.archive.posts_by_author.page(followee, None::<PostId>, rows).await?;
        // Where the followee has more posts than fit, what lies below the last of these is read from the archive.
        let complete_to = match posts.last() {
            Some(last) if posts.len() == wanted => Coverage::down_to(last.id.into()),
            _ => Coverage::TO_THE_BEGINNING,
        };
        let entries: Vec<_> = posts.iter().map(|post| Entry { id: post.id.into(), author: post.author }).collect();
        Ok(self.homes.merge(reader, &entries, complete_to).await?)
    }
}

#[async_trait]
impl Handler for Followed {
    /// Stores the edges before it reads the posts, as a fan-out stores the posts before it reads the followers: of the two at
    /// the same moment, at least one sees the other.
    async fn apply(&self, events: &[Event], _not_after: Instant) -> Result<(), Failure> {
        let edges = events.iter().map(edge).collect::<Result<Vec<_>, _>>()?;
        self.archive.follows.set(&edges).await?;
        for edge in edges {
            self.merge(edge).await?;
        }
        Ok(())
    }
}

/// The edge that an event tells of.
fn edge(event: &Event) -> Result<Edge, Failure> {
    let Some(Payload::Followed(followed)) = &event.envelope.payload else { return Err(mismatch(event)) };
    Ok(Edge {
        follower: parse("follower_id", &followed.follower_id)?,
        followee: parse("followee_id", &followed.followee_id)?,
        active: true,
        version: event.envelope.version,
    })
}
