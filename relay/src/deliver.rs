//! From the event log to readers: archive first, then the author's recents, then the followers' homes, then one message to
//! each edge pod that holds connected followers. Every step can be done again without harm.

use std::{collections::BTreeMap, fmt::Display, str::FromStr, sync::Arc};

use async_trait::async_trait;
use chassis::{Clock, trace};
use prost::Message as _;
use proto::{
    PostId, UserId,
    freshet::event::v1::{Delivery, Envelope, Followed, Mark, PostCreated, envelope::Payload},
};
use store::{
    Shard, Stores,
    archive::PostsByAuthor,
    consumer::{Apply, Failure},
    ledger::{Graph, Likes, Post},
    sets::{Coverage, Entry, HOME_MEMBERS_KEPT, HomeTimelines, PodName, PodStreams, Recents, Settled},
};
use tokio::time::Instant;

/// Followers a push call: enough to make the call cheap, few enough not to hold others up.
const CHUNK_READERS: u32 = 250;

/// Applies the events of posts and of the graph.
pub(crate) struct Deliver {
    archive: Arc<dyn PostsByAuthor>,
    graph: Arc<dyn Graph>,
    homes: Arc<dyn HomeTimelines>,
    recents: Arc<dyn Recents>,
    pods: Arc<dyn PodStreams>,
    settled: Arc<dyn Settled>,
    clock: Arc<dyn Clock>,
}

impl Deliver {
    pub(crate) fn new(stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        Self {
            archive: stores.archive.posts_by_author.clone(),
            graph: stores.ledger.graph.clone(),
            homes: stores.sets.homes.clone(),
            recents: stores.sets.recents.clone(),
            pods: stores.sets.pod_streams.clone(),
            settled: stores.sets.settled.clone(),
            clock,
        }
    }

    /// Stores the post before it reads the followers, as a follow stores the edge before it reads the posts: of the two at
    /// the same moment, at least one sees the other.
    async fn post_created(&self, envelope: &Envelope, event: &PostCreated, not_after: Instant) -> Result<(), Failure> {
        let left_ms = not_after.saturating_duration_since(Instant::now()).as_millis();
        let not_after = self.clock.unix_ms() + i64::try_from(left_ms).unwrap_or(i64::MAX / 2);
        let post = Post {
            id: parse("post_id", &event.post_id)?,
            author: parse("author_id", &event.author_id)?,
            text: event.text.clone(),
            created_at_ms: event.created_at_ms,
            likes: Likes::default(),
        };
        self.archive.add(&post, envelope.version).await?;
        let entry = Entry { id: post.id.into(), author: post.author };
        self.recents.push(entry).await?;
        let online = self.push_to_followers(entry, not_after).await?;
        self.tell_pods(envelope, online).await
    }

    async fn push_to_followers(&self, entry: Entry, not_after: i64) -> Result<BTreeMap<PodName, Vec<UserId>>, Failure> {
        let mut online: BTreeMap<PodName, Vec<UserId>> = BTreeMap::new();
        let mut after = None;
        loop {
            let followers = self.graph.followers(entry.author, after, CHUNK_READERS).await?;
            let Some(last) = followers.last() else { return Ok(online) };
            after = Some(*last);
            for (pod, readers) in self.homes.push(&followers, entry, not_after).await? {
                online.entry(pod).or_default().extend(readers);
            }
            if followers.len() < CHUNK_READERS as usize {
                return Ok(online);
            }
        }
    }

    async fn tell_pods(&self, envelope: &Envelope, online: BTreeMap<PodName, Vec<UserId>>) -> Result<(), Failure> {
        for (pod, readers) in online {
            let delivery = Delivery {
                event: envelope.encode_to_vec(),
                reader_ids: readers.into_iter().map(UserId::get).collect(),
                traceparent: trace::current(),
            };
            self.pods.send(&pod, delivery.encode_to_vec().into()).await?;
        }
        Ok(())
    }

    /// Merges the followee's posts into a home that is there, down to its coverage. A home that is not there will be built
    /// with them.
    async fn followed(&self, event: &Followed) -> Result<(), Failure> {
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

impl Deliver {
    /// All that stands before a mark in its partition was applied before it.
    async fn passed(&self, mark: &Mark) -> Result<(), Failure> {
        let shard = u16::try_from(mark.partition).map_err(|cause| Failure::Final(format!("partition {cause}")))?;
        Ok(self.settled.passed(Shard(shard), mark.settled_unix_ms).await?)
    }
}

#[async_trait]
impl Apply for Deliver {
    async fn apply(&self, envelope: &Envelope, not_after: Instant) -> Result<(), Failure> {
        match &envelope.payload {
            Some(Payload::PostCreated(event)) => self.post_created(envelope, event, not_after).await,
            Some(Payload::Followed(event)) => self.followed(event).await,
            Some(Payload::Mark(mark)) => self.passed(mark).await,
            _ => Err(Failure::Final(format!("the relay does not know events of type {:?}", envelope.r#type))),
        }
    }
}

fn parse<Id: FromStr<Err: Display>>(field: &str, text: &str) -> Result<Id, Failure> {
    text.parse().map_err(|cause| Failure::Final(format!("{field} {cause}")))
}
