//! A member of a consumer group. Rebalances are served only inside `next`, so between `next` and `commit` a lane can be lost
//! in one way only: the brokers gave this member up for dead. Then they refuse its commits too.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use chassis::{Pod, Stage};
use futures_util::FutureExt as _;
use proto::event::Topic;
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{CommitMode, Consumer as _, StreamConsumer},
    error::{KafkaError, RDKafkaErrorCode as Code},
    message::BorrowedMessage,
};
use tokio::{runtime::Handle, time::Instant};
use tracing::warn;

use super::{REQUEST_MAX, STORE, assignment::Assignment, failed, record::record};
use crate::{
    Error,
    config::Namespace,
    event_log::{Consumer, Lane, Received, Turn},
};

const BATCH: usize = 256;
/// A dead member's partitions go to the others after this.
const SESSION: Duration = Duration::from_secs(6);
/// How soon a member hears that the partitions are divided anew.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// A member that asks for nothing for so long is stuck: its partitions go to the others.
const STUCK_AFTER: Duration = Duration::from_secs(120);
/// How much is fetched ahead. The client counts the events of all lanes, and fetches no lane while there are as many: fewer
/// than several lanes have in one answer would let a single one through at a time. Pausing a lane throws away what is
/// ahead of it, to be fetched again, so that more is not worth it.
const AHEAD_EVENTS: usize = 32 * BATCH;
const AHEAD_KBYTES_MAX: usize = 16_384;
/// How long it waits before it looks whether there are still as many.
const FULL_PAUSE: Duration = Duration::from_millis(10);
/// Of a lane at once. A larger event comes alone.
const FETCH_BYTES_MAX: usize = 256 * 1024;
/// How long a commit waits for the partitions to be divided.
const REBALANCE_MAX: Duration = Duration::from_secs(5);
const REBALANCE_PAUSE: Duration = Duration::from_millis(50);
/// What troubled a member before this is told again.
const TROUBLE_FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
const _: () = assert!(SESSION.as_millis() >= 3 * HEARTBEAT.as_millis());

/// A member of a group.
pub(super) struct Member {
    /// There until the member is dropped.
    client: Option<Arc<StreamConsumer<Assignment>>>,
    namespace: Namespace,
    group: &'static str,
    pod: Pod,
    trouble: Trouble,
}

impl Member {
    /// Joins a group. The partitions come with the first `next`.
    pub(super) fn join(
        mut config: ClientConfig,
        namespace: &Namespace,
        group: &'static str,
        topics: &[Topic],
        pod: Pod,
    ) -> Result<Self, Error> {
        config
            .set("group.id", namespace.topic(group))
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "earliest")
            .set("heartbeat.interval.ms", HEARTBEAT.as_millis().to_string())
            .set("session.timeout.ms", SESSION.as_millis().to_string())
            .set("max.poll.interval.ms", STUCK_AFTER.as_millis().to_string())
            .set("queued.min.messages", AHEAD_EVENTS.to_string())
            .set("fetch.queue.backoff.ms", FULL_PAUSE.as_millis().to_string())
            .set("queued.max.messages.kbytes", AHEAD_KBYTES_MAX.to_string())
            .set("max.partition.fetch.bytes", FETCH_BYTES_MAX.to_string());
        let assignment = Assignment::new(group, topics, namespace);
        let client: StreamConsumer<_> = config.create_with_context(assignment).map_err(|cause| failed(&cause))?;
        let names: Vec<_> = topics.iter().map(|topic| namespace.topic(topic.name())).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        client.subscribe(&names).map_err(|cause| failed(&cause))?;
        Ok(Self {
            client: Some(Arc::new(client)),
            namespace: namespace.clone(),
            group,
            pod,
            trouble: Trouble::default(),
        })
    }

    fn client(&self) -> Result<Arc<StreamConsumer<Assignment>>, Error> {
        self.client.clone().ok_or_else(|| Error::Unavailable { store: STORE, cause: "it is closed".into() })
    }

    /// A list of one lane, as the client takes it.
    fn list(&self, lane: Lane, offset: Offset) -> Result<TopicPartitionList, Error> {
        let mut list = TopicPartitionList::with_capacity(1);
        let name = self.namespace.topic(lane.topic.name());
        let added = list.add_partition_offset(&name, i32::from(lane.shard.0), offset);
        added.map(|()| list).map_err(|cause| failed(&cause))
    }
}

#[async_trait]
impl Consumer for Member {
    async fn next(&mut self) -> Result<Vec<Received>, Error> {
        let client = self.client()?;
        let assignment = client.context();
        let mut taken: Vec<(Turn, Received)> = Vec::new();
        loop {
            let polled = if taken.is_empty() { Some(client.recv().await) } else { client.recv().now_or_never() };
            let more = polled.is_some();
            match polled {
                Some(Ok(message)) => {
                    self.trouble.passed();
                    taken.extend(received(assignment, &message));
                }
                Some(Err(cause @ KafkaError::MessageConsumptionFatal(_))) => return Err(failed(&cause)),
                // The client goes on by itself as soon as it can.
                Some(Err(cause)) => self.trouble.tell(self.group, &cause),
                None => {}
            }
            if more && taken.len() < BATCH {
                continue;
            }
            // A rebalance may have come between two of them.
            taken.retain(|(turn, event)| assignment.turn(event.lane()) == Some(*turn));
            if !taken.is_empty() {
                return Ok(taken.into_iter().map(|(_, event)| event).collect());
            }
        }
    }

