//! The event log on Kafka: a topic's partition is an outbox shard, and groups are Kafka's consumer groups.

mod assignment;
mod consumer;
mod dead_letters;
mod producer;
mod record;
mod topics;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use chassis::Pod;
use consumer::Member;
use producer::Producer;
use proto::event::Topic;
use rdkafka::{
    ClientConfig, ClientContext,
    config::RDKafkaLogLevel,
    consumer::ConsumerContext,
    error::{KafkaError, RDKafkaErrorCode as Code},
};
pub(crate) use topics::migrate;
use tracing::{debug, warn};

use super::{AppendError, Consumer, EventLog, Record, STORE};
use crate::{
    Error, OpenError,
    config::{Config, Namespace},
    ledger::dead_letters::NewLetter,
    open::Parts,
};

/// How long a request may take that has no limit of its own. A frozen broker holds nobody longer.
const REQUEST_MAX: Duration = Duration::from_secs(10);
/// Between two tries to reach a broker, so that its return is seen soon.
const RECONNECT_MAX: Duration = Duration::from_secs(1);

/// The event log on Kafka.
pub(crate) struct KafkaLog {
    brokers: String,
    namespace: Namespace,
    pod: Pod,
    producer: Arc<Producer>,
}

impl KafkaLog {
    /// The log of these brokers, whose topics must be there.
    pub(crate) async fn open(brokers: &str, config: &Config, parts: &Parts) -> Result<Self, OpenError> {
        let producer = Producer::new(client(brokers, parts.pod.name()), config.namespace.clone())
            .map_err(|cause| unusable(brokers, cause))?;
        let client = producer.current();
        let found = topics::found(brokers, move |timeout| topics::partitions(&client, timeout)).await?;
        topics::check(brokers, config, &found)?;
        Ok(Self {
            brokers: brokers.to_owned(),
            namespace: config.namespace.clone(),
            pod: parts.pod.clone(),
            producer: Arc::new(producer),
        })
    }
}

#[async_trait]
impl EventLog for KafkaLog {
    async fn append(&self, records: Vec<Record>) -> Result<(), AppendError> {
        self.producer.append(&records).await
    }

    async fn join(&self, group: &'static str, topics: &[Topic]) -> Result<Box<dyn Consumer>, Error> {
        let client = client(&self.brokers, self.pod.name());
        let member = Member::join(client, &self.namespace, group, topics, self.pod.clone())?;
        Ok(Box::new(member))
    }

    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        self.producer.bury(letter).await
    }
}

/// What every client of these brokers is made from.
fn client(brokers: &str, name: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("client.id", name)
        // Many small requests are under way at once: none waits for the acknowledgement of the packets before it.
        .set("socket.nagle.disable", "true")
        .set("socket.timeout.ms", REQUEST_MAX.as_millis().to_string())
        .set("reconnect.backoff.max.ms", RECONNECT_MAX.as_millis().to_string())
        .set_log_level(RDKafkaLogLevel::Info);
    config
}

/// What librdkafka has to say, told through `tracing`.
#[derive(Clone, Copy, Debug, Default)]
struct Told;

impl ClientContext for Told {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        match level {
            // A failed connection is told by the call or the consumer that it holds up, once.
            _ if facility == "FAIL" => debug!(facility, "kafka client: {line}"),
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error
            | RDKafkaLogLevel::Warning => warn!(facility, "kafka client: {line}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info | RDKafkaLogLevel::Debug => {
                debug!(facility, "kafka client: {line}");
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        debug!("kafka client: {error}: {reason}");
    }
}

impl ConsumerContext for Told {}

fn unusable(brokers: &str, cause: impl fmt::Display) -> OpenError {
    OpenError::Unusable { store: STORE, place: format!("kafka://{brokers}"), cause: cause.to_string() }
}

/// What a client's error means for a caller.
fn failed(cause: &KafkaError) -> Error {
    let text = cause.to_string();
    if cause.rdkafka_error_code().is_some_and(passes) || *cause == KafkaError::Canceled {
        Error::Unavailable { store: STORE, cause: text }
    } else {
        Error::Fault { store: STORE, cause: text }
    }
}

/// Whether an error says that the brokers are away or busy, rather than that the question was wrong.
fn passes(code: Code) -> bool {
    matches!(
        code,
        Code::AllBrokersDown
            | Code::BrokerDestroy
            | Code::BrokerNotAvailable
            | Code::BrokerTransportFailure
            | Code::CoordinatorLoadInProgress
            | Code::CoordinatorNotAvailable
            | Code::Fatal
            | Code::FencedLeaderEpoch
            | Code::ISRInsufficient
            | Code::KafkaStorageError
            | Code::LeaderNotAvailable
            | Code::MessageTimedOut
            | Code::NetworkException
            | Code::NotCoordinator
            | Code::NotEnoughReplicas
            | Code::NotEnoughReplicasAfterAppend
            | Code::NotLeaderForPartition
            | Code::OperationTimedOut
            | Code::OutOfOrderSequenceNumber
            | Code::PurgeInflight
            | Code::PurgeQueue
            | Code::QueueFull
            | Code::ReplicaNotAvailable
            | Code::RequestTimedOut
            | Code::Resolve
            | Code::Retry
            | Code::TimedOutQueue
            | Code::UnknownLeaderEpoch
            | Code::UnknownProducerId
            | Code::UnknownTopicOrPartition
            | Code::WaitingForCoordinator
    )
}
