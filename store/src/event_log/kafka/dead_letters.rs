//! Copies of what could not be applied: a topic beside each, whose records are the original bytes, with where they came from
//! and why in their headers.

use proto::event::Topic;
use rdkafka::message::OwnedHeaders;

use super::record::{headers, with};
use crate::{config::Namespace, event_log::Record, ledger::dead_letters::NewLetter};

/// The only partition of such a topic.
pub(super) const PARTITION: i32 = 0;
pub(super) const REASON_CHARACTERS_MAX: usize = 1000;
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name of a topic's dead letters.
pub(super) fn name(namespace: &Namespace, topic: Topic) -> String {
    namespace.topic(&format!("{}.dlt", topic.name()))
}

/// The headers of a dead letter: the event's own, and these.
pub(super) fn origin(letter: &NewLetter<'_>, topic: &str) -> OwnedHeaders {
    let event = letter.event;
    let reason: String = letter.error.chars().take(REASON_CHARACTERS_MAX).collect();
    let more = [
        ("origin.topic", topic.to_owned()),
        ("origin.partition", event.record.partition.to_string()),
        ("origin.offset", event.position.to_string()),
        ("origin.timestamp", event.logged_at_ms.to_string()),
        ("origin.key", event.record.key.clone()),
        ("origin.epoch", event.record.epoch.to_string()),
        ("group", letter.group.to_owned()),
        ("cause", letter.cause.name().to_owned()),
        ("error", reason),
        ("attempts", letter.attempts.to_string()),
        ("pod", letter.pod.to_owned()),
        ("version", VERSION.to_owned()),
    ];
    more.iter().fold(headers(&event.record), |headers, (name, value)| with(headers, name, value))
}

/// The headers of a dead letter whose bytes are left out: how many they were stands among them.
pub(super) fn without_bytes(headers: OwnedHeaders, record: &Record) -> OwnedHeaders {
    with(headers, "origin.bytes", &record.payload.len().to_string())
}
