//! Posts on their way to readers, many at a time: archive first, then the authors' recents, then the followers' homes, then
//! one message to each edge pod that holds connected followers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use async_trait::async_trait;
use bytes::Bytes;
use chassis::{Clock, failpoint, trace};
use futures_util::future::{try_join, try_join_all};
use prost::Message as _;
use proto::{
    UserId,
    freshet::{
        event::v1::{self as wire, Delivery, FanOut, envelope::Payload},
        post::v1::Visibility as PostVisibility,
    },
};
use store::{
    Stores,
    archive::{Archive, ArchivedPost},
    consumer::{Event, Failure, Handler},
    ledger::{Graph, Mode, Modes, Visibility},
    sets::{Entry, HomeTimelines, PodName, PodStreams, Push, Recents},
};
use tokio::time::Instant;

use super::{deadline_ms, mismatch, parse};

/// Followers that are read at once: enough to make it cheap, few enough not to hold others up.
const CHUNK_FOLLOWERS: u32 = 1000;

/// Who is connected where, of the followers of each post.
type Online = BTreeMap<usize, BTreeMap<PodName, Vec<UserId>>>;

/// Applies new posts.
pub(super) struct PostCreated {
    archive: Archive,
    graph: Arc<dyn Graph>,
    modes: Arc<dyn Modes>,
    homes: Arc<dyn HomeTimelines>,
    recents: Arc<dyn Recents>,
    pods: Arc<dyn PodStreams>,
    clock: Arc<dyn Clock>,
}

impl PostCreated {
    pub(super) fn new(stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        Self {
            archive: stores.archive.clone(),
            graph: stores.ledger.graph.clone(),
            modes: stores.ledger.modes.clone(),
            homes: stores.sets.homes.clone(),
            recents: stores.sets.recents.clone(),
            pods: stores.sets.pod_streams.clone(),
            clock,
        }
    }

    /// The places of posts that are merged at read, and pushed to nobody. The author's mode is read after the posts were stored: who
    /// has fallen since is pushed, because the job that brings such posts to the homes may have read the archive before.
    async fn withheld(&self, events: &[&Event], entries: &[Entry]) -> Result<BTreeSet<usize>, Failure> {
        let is_pull = |event: &Event| match &event.envelope.payload {
            Some(Payload::PostCreated(created)) => created.fan_out() == FanOut::Pull,
            _ => false,
        };
        let places: Vec<_> = (0..events.len()).filter(|place| is_pull(events[*place])).collect();
        let authors: BTreeSet<_> = places.iter().map(|place| entries[*place].author).collect();
        let modes = self.modes.modes(&authors.into_iter().collect::<Vec<_>>()).await?;
        let still: BTreeSet<_> = modes.iter().filter(|mode| mode.mode == Mode::Pull).map(|mode| mode.author).collect();
        Ok(places.into_iter().filter(|place| still.contains(&entries[*place].author)).collect())
    }

    /// The followers come from the ledger, which has a follow from its answer on: who then posts reaches the follower's open
    /// stream too. In the archive the edge would be later, and only the home would have the post, by the merge of the follow.
    async fn push_to_followers(
        &self,
        entries: &[Entry],
        withheld: &BTreeSet<usize>,
        not_after_ms: i64,
    ) -> Result<Online, Failure> {
        let mut online = Online::new();
        let mut by_author: BTreeMap<UserId, Vec<usize>> = BTreeMap::new();
        for (place, entry) in entries.iter().enumerate() {
            by_author.entry(entry.author).or_default().push(place);
        }
        let authors: Vec<_> = by_author.keys().copied().collect();
        let mut after = None;
        loop {
            let edges = self.graph.followers(&authors, after, CHUNK_FOLLOWERS).await?;
            let mut places: BTreeMap<UserId, Vec<usize>> = BTreeMap::new();
            for (author, follower) in &edges {
                places.entry(*follower).or_default().extend(&by_author[author]);
            }
            self.push((entries, withheld), &places, not_after_ms, &mut online).await?;
            if edges.len() < CHUNK_FOLLOWERS as usize {
                return Ok(online);
            }
            after = edges.last().copied();
        }
    }

