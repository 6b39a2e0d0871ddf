//! The event log: every event in order a partition, kept for a while, read by groups of consumers, each at its own pace.

mod kafka;
mod sqlite;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
pub(crate) use kafka::{KafkaLog, migrate as migrate_kafka};
use proto::event::Topic;
pub(crate) use sqlite::SqliteLog;

use crate::{Error, Shard};

/// How long an append may take until it fails.
pub const APPEND_MAX: Duration = Duration::from_secs(5);
/// What a record may have, its key and trace included. Every log has this limit, so that none takes what another refuses.
pub const RECORD_BYTES_MAX: usize = 900_000;
const STORE: &str = "the event log";

/// An event as the log carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it goes.
    pub topic: Topic,
    /// Its lane: the outbox shard that it came from.
    pub partition: Shard,
    /// Order is kept a key.
    pub key: String,
    /// The event's type.
    pub kind: String,
    /// The encoded envelope.
    pub payload: Bytes,
    /// The call that caused it.
    pub traceparent: String,
    /// The epoch of the lease under which it was published.
    pub epoch: i64,
}

impl Record {
    /// What it counts for against [`RECORD_BYTES_MAX`].
    fn bytes(&self) -> usize {
        self.payload.len() + self.key.len() + self.traceparent.len()
    }
}

/// Why an append ended before its last record.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct AppendError {
    /// So many of the first records are in the log and will not be lost.
    pub acknowledged: usize,
    /// What became of the record after them. Those behind it may be in the log or not.
    pub cause: Error,
}

/// An event as a consumer gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// The event.
    pub record: Record,
    /// Its place in its partition: it rises.
    pub position: i64,
}

/// An event that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buried {
    /// The event, with its place in the partition that it came from.
    pub event: Received,
    /// Whose consumer could not apply it.
    pub group: String,
    /// Why.
    pub error: String,
}

/// Where events are written and read.
#[async_trait]
pub trait EventLog: Send + Sync {
    /// Appends events, in their order a partition. When it answers, they will not be lost. When it fails, it tells how many
    /// of the first ones will not be: the others are to be sent again, in order. What is larger than [`RECORD_BYTES_MAX`]
    /// is [`Error::Refused`]: all before it are appended, and nothing behind it.
    async fn append(&self, records: Vec<Record>) -> Result<(), AppendError>;

    /// Joins a group of consumers that divide the partitions among them. Dropping the consumer leaves the group.
    async fn join(&self, group: &'static str, topics: &[Topic]) -> Result<Box<dyn Consumer>, Error>;

    /// What was put aside of a topic, the oldest first.
    async fn buried(&self, topic: Topic, limit: u32) -> Result<Vec<Buried>, Error>;
}

/// A member of a group.
#[async_trait]
pub trait Consumer: Send {
    /// The next events of the partitions that are this member's, in order a partition. Waits until there are some.
    async fn next(&mut self) -> Result<Vec<Received>, Error>;

    /// Says that all that `next` gave is done: the group will not be given it again. What is not said in time, because the
    /// process died or another member took over, is given again.
    async fn commit(&mut self) -> Result<(), Error>;

    /// Says that of what `next` gave only this much is done, a last event a lane, before the member leaves: the rest is
    /// given again.
    async fn commit_only(&mut self, last_done: &[&Received]) -> Result<(), Error>;

    /// Puts an event that can never be applied aside, whole, with the reason.
    async fn bury(&mut self, event: &Received, error: &str) -> Result<(), Error>;
}

/// The records before the first one that no log takes, and why it is refused, where there is one.
fn until_refused(records: &[Record]) -> (&[Record], Option<Error>) {
    let Some(place) = records.iter().position(|record| record.bytes() > RECORD_BYTES_MAX) else {
        return (records, None);
    };
    let cause = format!("it has {} bytes, and {RECORD_BYTES_MAX} are allowed", records[place].bytes());
    (&records[..place], Some(Error::Refused { store: STORE, cause }))
}
