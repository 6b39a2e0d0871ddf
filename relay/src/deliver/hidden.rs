//! Blocks and mutes: the readers' sets learn whom they hide, as they did from the call itself before its answer. Nothing is
//! scrubbed and no push is stopped: a mute that ends must not leave a hole.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::Clock;
use proto::{UserId, freshet::event::v1::envelope::Payload};
use store::{
    Stores,
    consumer::{Event, Failure, Handler},
    sets::{AuthorState, Authors, Special},
};
use tokio::time::Instant;

use super::{deadline_ms, mismatch, parse};

/// Applies blocks, mutes and their ends.
pub(super) struct Hidden {
    authors: Arc<dyn Authors>,
    clock: Arc<dyn Clock>,
}

impl Hidden {
    pub(super) fn new(stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        Self { authors: stores.sets.authors.clone(), clock }
    }
}

#[async_trait]
impl Handler for Hidden {
    async fn apply(&self, events: &[Event], not_after: Instant) -> Result<(), Failure> {
        let not_after_ms = deadline_ms(&*self.clock, not_after);
        for event in events {
            for (reader, state) in states(event)? {
                self.authors.set(reader, &[state], not_after_ms).await?;
            }
        }
        Ok(())
    }
}

/// What an event makes of whom to whom.
fn states(event: &Event) -> Result<Vec<(UserId, AuthorState)>, Failure> {
    let version = event.envelope.version;
    let block = |blocker: &str, blocked: &str, holds| {
        let (blocker, blocked) = (parse("blocker_id", blocker)?, parse("blocked_id", blocked)?);
        Ok(vec![
            (blocker, AuthorState::new(blocked, Special::Blocked, holds, version)),
            (blocked, AuthorState::new(blocker, Special::BlockedBy, holds, version)),
        ])
    };
    let mute = |muter: &str, muted: &str, until_ms| {
        let (muter, author) = (parse("muter_id", muter)?, parse("muted_id", muted)?);
        Ok(vec![(muter, AuthorState { author, special: Special::Muted, until_ms, version })])
    };
    match &event.envelope.payload {
        Some(Payload::Blocked(event)) => block(&event.blocker_id, &event.blocked_id, true),
        Some(Payload::Unblocked(event)) => block(&event.blocker_id, &event.blocked_id, false),
        Some(Payload::Muted(event)) => {
            mute(&event.muter_id, &event.muted_id, event.until_unix_ms.unwrap_or(AuthorState::FOR_GOOD))
        }
        Some(Payload::Unmuted(event)) => mute(&event.muter_id, &event.muted_id, AuthorState::OVER),
        _ => Err(mismatch(event)),
    }
}