    fn lanes(&self) -> HashMap<Lane, Turn> {
        self.client.as_ref().map(|client| client.context().lanes()).unwrap_or_default()
    }

    fn turn(&self, lane: Lane) -> Option<Turn> {
        self.client.as_ref()?.context().turn(lane)
    }

    fn pause(&mut self, lane: Lane) -> Result<(), Error> {
        self.client()?.pause(&self.list(lane, Offset::Invalid)?).map_err(|cause| failed(&cause))
    }

    fn resume(&mut self, lane: Lane) -> Result<(), Error> {
        self.client()?.resume(&self.list(lane, Offset::Invalid)?).map_err(|cause| failed(&cause))
    }

    async fn rewind(&mut self, lane: Lane, position: i64) -> Result<(), Error> {
        let (client, list) = (self.client()?, self.list(lane, Offset::Offset(position))?);
        // The client's call blocks until what it has fetched is thrown away.
        let sought = tokio::task::spawn_blocking(move || client.seek_partitions(list, REQUEST_MAX)).await;
        let sought = sought.map_err(|cause| Error::Fault { store: STORE, cause: cause.to_string() })?;
        let sought = sought.map_err(|cause| failed(&cause))?;
        sought.elements().iter().try_for_each(|one| one.error()).map_err(|cause| failed(&cause))
    }

    fn done(&mut self, lane: Lane, turn: Turn, position: i64) {
        if let Some(client) = &self.client {
            client.context().done(lane, turn, position);
        }
    }

    async fn commit(&mut self) -> Result<(), Error> {
        let client = self.client()?;
        let assignment = client.context();
        let deadline = Instant::now() + REBALANCE_MAX;
        loop {
            let positions = assignment.uncommitted();
            if positions.is_empty() {
                return Ok(());
            }
            let offsets = assignment.offsets(&positions).map_err(|cause| failed(&cause))?;
            let committing = client.clone();
            // The client's call blocks until the brokers answer.
            let outcome = tokio::task::spawn_blocking(move || commit(&committing, &offsets)).await;
            match outcome.map_err(|cause| Error::Fault { store: STORE, cause: cause.to_string() })? {
                Outcome::Done | Outcome::Lost => {
                    assignment.committed(&positions);
                    return Ok(());
                }
                // The positions stay, and go with the next commit: nothing is lost, and repeats are allowed.
                Outcome::Rebalancing if Instant::now() >= deadline => return Ok(()),
                Outcome::Rebalancing => tokio::time::sleep(REBALANCE_PAUSE).await,
                Outcome::Failed(cause) => return Err(failed(&cause)),
            }
        }
    }
}

impl Drop for Member {
    /// Leaving takes an answer from a broker, so it is done beside; a pod that drains waits for it.
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if Handle::try_current().is_err() {
            return;
        }
        self.pod.tasks.errand("leave the group", Stage::Foundations, move |_| async move {
            if let Err(cause) = tokio::task::spawn_blocking(move || drop(client)).await {
                warn!("a member did not leave its group properly: {cause}");
            }
        });
    }
}

enum Outcome {
    Done,
    /// The brokers gave this member up: others have its partitions.
    Lost,
    /// The partitions are being divided; this member's own are still its own.
    Rebalancing,
    Failed(KafkaError),
}

fn commit(client: &StreamConsumer<Assignment>, positions: &TopicPartitionList) -> Outcome {
    // The client itself would send these as somebody outside the group, whom brokers believe when the group is empty.
    if client.assignment_lost() {
        return Outcome::Lost;
    }
    let Err(cause) = client.commit(positions, CommitMode::Sync) else { return Outcome::Done };
    match cause.rdkafka_error_code() {
        Some(Code::UnknownMemberId | Code::FencedInstanceId | Code::AssignmentLost) => Outcome::Lost,
        Some(Code::RebalanceInProgress | Code::IllegalGeneration) => Outcome::Rebalancing,
        _ => Outcome::Failed(cause),
    }
}

/// The event of a message, with the turn under which its partition is held.
fn received(assignment: &Assignment, message: &BorrowedMessage<'_>) -> Option<(Turn, Received)> {
    let lane = assignment.lane(message.topic(), message.partition())?;
    let turn = assignment.turn(lane)?;
    let logged_at_ms = message.timestamp().to_millis().unwrap_or_default();
    let record = record(message, lane.topic, lane.shard);
    Some((turn, Received { record, position: message.offset(), logged_at_ms }))
}

/// What troubles a member, so that it is told once and not at every poll.
#[derive(Default)]
struct Trouble {
    told: Vec<KafkaError>,
    last: Option<Instant>,
}

impl Trouble {
    fn passed(&mut self) {
        self.told.clear();
    }

    fn tell(&mut self, group: &str, cause: &KafkaError) {
        if self.last.is_some_and(|last| last.elapsed() > TROUBLE_FORGOTTEN_AFTER) {
            self.told.clear();
        }
        self.last = Some(Instant::now());
        if !self.told.contains(cause) {
            warn!(group, "the consumers of {group} wait for the event log: {cause}");
            self.told.push(cause.clone());
        }
    }
}
