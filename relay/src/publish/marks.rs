//! Marks: each second every shard's partition is told how far it is settled, so that a consumer knows it too, also when no events
//! come.

use std::{sync::Arc, time::Duration};

use chassis::Stop;
use prost::Message as _;
use proto::freshet::event::v1::{Envelope, Mark, envelope::Payload};
use store::{
    Error, Shard,
    event_log::{EventLog, Record},
    ledger::{Lease, Outbox},
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::{info, warn};

use super::held::Held;

const MARK_EVERY: Duration = Duration::from_secs(1);

/// Marks the shards that the pod holds.
///
/// A mark needs no place among the rows that are under way. It is about events that are out of the outbox, and these were
/// acknowledged before it is sent; the rows that still wait are younger than it says. For the same reason a mark that an
/// owner sends late, after it lost the shard, is still true: nothing that it speaks of comes back into the outbox, but a dead
/// letter that somebody drives again; and dead letters hold nothing back.
pub(super) struct Marks {
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) held: watch::Receiver<Held>,
    pub(super) stop: Stop,
}

impl Marks {
    /// Marks until asked to stop. A mark that cannot be made is not missed: the next one tells more.
    pub(super) async fn run(self) {
        let mut due = interval(MARK_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failing = false;
        loop {
            tokio::select! { () = self.stop.cancelled() => return, _ = due.tick() => {} }
            let leases = self.held.borrow().usable().to_vec();
            let marked = self.mark(&leases).await;
            match &marked {
                Err(cause) if !failing => warn!("cannot tell how far the shards are settled: {cause}"),
                Ok(()) if failing => info!("the shards are marked again"),
                _ => {}
            }
            failing = marked.is_err();
        }
    }

    async fn mark(&self, leases: &[Lease]) -> Result<(), Error> {
        if leases.is_empty() {
            return Ok(());
        }
        let settled = self.outbox.marks(leases).await?;
        let epoch_of = |shard| leases.iter().find(|lease| lease.shard == shard).map_or(0, |lease| lease.epoch);
        let marks = settled.into_iter().map(|(shard, unix_ms)| record(shard, epoch_of(shard), unix_ms));
        self.log.append(marks.collect()).await.map_err(|failed| failed.cause)
    }
}

fn record(shard: Shard, epoch: i64, settled_unix_ms: i64) -> Record {
    let payload = Payload::Mark(Mark { settled_unix_ms, partition: shard.0.into() });
    let (topic, kind) = (payload.topic(), payload.type_name().to_owned());
    let envelope = Envelope {
        // No row has it, and so no minted id: two of the same name say the same.
        event_id: format!("mark-{shard}-{settled_unix_ms}"),
        r#type: kind.clone(),
        key: payload.key().to_owned(),
        occurred_at: Some(proto::timestamp(settled_unix_ms)),
        version: settled_unix_ms,
        payload: Some(payload),
    };
    Record {
        topic,
        partition: shard,
        key: envelope.key.clone(),
        kind,
        payload: envelope.encode_to_vec().into(),
        traceparent: String::new(),
        epoch,
    }
}
