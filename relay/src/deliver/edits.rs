//! Posts that were edited or deleted: archive and homes follow by the version, and connected followers are told. A deletion is
//! final: whatever comes after it has a lower version, or finds nothing.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use chassis::{Clock, trace};
use futures_util::future::{try_join, try_join_all};
use prost::Message as _;
use proto::{
    PostId, UserId,
    freshet::event::v1::{Delivery, envelope::Payload},
};
use store::{
    Stores,
    archive::Archive,
    consumer::{Event, Failure, Handler},
    ledger::{Graph, Visibility},
    sets::{Entry, HomeTimelines, PodName, PodStreams, Push, Recents},
};
use tokio::time::Instant;

use super::{deadline_ms, mismatch, parse, posts::Told};

/// Followers that are read at once.
const CHUNK_FOLLOWERS: u32 = 1000;

/// Applies edits and deletions.
pub(super) struct Edits {
    archive: Archive,
    graph: Arc<dyn Graph>,
    homes: Arc<dyn HomeTimelines>,
    recents: Arc<dyn Recents>,
    pods: Arc<dyn PodStreams>,
    clock: Arc<dyn Clock>,
}

/// What is to be done with a post.
enum Edit {
    /// It says something else.
    Changed(Told),
    /// It is in nobody's sight but its author's, if at all.
    Gone { entry: Entry, post: PostId, version: i64 },
}

impl Edits {
    pub(super) fn new(stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        Self {
            archive: stores.archive.clone(),
            graph: stores.ledger.graph.clone(),
            homes: stores.sets.homes.clone(),
            recents: stores.sets.recents.clone(),
            pods: stores.sets.pod_streams.clone(),
            clock,
        }
    }

    async fn archive(&self, edit: &Edit) -> Result<(), Failure> {
        let Archive { posts_by_author, public_posts, .. } = &self.archive;
        match edit {
            Edit::Changed(told) => {
                let post = [(told.archived.clone(), told.version)];
                posts_by_author.add(&post).await?;
                match told.visibility {
                    Visibility::Public => public_posts.add(&post).await?,
                    _ => public_posts.remove(told.archived.id, told.version).await?,
                }
            }
            Edit::Gone { entry, post, version } => {
                let by_author = posts_by_author.remove(entry.author, *post, *version);
                try_join(by_author, public_posts.remove(*post, *version)).await?;
                self.recents.take_out(*entry).await?;
            }
        }
        Ok(())
    }

    /// Takes what is gone out of the followers' homes, a chunk of them at a time, and tells who of them is connected where.
    async fn reach_followers(&self, edit: &Edit, not_after_ms: i64) -> Result<BTreeMap<PodName, Vec<UserId>>, Failure> {
        let author = edit.author();
        let mut online: BTreeMap<PodName, Vec<UserId>> = BTreeMap::new();
        let mut after = None;
        loop {
            let edges = self.graph.followers(&[author], after, CHUNK_FOLLOWERS).await?;
            let readers: Vec<_> = edges.iter().map(|(_, follower)| *follower).collect();
            if let Edit::Gone { entry, .. } = edit {
                self.homes.take_out(&readers, *entry).await?;
            }
            // A push of nothing only tells who is connected.
            let nothing: Vec<_> = readers.iter().map(|reader| Push { reader: *reader, entries: Vec::new() }).collect();
            for (pod, readers) in self.homes.push(&nothing, not_after_ms).await? {
                online.entry(pod).or_default().extend(readers);
            }
            if edges.len() < CHUNK_FOLLOWERS as usize {
                return Ok(online);
            }
            after = edges.last().copied();
        }
    }

    async fn tell_pods(&self, event: &Event, online: BTreeMap<PodName, Vec<UserId>>) -> Result<(), Failure> {
        let deliveries = online.into_iter().map(|(pod, readers)| {
            let delivery = Delivery {
                event: event.bytes.to_vec(),
                reader_ids: readers.into_iter().map(UserId::get).collect(),
                traceparent: trace::of(&event.span),
            };
            (pod, [delivery.encode_to_vec().into()])
        });
        let deliveries: Vec<_> = deliveries.collect();
        try_join_all(deliveries.iter().map(|(pod, delivery)| self.pods.send(pod, delivery))).await?;
        Ok(())
    }
}

#[async_trait]
impl Handler for Edits {
    async fn apply(&self, events: &[Event], not_after: Instant) -> Result<(), Failure> {
        let not_after_ms = deadline_ms(&*self.clock, not_after);
        let edits = events.iter().map(Edit::of).collect::<Result<Vec<_>, _>>()?;
        for (event, edit) in events.iter().zip(&edits) {
            self.archive(edit).await?;
            let online = self.reach_followers(edit, not_after_ms).await?;
            self.tell_pods(event, online).await?;
        }
        Ok(())
    }
}

impl Edit {
    fn of(event: &Event) -> Result<Self, Failure> {
        let version = event.envelope.version;
        match &event.envelope.payload {
            Some(Payload::PostUpdated(updated)) => {
                let post = updated.post.as_ref().ok_or_else(|| mismatch(event))?;
                let told = Told::of(post, version)?;
                match told.visibility {
                    Visibility::OnlyMe => Ok(Self::gone(told.archived.id, told.archived.author, version)),
                    _ => Ok(Self::Changed(told)),
                }
            }
            Some(Payload::PostDeleted(deleted)) => {
                let (post, author) = (parse("post_id", &deleted.post_id)?, parse("author_id", &deleted.author_id)?);
                Ok(Self::gone(post, author, version))
            }
            _ => Err(mismatch(event)),
        }
    }

    fn gone(post: PostId, author: UserId, version: i64) -> Self {
        Self::Gone { entry: Entry { id: post.into(), author }, post, version }
    }

    fn author(&self) -> UserId {
        match self {
            Self::Changed(told) => told.archived.author,
            Self::Gone { entry, .. } => entry.author,
        }
    }
}
