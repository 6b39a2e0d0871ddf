//! A member of a consumer group. Rebalances are served only inside `next`, so between `next` and `commit` a partition can be
//! lost in one way only: the brokers gave this member up for dead. Then they refuse its commits too.

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

use super::{
    STORE,
    assignment::{Assignment, Lane, Turn},
    failed,
    producer::Producer,
    record::record,
};
use crate::{
    Error,
    config::Namespace,
    event_log::{Consumer, Received},
};

const BATCH: usize = 256;
/// A dead member's partitions go to the others after this.
const SESSION: Duration = Duration::from_secs(6);
/// How soon a member hears that the partitions are divided anew.
const HEARTBEAT: Duration = Duration::from_millis(500);
/// A member that asks for nothing for so long is stuck: its partitions go to the others.
const STUCK_AFTER: Duration = Duration::from_secs(120);
/// How much is fetched ahead.
const AHEAD_KBYTES_MAX: usize = 16_384;
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
    producer: Arc<Producer>,
    pod: Pod,
    /// What was given and is not committed: up to where, and under which turn it was received.
    given: HashMap<Lane, (Turn, i64)>,
    trouble: Trouble,
}

impl Member {
    /// Joins a group. The partitions come with the first `next`.
    pub(super) fn join(
        mut config: ClientConfig,
        namespace: &Namespace,
        group: &'static str,
        topics: &[Topic],
        producer: Arc<Producer>,
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
            .set("queued.max.messages.kbytes", AHEAD_KBYTES_MAX.to_string());
        let assignment = Assignment::new(group, topics, namespace);
        let client: StreamConsumer<_> = config.create_with_context(assignment).map_err(|cause| failed(&cause))?;
        let names: Vec<_> = topics.iter().map(|topic| namespace.topic(topic.name())).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        client.subscribe(&names).map_err(|cause| failed(&cause))?;
        Ok(Self {
            client: Some(Arc::new(client)),
            namespace: namespace.clone(),
            group,
            producer,
            pod,
            given: HashMap::new(),
            trouble: Trouble::default(),
        })
    }

    fn client(&self) -> Result<Arc<StreamConsumer<Assignment>>, Error> {
        self.client.clone().ok_or_else(|| Error::Unavailable { store: STORE, cause: "it is closed".into() })
    }

    /// Drops what was received under a turn that is over: it is given again from the committed position, to whoever has
    /// the partition now.
    fn forget_lost(&mut self, assignment: &Assignment) {
        self.given.retain(|lane, (turn, _)| assignment.turn(*lane) == Some(*turn));
    }

    /// The positions to commit: the first that is not done.
    fn positions(&self) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::with_capacity(self.given.len());
        for ((topic, shard), (_, position)) in &self.given {
            let name = self.namespace.topic(topic.name());
            list.add_partition_offset(&name, i32::from(shard.0), Offset::Offset(position + 1))?;
        }
        Ok(list)
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
            taken.retain(|(turn, event)| assignment.turn(lane(event)) == Some(*turn));
            self.forget_lost(assignment);
            if !taken.is_empty() {
                break;
            }
        }
        self.given.extend(taken.iter().map(|(turn, event)| (lane(event), (*turn, event.position))));
        Ok(taken.into_iter().map(|(_, event)| event).collect())
    }

    async fn commit(&mut self) -> Result<(), Error> {
        let client = self.client()?;
        self.forget_lost(client.context());
        let deadline = Instant::now() + REBALANCE_MAX;
        while !self.given.is_empty() {
            let positions = self.positions().map_err(|cause| failed(&cause))?;
            let committing = client.clone();
            // The client's call blocks until the brokers answer.
            let outcome = tokio::task::spawn_blocking(move || commit(&committing, &positions)).await;
            match outcome.map_err(|cause| Error::Fault { store: STORE, cause: cause.to_string() })? {
                Outcome::Done | Outcome::Lost => self.given.clear(),
                // The positions stay, and go with the next commit: nothing is lost, and repeats are allowed.
                Outcome::Rebalancing if Instant::now() >= deadline => return Ok(()),
                Outcome::Rebalancing => tokio::time::sleep(REBALANCE_PAUSE).await,
                Outcome::Failed(cause) => return Err(failed(&cause)),
            }
        }
        Ok(())
    }

    async fn commit_only(&mut self, last_done: &[&Received]) -> Result<(), Error> {
        self.given.retain(|given, (_, position)| {
            let last = last_done.iter().find(|event| lane(event) == *given);
            *position = last.map_or(*position, |event| event.position);
            last.is_some()
        });
        self.commit().await
    }

    async fn bury(&mut self, event: &Received, error: &str) -> Result<(), Error> {
        self.producer.bury(event, self.group, error).await
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

fn lane(event: &Received) -> Lane {
    (event.record.topic, event.record.partition)
}

/// The event of a message, with the turn under which its partition is held.
fn received(assignment: &Assignment, message: &BorrowedMessage<'_>) -> Option<(Turn, Received)> {
    let (topic, partition) = assignment.lane(message.topic(), message.partition())?;
    let turn = assignment.turn((topic, partition))?;
    Some((turn, Received { record: record(message, topic, partition), position: message.offset() }))
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
