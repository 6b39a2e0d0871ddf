//! Someone follows someone, or no longer does: the archive learns of it, and the follower's home gets what the followee wrote,
//! or loses it.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use chassis::Clock;
use proto::{PostId, freshet::event::v1::envelope::Payload};
use store::{
    Stores,
    archive::{Archive, Edge},
    consumer::{Event, Failure, Handler},
    ledger::{Graph, Modes, Pair},
    sets::{AuthorState, Authors, Coverage, Entry, FollowVersion, HOME_MEMBERS_KEPT, HomeTimelines, Special},
};
use tokio::time::Instant;

use super::{deadline_ms, mismatch, parse};

/// Applies follows and their ends.
pub(super) struct Follows {
    archive: Archive,
    graph: Arc<dyn Graph>,
    modes: Arc<dyn Modes>,
    homes: Arc<dyn HomeTimelines>,
    authors: Arc<dyn Authors>,
    clock: Arc<dyn Clock>,
}

impl Follows {
    pub(super) fn new(stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        Self {
            archive: stores.archive.clone(),
            graph: stores.ledger.graph.clone(),
            modes: stores.ledger.modes.clone(),
            homes: stores.sets.homes.clone(),
            authors: stores.sets.authors.clone(),
            clock,
        }
    }

    /// Those edges that nothing newer is known of. An event may come long after the sets forgot what came after it: the
    /// ledger has not.
    async fn newest(&self, edges: Vec<Edge>) -> Result<Vec<Edge>, Failure> {
        let pairs: Vec<_> = edges.iter().map(|edge| Pair { from: edge.follower, to: edge.followee }).collect();
        let known = self.graph.edges(&pairs).await?;
        let known: HashMap<_, _> = known.iter().map(|edge| ((edge.follower, edge.followee), edge.version)).collect();
        let is_newest =
            |edge: &Edge| known.get(&(edge.follower, edge.followee)).is_none_or(|known| *known <= edge.version);
        Ok(edges.into_iter().filter(is_newest).collect())
    }

    /// Merges the followee's posts into a home that is there, down to its coverage. A home that is not there will be built
    /// with them. A followee who is merged at read is only marked so: the mode is read after the follow was committed, so that
    /// either this sees a crossing, or the crossing's job sees the follower.
    async fn merge(&self, follow: FollowVersion, not_after_ms: i64) -> Result<(), Failure> {
        if self.homes.coverage(follow.reader).await?.is_none() {
            return Ok(());
        }
        let mut states = vec![AuthorState::new(follow.author, Special::Unfollowed, false, follow.version)];
        if let Some(mode) = self.modes.modes(&[follow.author]).await?.first() {
            states.push(mode.state());
            if mode.mode.is_merged() {
                let nothing = Coverage::TO_THE_BEGINNING;
                return Ok(self.homes.merge_with(follow.reader, &states, &[], nothing, not_after_ms).await?);
            }
        }
        let wanted = HOME_MEMBERS_KEPT - 1;
        let rows = u32::try_from(wanted).unwrap_or(u32::MAX);
        let posts = self.archive.posts_by_author.page(follow.author, None::<PostId>, rows).await?;
        // Where the followee has more posts than fit, what lies below the last of these is read from the archive.
        let complete_to = match posts.last() {
            Some(last) if posts.len() == wanted => Coverage::down_to(last.id.into()),
            _ => Coverage::TO_THE_BEGINNING,
        };
        let entries: Vec<_> = posts.iter().map(|post| Entry { id: post.id.into(), author: post.author }).collect();
        Ok(self.homes.merge_with(follow.reader, &states, &entries, complete_to, not_after_ms).await?)
    }

    /// Hides the followee, as the call that ended the follow did before its answer, and then scrubs: only while nobody has
    /// followed again.
    async fn scrub(&self, ended: FollowVersion, not_after_ms: i64) -> Result<(), Failure> {
        let state = AuthorState::new(ended.author, Special::Unfollowed, true, ended.version);
        self.authors.set(ended.reader, &[state], not_after_ms).await?;
        Ok(self.authors.scrub(ended).await?)
    }
}

#[async_trait]
impl Handler for Follows {
    /// Stores the edges before it reads the posts, as a fan-out stores the posts before it reads the followers: of the two at
    /// the same moment, at least one sees the other.
    async fn apply(&self, events: &[Event], not_after: Instant) -> Result<(), Failure> {
        let edges = events.iter().map(edge).collect::<Result<Vec<_>, _>>()?;
        let not_after_ms = deadline_ms(&*self.clock, not_after);
        self.archive.follows.set(&edges).await?;
        for edge in self.newest(edges).await? {
            let version = FollowVersion { reader: edge.follower, author: edge.followee, version: edge.version };
            match edge.active {
                true => self.merge(version, not_after_ms).await?,
                false => self.scrub(version, not_after_ms).await?,
            }
        }
        Ok(())
    }
}

/// The edge that an event tells of.
fn edge(event: &Event) -> Result<Edge, Failure> {
    let (follower, followee, active) = match &event.envelope.payload {
        Some(Payload::Followed(followed)) => (&followed.follower_id, &followed.followee_id, true),
        Some(Payload::Unfollowed(ended)) => (&ended.follower_id, &ended.followee_id, false),
        _ => return Err(mismatch(event)),
    };
    Ok(Edge {
        follower: parse("follower_id", follower)?,
        followee: parse("followee_id", followee)?,
        active,
        version: event.envelope.version,
    })
}
