//! An author's posts reach the followers' homes in another way. A job has told every home before its author's posts are no longer
//! pushed; here they are told once more, because sets that go back in time forget what the job told them, and this event is
//! applied again then.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::Clock;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use proto::{
    UserId,
    freshet::event::v1::{FanOut, envelope::Payload},
};
use store::{
    Stores,
    consumer::{Event, Failure, Handler},
    ledger::{AuthorMode, Graph, Modes},
    sets::Authors,
};
use tokio::time::Instant;

use super::{deadline_ms, mismatch, parse};

/// Followers that are read at once.
const CHUNK_FOLLOWERS: u32 = 1000;
/// How many homes are told at the same time.
const AT_ONCE: usize = 32;

/// Applies changes of modes.
pub(super) struct ModeChanged {
    modes: Arc<dyn Modes>,
    graph: Arc<dyn Graph>,
    authors: Arc<dyn Authors>,
    clock: Arc<dyn Clock>,
}

impl ModeChanged {
    pub(super) fn new(stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        Self {
            modes: stores.ledger.modes.clone(),
            graph: stores.ledger.graph.clone(),
            authors: stores.sets.authors.clone(),
            clock,
        }
    }

    async fn mark_followers(&self, mode: AuthorMode, not_after_ms: i64) -> Result<(), Failure> {
        let (state, mut after) = ([mode.state()], None);
        loop {
            let edges = self.graph.followers(&[mode.author], after, CHUNK_FOLLOWERS).await?;
            let readers: Vec<_> = edges.iter().map(|(_, reader)| *reader).collect();
            let marks = stream::iter(readers).map(|reader| self.authors.set(reader, &state, not_after_ms));
            let () = marks.buffer_unordered(AT_ONCE).try_collect().await?;
            if edges.len() < CHUNK_FOLLOWERS as usize {
                return Ok(());
            }
            after = edges.last().copied();
        }
    }
}

#[async_trait]
impl Handler for ModeChanged {
    async fn apply(&self, events: &[Event], not_after: Instant) -> Result<(), Failure> {
        let not_after_ms = deadline_ms(&*self.clock, not_after);
        let mut authors: Vec<UserId> = Vec::new();
        for event in events {
            let Some(Payload::ModeChanged(changed)) = &event.envelope.payload else { return Err(mismatch(event)) };
            if changed.mode() == FanOut::Pull {
                authors.push(parse("author_id", &changed.author_id)?);
            }
        }
        // As it is now: who has fallen since is not to be marked any more.
        for mode in self.modes.modes(&authors).await?.into_iter().filter(|mode| mode.mode.is_merged()) {
            self.mark_followers(mode, not_after_ms).await?;
        }
        Ok(())
    }
}
