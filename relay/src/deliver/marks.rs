//! Marks: how far a partition is whole.

use std::sync::Arc;

use async_trait::async_trait;
use proto::freshet::event::v1::envelope::Payload;
use store::{
    Shard, Stores,
    consumer::{Event, Failure, Handler},
    sets::Settled,
};
use tokio::time::Instant;

use super::mismatch;

/// Passes marks.
pub(super) struct Marked {
    settled: Arc<dyn Settled>,
}

impl Marked {
    pub(super) fn new(stores: &Stores) -> Self {
        Self { settled: stores.sets.settled.clone() }
    }
}

#[async_trait]
impl Handler for Marked {
    /// All that stands before a mark in its partition was applied before it, or is a dead letter.
    async fn apply(&self, events: &[Event], _not_after: Instant) -> Result<(), Failure> {
        for event in events {
            let Some(Payload::Mark(mark)) = &event.envelope.payload else { return Err(mismatch(event)) };
            let shard = u16::try_from(mark.partition).map_err(|cause| Failure::Final(format!("partition {cause}")))?;
            self.settled.passed(Shard(shard), mark.settled_unix_ms).await?;
        }
        Ok(())
    }
}
