//! Sends records: each to its own partition, acknowledged by every copy that is in step, in order a partition.

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

use bytes::Bytes;
use chassis::failpoint;
use proto::event::Topic;
use rdkafka::{
    ClientConfig,
    error::{KafkaError, RDKafkaErrorCode as Code},
    message::OwnedHeaders,
    producer::{DeliveryFuture, FutureProducer, FutureRecord, Producer as _},
};
use tokio::time::Instant;
use tracing::warn;

use super::{STORE, Told, dead_letters, failed, record::headers};
use crate::{
    Error,
    config::Namespace,
    event_log::{APPEND_MAX, AppendError, RECORD_BYTES_MAX, Record, until_refused},
    ledger::dead_letters::NewLetter,
};

/// For how long an append hands records over, waiting for room in the client's queue.
const HAND_OVER_MAX: Duration = Duration::from_secs(1);
/// How long a record may take from then until it is acknowledged.
const DELIVERY_MAX: Duration = Duration::from_secs(4);
const _: () = assert!(HAND_OVER_MAX.as_millis() + DELIVERY_MAX.as_millis() <= APPEND_MAX.as_millis());
/// How long a record waits for others to share its request. A batch is handed over in less.
const LINGER: Duration = Duration::from_micros(200);
const QUEUE_RECORDS_MAX: usize = 20_000;
const QUEUE_KBYTES_MAX: usize = 65_536;
/// How long to wait before a full queue is tried again.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);
/// What a broker takes by default.
const MESSAGE_BYTES_MAX: usize = 1_000_000;
// A record must still fit when it is buried, with where it came from and why.
const _: () = assert!(RECORD_BYTES_MAX + 4 * dead_letters::REASON_CHARACTERS_MAX < MESSAGE_BYTES_MAX);

pub(super) type Client = FutureProducer<Told>;

/// Sends records.
pub(super) struct Producer {
    config: ClientConfig,
    namespace: Namespace,
    /// Their names in this installation, in the order of [`Topic::ALL`].
    topics: [String; Topic::ALL.len()],
    client: RwLock<Client>,
}

/// A record as it is sent.
struct Letter<'a> {
    topic: &'a str,
    partition: i32,
    headers: OwnedHeaders,
    record: &'a Record,
}

impl Producer {
    /// A producer made from this config.
    pub(super) fn new(mut config: ClientConfig, namespace: Namespace) -> Result<Self, KafkaError> {
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", (LINGER.as_secs_f64() * 1000.0).to_string())
            .set("delivery.timeout.ms", DELIVERY_MAX.as_millis().to_string())
            .set("request.timeout.ms", DELIVERY_MAX.as_millis().to_string())
            .set("queue.buffering.max.messages", QUEUE_RECORDS_MAX.to_string())
            .set("queue.buffering.max.kbytes", QUEUE_KBYTES_MAX.to_string())
            .set("message.max.bytes", MESSAGE_BYTES_MAX.to_string());
        let client = RwLock::new(config.create_with_context(Told)?);
        let topics = Topic::ALL.map(|topic| namespace.topic(topic.name()));
        Ok(Self { config, namespace, topics, client })
    }

    /// The client that is in use.
    pub(super) fn current(&self) -> Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends events, each to the partition of its shard; all of them are under way at once.
    pub(super) async fn append(&self, records: &[Record]) -> Result<(), AppendError> {
        let hand_over_until = Instant::now() + HAND_OVER_MAX;
        let (taken, refused) = until_refused(records);
        match self.send(self.letters(taken), hand_over_until).await {
            // A broker refuses all records of a request for the size of one, or of all together.
            Err(AppendError { acknowledged, cause: Error::Refused { .. } }) if taken.len() > 1 => {
                self.send_one_by_one(taken, acknowledged, hand_over_until).await?;
            }
            sent => sent?,
        }
        match refused {
            Some(cause) => Err(AppendError { acknowledged: taken.len(), cause }),
            None => Ok(()),
        }
    }

