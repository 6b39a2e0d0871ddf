//! What can never be applied: a topic beside each, whose records carry where they came from and why.

use std::time::Duration;

use proto::event::Topic;
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer as _},
    error::{KafkaError, RDKafkaErrorCode as Code},
    message::{BorrowedMessage, OwnedHeaders},
};

use super::{
    REQUEST_MAX, STORE, Told, failed,
    record::{header, headers, record, with},
};
use crate::{
    Error, Shard,
    config::Namespace,
    event_log::{Buried, Received},
};

/// The only partition of such a topic.
pub(super) const PARTITION: i32 = 0;
pub(super) const REASON_CHARACTERS_MAX: usize = 1000;
/// Readers have no group of their own, but Kafka wants a name; nothing is ever committed under it.
const READERS: &str = "dead-letters";
const POLL_MAX: Duration = Duration::from_secs(1);

const ORIGIN_PARTITION: &str = "origin.partition";
const ORIGIN_POSITION: &str = "origin.position";
const ORIGIN_GROUP: &str = "origin.group";
const ERROR: &str = "error";

/// The name of a topic's dead letters.
pub(super) fn name(namespace: &Namespace, topic: Topic) -> String {
    namespace.topic(&format!("{}.dlt", topic.name()))
}

/// The headers of an event that is put aside.
pub(super) fn origin(event: &Received, topic: &str, group: &str, error: &str) -> OwnedHeaders {
    let reason: String = error.chars().take(REASON_CHARACTERS_MAX).collect();
    let headers = with(headers(&event.record), "origin.topic", topic);
    let headers = with(headers, ORIGIN_PARTITION, &event.record.partition.to_string());
    let headers = with(headers, ORIGIN_POSITION, &event.position.to_string());
    with(with(headers, ORIGIN_GROUP, group), ERROR, &reason)
}

/// What was put aside of a topic, the oldest first.
pub(super) async fn read(
    mut client: ClientConfig,
    namespace: &Namespace,
    topic: Topic,
    limit: u32,
) -> Result<Vec<Buried>, Error> {
    let name = name(namespace, topic);
    client.set("group.id", namespace.topic(READERS)).set("enable.auto.commit", "false");
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let reading = tokio::task::spawn_blocking(move || read_blocking(&client, &name, topic, limit)).await;
    let read = reading.map_err(|cause| Error::Fault { store: STORE, cause: cause.to_string() })?;
    read.map_err(|cause| failed(&cause))
}

fn read_blocking(client: &ClientConfig, name: &str, topic: Topic, limit: usize) -> Result<Vec<Buried>, KafkaError> {
    let consumer: BaseConsumer<Told> = client.create_with_context(Told)?;
    let (first, end) = consumer.fetch_watermarks(name, PARTITION, REQUEST_MAX)?;
    let mut from = TopicPartitionList::new();
    from.add_partition_offset(name, PARTITION, Offset::Offset(first))?;
    consumer.assign(&from)?;
    let mut buried = Vec::new();
    let (mut next, deadline) = (first, std::time::Instant::now() + REQUEST_MAX);
    while next < end && buried.len() < limit {
        match consumer.poll(POLL_MAX) {
            Some(Ok(message)) => {
                next = message.offset() + 1;
                buried.push(letter(&message, topic));
            }
            None | Some(Err(_)) if std::time::Instant::now() < deadline => {}
            Some(Err(cause)) => return Err(cause),
            None => return Err(KafkaError::MessageConsumption(Code::OperationTimedOut)),
        }
    }
    Ok(buried)
}

fn letter(message: &BorrowedMessage<'_>, topic: Topic) -> Buried {
    let number = |name| header(message, name).and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
    let partition = Shard(u16::try_from(number(ORIGIN_PARTITION)).unwrap_or_default());
    Buried {
        event: Received { record: record(message, topic, partition), position: number(ORIGIN_POSITION) },
        group: header(message, ORIGIN_GROUP).unwrap_or_default(),
        error: header(message, ERROR).unwrap_or_default(),
    }
}