    /// Adds to the home of each of these readers the entries at these places, in any order, but for those that are withheld:
    /// of them only who is connected learns.
    async fn push(
        &self,
        (entries, withheld): (&[Entry], &BTreeSet<usize>),
        places: &BTreeMap<UserId, Vec<usize>>,
        not_after_ms: i64,
        online: &mut Online,
    ) -> Result<(), Failure> {
        let push = |(reader, places): (&UserId, &Vec<usize>)| Push {
            reader: *reader,
            entries: places.iter().filter(|place| !withheld.contains(place)).map(|place| entries[*place]).collect(),
        };
        let pushes: Vec<_> = places.iter().map(push).collect();
        for (pod, readers) in self.homes.push(&pushes, not_after_ms).await? {
            for reader in readers {
                for place in &places[&reader] {
                    let pods = online.entry(*place).or_default();
                    pods.entry(pod.clone()).or_default().push(reader);
                }
            }
        }
        Ok(())
    }

    /// Tells each pod of its readers' new posts, in the order of the log.
    async fn tell_pods(&self, events: &[&Event], online: Online) -> Result<(), Failure> {
        let mut by_pod: BTreeMap<PodName, Vec<Bytes>> = BTreeMap::new();
        for (place, pods) in online {
            for (pod, readers) in pods {
                let delivery = Delivery {
                    event: events[place].bytes.to_vec(),
                    reader_ids: readers.into_iter().map(UserId::get).collect(),
                    traceparent: trace::of(&events[place].span),
                };
                by_pod.entry(pod).or_default().push(delivery.encode_to_vec().into());
            }
        }
        try_join_all(by_pod.iter().map(|(pod, deliveries)| self.pods.send(pod, deliveries))).await?;
        Ok(())
    }
}

#[async_trait]
impl Handler for PostCreated {
    /// Stores the posts before it reads the followers, as a follow stores the edge before it reads the posts: of the two at
    /// the same moment, at least one sees the other.
    async fn apply(&self, events: &[Event], not_after: Instant) -> Result<(), Failure> {
        let all = events.iter().map(post).collect::<Result<Vec<_>, _>>()?;
        let not_after_ms = deadline_ms(&*self.clock, not_after);
        // What is for its author alone goes nowhere.
        let (events, all): (Vec<_>, Vec<_>) =
            events.iter().zip(all).filter(|(_, post)| post.visibility != Visibility::OnlyMe).unzip();
        let posts: Vec<_> = all.iter().map(|post| (post.archived.clone(), post.version)).collect();
        let public = all.iter().filter(|post| post.visibility == Visibility::Public);
        let public: Vec<_> = public.map(|post| (post.archived.clone(), post.version)).collect();
        try_join(self.archive.posts_by_author.add(&posts), self.archive.public_posts.add(&public)).await?;
        failpoint::reach("deliver.after_archive").await;
        let entries: Vec<_> = posts.iter().map(|(post, _)| Entry { id: post.id.into(), author: post.author }).collect();
        self.recents.push(&entries).await?;
        let withheld = self.withheld(&events, &entries).await?;
        let online = self.push_to_followers(&entries, &withheld, not_after_ms).await?;
        self.tell_pods(&events, online).await
    }
}

/// A post that an event tells of.
pub(super) struct Told {
    pub(super) archived: ArchivedPost,
    pub(super) visibility: Visibility,
    pub(super) version: i64,
}

impl Told {
    pub(super) fn of(post: &wire::PostCreated, version: i64) -> Result<Self, Failure> {
        let archived = ArchivedPost {
            id: parse("post_id", &post.post_id)?,
            author: parse("author_id", &post.author_id)?,
            text: post.text.clone(),
            created_at_ms: post.created_at_ms,
        };
        let visibility = match post.visibility() {
            // Events of an earlier release do not say it.
            PostVisibility::Unspecified | PostVisibility::Public => Visibility::Public,
            PostVisibility::Followers => Visibility::Followers,
            PostVisibility::OnlyMe => Visibility::OnlyMe,
        };
        Ok(Self { archived, visibility, version })
    }
}

fn post(event: &Event) -> Result<Told, Failure> {
    let Some(Payload::PostCreated(created)) = &event.envelope.payload else { return Err(mismatch(event)) };
    Told::of(created, event.envelope.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_an_earlier_release_tells_of_a_public_post() {
        let (post_id, author_id, text) = ("7".to_owned(), "8".to_owned(), "hello".to_owned());
        let old = wire::PostCreated { post_id, author_id, text, created_at_ms: 9, ..wire::PostCreated::default() };
        let told = Told::of(&old, 10).expect("a post");
        assert_eq!((told.visibility, told.version, told.archived.text.as_str()), (Visibility::Public, 10, "hello"));
    }
}
