//! How an event travels: its key as Kafka's key, the envelope as the payload, the rest in headers.

use proto::event::Topic;
use rdkafka::{
    Message,
    message::{BorrowedMessage, Header, Headers as _, OwnedHeaders},
};

use crate::{Shard, event_log::Record};

const TYPE: &str = "type";
const TRACEPARENT: &str = "traceparent";
const EPOCH: &str = "epoch";

/// An event's own headers.
pub(super) fn headers(record: &Record) -> OwnedHeaders {
    let headers = with(OwnedHeaders::new_with_capacity(8), TYPE, &record.kind);
    with(with(headers, TRACEPARENT, &record.traceparent), EPOCH, &record.epoch.to_string())
}

/// The headers, and one more.
pub(super) fn with(headers: OwnedHeaders, key: &str, value: &str) -> OwnedHeaders {
    headers.insert(Header { key, value: Some(value) })
}

/// A header's text.
pub(super) fn header(message: &BorrowedMessage<'_>, name: &str) -> Option<String> {
    let found = message.headers()?.iter().find(|header| header.key == name)?;
    Some(text(found.value?))
}

/// The event of a message. What lacks a header was not written by us: it is given as it is, and whoever applies it buries it.
pub(super) fn record(message: &BorrowedMessage<'_>, topic: Topic, partition: Shard) -> Record {
    Record {
        topic,
        partition,
        key: message.key().map(text).unwrap_or_default(),
        kind: header(message, TYPE).unwrap_or_default(),
        payload: message.payload().unwrap_or_default().to_vec().into(),
        traceparent: header(message, TRACEPARENT).unwrap_or_default(),
        epoch: header(message, EPOCH).and_then(|epoch| epoch.parse().ok()).unwrap_or_default(),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