    /// Copies a dead letter to its topic. What that one does not take either, for its size, is copied without its bytes, so
    /// that whoever watches the topic hears of it.
    pub(super) async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        let record = &letter.event.record;
        let headers = dead_letters::origin(letter, &self.namespace.topic(record.topic.name()));
        match self.send_copy(record, headers.clone()).await {
            Err(Error::Refused { .. }) => {
                let emptied = Record { payload: Bytes::new(), ..record.clone() };
                self.send_copy(&emptied, dead_letters::without_bytes(headers, record)).await
            }
            copied => copied,
        }
    }

    async fn send_copy(&self, record: &Record, headers: OwnedHeaders) -> Result<(), Error> {
        let topic = dead_letters::name(&self.namespace, record.topic);
        let letter = Letter { topic: &topic, partition: dead_letters::PARTITION, headers, record };
        self.send(vec![letter], Instant::now() + HAND_OVER_MAX).await.map_err(|failed| failed.cause)
    }

    fn letters<'a>(&'a self, records: &'a [Record]) -> Vec<Letter<'a>> {
        let letter = |record: &'a Record| Letter {
            topic: &self.topics[record.topic as usize],
            partition: i32::from(record.partition.0),
            headers: headers(record),
            record,
        };
        records.iter().map(letter).collect()
    }

    /// Sends records from a place on, each when the one before it is acknowledged: so it is known which one is refused.
    async fn send_one_by_one(&self, records: &[Record], from: usize, until: Instant) -> Result<(), AppendError> {
        for place in from..records.len() {
            let sent = self.send(self.letters(&records[place..=place]), until).await;
            sent.map_err(|failed| AppendError { acknowledged: place, ..failed })?;
        }
        Ok(())
    }

    /// Answers when all are acknowledged, or when the fate of each is known and one of them failed.
    async fn send(&self, letters: Vec<Letter<'_>>, hand_over_until: Instant) -> Result<(), AppendError> {
        let client = self.current();
        let mut under_way = Vec::with_capacity(letters.len());
        let mut failure = None;
        for (place, letter) in letters.into_iter().enumerate() {
            match hand_over(&client, letter, hand_over_until).await {
                Ok(delivery) => under_way.push(delivery),
                Err(cause) => {
                    failure = Some((place, cause));
                    break;
                }
            }
        }
        failpoint::reach("relay.sent_before_ack").await;
        for (place, delivery) in under_way.into_iter().enumerate() {
            let outcome = match delivery.await {
                Ok(delivered) => delivered.map_err(|(cause, _)| cause),
                Err(_canceled) => Err(KafkaError::Canceled),
            };
            if let Err(cause) = outcome
                && failure.as_ref().is_none_or(|(first, _)| place < *first)
            {
                failure = Some((place, cause));
            }
        }
        let Some((acknowledged, cause)) = failure else { return Ok(()) };
        self.replace_if_broken(&client);
        let cause = match cause.rdkafka_error_code() {
            Some(Code::MessageSizeTooLarge | Code::InvalidMessageSize) => {
                Error::Refused { store: STORE, cause: cause.to_string() }
            }
            _ => failed(&cause),
        };
        Err(AppendError { acknowledged, cause })
    }

    /// An idempotent client that lost count with a broker refuses everything for ever: another takes its place.
    fn replace_if_broken(&self, client: &Client) {
        let Some((code, reason)) = client.client().fatal_error() else { return };
        let mut current = self.client.write().unwrap_or_else(PoisonError::into_inner);
        if current.client().native_ptr() != client.client().native_ptr() {
            return;
        }
        match self.config.create_with_context(Told) {
            Ok(next) => {
                warn!("the Kafka producer broke and was replaced: {code}: {reason}");
                *current = next;
            }
            Err(cause) => warn!("the Kafka producer broke and cannot be replaced yet: {cause}"),
        }
    }
}

/// Hands a record to the client, waiting for room in its queue.
async fn hand_over(client: &Client, letter: Letter<'_>, until: Instant) -> Result<DeliveryFuture, KafkaError> {
    let mut message = FutureRecord::to(letter.topic)
        .partition(letter.partition)
        .key(letter.record.key.as_str())
        .payload(letter.record.payload.as_ref())
        .headers(letter.headers);
    loop {
        match client.send_result(message) {
            Ok(delivery) => return Ok(delivery),
            Err((KafkaError::MessageProduction(Code::QueueFull), returned)) if Instant::now() < until => {
                message = returned;
                tokio::time::sleep(QUEUE_PAUSE).await;
            }
            Err((cause, _)) => return Err(cause),
        }
    }
}
