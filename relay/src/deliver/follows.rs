//! Someone follows someone: what the followee wrote comes into the follower's home.

use std::sync::Arc;

use async_trait::async_trait;
use proto::{
    PostId, UserId,
    freshet::event::v1::{self as wire, envelope::Payload},
};
use store::{
    Stores,
    archive::PostsByAuthor,
    consumer::{Event, Failure, Handler},
    sets::{Coverage, Entry, HOME_MEMBERS_KEPT, HomeTimelines},
};
use tokio::time::Instant;

use super::{mismatch, parse};

/// Applies follows.
pub(super) struct Followed {
    archive: Arc<dyn PostsByAuthor>,
    homes: Arc<dyn HomeTimelines>,
}

impl Followed {
    pub(super) fn new(stores: &Stores) -> Self {
        Self { archive: stores.archive.posts_by_author.clone(), homes: stores.sets.homes.clone() }
    }

    /// Merges the followee's posts into a home that is there, down to its coverage. A home that is not there will be built
    /// with them.
    async fn merge(&self, event: &wire::Followed) -> Result<(), Failure> {
        let (reader, followee) =
            (parse("follower_id", &event.follower_id)?, parse::<UserId>("followee_id", &event.followee_id)?);
        if self.homes.coverage(reader).await?.is_none() {
            return Ok(());
        }
        let wanted = HOME_MEMBERS_KEPT - 1;
        let posts = self.archive.page(followee, None::<PostId>, u32::try_from(wanted).unwrap_or(u32::MAX)).await?;
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
    async fn apply(&self, events: &[Event], _not_after: Instant) -> Result<(), Failure> {
        for event in events {
            let Some(Payload::Followed(followed)) = &event.envelope.payload else { return Err(mismatch(event)) };
            self.merge(followed).await?;
        }
        Ok(())
    }
}
