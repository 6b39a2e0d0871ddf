//! Sends records: each to its own partition, acknowledged by every copy that is in step, in order a partition.

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

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
    event_log::{APPEND_MAX, Record},
    ledger::dead_letters::NewLetter,
};

/// How long a record may take until it is acknowledged.
const DELIVERY_MAX: Duration = APPEND_MAX;
/// How long a record waits for others to share its request.
const LINGER: Duration = Duration::from_millis(2);
const QUEUE_RECORDS_MAX: usize = 20_000;
const QUEUE_KBYTES_MAX: usize = 65_536;
/// How long to wait before a full queue is tried again.
const QUEUE_PAUSE: Duration = Duration::from_millis(5);
/// What a broker takes by default.
const MESSAGE_BYTES_MAX: usize = 1_000_000;
/// What an event may have: it must still fit when it is buried, with where it came from and why.
const RECORD_BYTES_MAX: usize = 900_000;
const _: () = assert!(RECORD_BYTES_MAX + 4 * dead_letters::REASON_CHARACTERS_MAX < MESSAGE_BYTES_MAX);

pub(super) type Client = FutureProducer<Told>;

/// Sends records.
pub(super) struct Producer {
    config: ClientConfig,
    namespace: Namespace,
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
            .set("linger.ms", LINGER.as_millis().to_string())
            .set("delivery.timeout.ms", DELIVERY_MAX.as_millis().to_string())
            .set("request.timeout.ms", DELIVERY_MAX.as_millis().to_string())
            .set("queue.buffering.max.messages", QUEUE_RECORDS_MAX.to_string())
            .set("queue.buffering.max.kbytes", QUEUE_KBYTES_MAX.to_string())
            .set("message.max.bytes", MESSAGE_BYTES_MAX.to_string());
        let client = RwLock::new(config.create_with_context(Told)?);
        Ok(Self { config, namespace, client })
    }

    /// The client that is in use.
    pub(super) fn current(&self) -> Client {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends events, each to the partition of its shard.
    pub(super) async fn append(&self, records: Vec<Record>) -> Result<(), Error> {
        let sizes = records.iter().map(|record| record.payload.len() + record.key.len() + record.traceparent.len());
        // Told before anything is sent: a batch that is tried again and again must not fill the log with what fits.
        if let Some((record, bytes)) = sizes.enumerate().find(|(_, bytes)| *bytes > RECORD_BYTES_MAX) {
            return Err(refused(record, format_args!("it has {bytes} bytes, and {RECORD_BYTES_MAX} are allowed")));
        }
        let names: Vec<_> = records.iter().map(|record| self.namespace.topic(record.topic.name())).collect();
        let letters = records.iter().zip(&names).map(|(record, topic)| Letter {
            topic,
            partition: i32::from(record.partition.0),
            headers: headers(record),
            record,
        });
        self.send(letters.collect()).await
    }

    /// Copies a dead letter to its topic.
    pub(super) async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        let record = &letter.event.record;
        let headers = dead_letters::origin(letter, &self.namespace.topic(record.topic.name()));
        let topic = dead_letters::name(&self.namespace, record.topic);
        self.send(vec![Letter { topic: &topic, partition: dead_letters::PARTITION, headers, record }]).await
    }

    /// Answers when all are acknowledged, or when the fate of each is known and one of them failed.
    async fn send(&self, letters: Vec<Letter<'_>>) -> Result<(), Error> {
        let client = self.current();
        let deadline = Instant::now() + DELIVERY_MAX;
        let mut under_way = Vec::with_capacity(letters.len());
        let mut failure = None;
        for (place, letter) in letters.into_iter().enumerate() {
            match enqueue(&client, letter, deadline).await {
                Ok(delivery) => under_way.push(delivery),
                Err(cause) => {
                    failure = Some((place, cause));
                    break;
                }
            }
        }
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
        let Some((place, cause)) = failure else { return Ok(()) };
        self.replace_if_broken(&client);
        match cause.rdkafka_error_code() {
            Some(Code::MessageSizeTooLarge | Code::InvalidMessageSize) => Err(refused(place, cause)),
            _ => Err(failed(&cause)),
        }
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
async fn enqueue(client: &Client, letter: Letter<'_>, deadline: Instant) -> Result<DeliveryFuture, KafkaError> {
    let mut message = FutureRecord::to(letter.topic)
        .partition(letter.partition)
        .key(letter.record.key.as_str())
        .payload(letter.record.payload.as_ref())
        .headers(letter.headers);
    loop {
        match client.send_result(message) {
            Ok(delivery) => return Ok(delivery),
            Err((KafkaError::MessageProduction(Code::QueueFull), returned)) if Instant::now() < deadline => {
                message = returned;
                tokio::time::sleep(QUEUE_PAUSE).await;
            }
            Err((cause, _)) => return Err(cause),
        }
    }
}

fn refused(record: usize, cause: impl std::fmt::Display) -> Error {
    Error::Refused { store: STORE, record, cause: cause.to_string() }
}
