//! The event log: every event in order a partition, kept for a while, read by groups of consumers, each at its own pace.

mod kafka;
mod sqlite;

use std::{collections::HashMap, fmt, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
pub(crate) use kafka::{KafkaLog, migrate as migrate_kafka};
use proto::event::Topic;
pub(crate) use sqlite::SqliteLog;

use crate::{Error, Shard, ledger::dead_letters::NewLetter};

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

/// A partition of a topic. Order is kept within it, and it waits for no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// Of which topic.
    pub topic: Topic,
    /// Which of its partitions.
    pub shard: Shard,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic.name(), self.shard)
    }
}

/// Which of the times that a member held a lane: it rises, so that what was received in one is not taken for another's.
pub type Turn = u64;
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
    /// When the log took it, in milliseconds since 1970.
    pub logged_at_ms: i64,
}

impl Received {
    /// The partition that it came by.
    #[must_use]
    pub const fn lane(&self) -> Lane {
        Lane { topic: self.record.topic, shard: self.record.partition }
    }
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

    /// Copies a dead letter to where other tools look for such: the topic beside its own, with where it came from and why in
    /// its headers. One that is too large even for that goes without its bytes. The ledger keeps the letter itself; a log that
    /// no other tool reads does nothing.
    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error>;
}

/// A member of a group.
#[async_trait]
pub trait Consumer: Send {
    /// The next events of the lanes that are this member's and not paused, in order a lane. Waits until there are some;
    /// whoever stops waiting loses none. Lanes come and go only in here, and a member that does not come back here for long
    /// is given up for dead.
    async fn next(&mut self) -> Result<Vec<Received>, Error>;

    /// The lanes that are this member's, each with the turn in which it holds it.
    fn lanes(&self) -> HashMap<Lane, Turn>;

    /// The turn in which a lane is held; `None` when it is not.
    fn turn(&self, lane: Lane) -> Option<Turn>;

    /// Gives no more events of a lane until it is resumed. The member keeps the lane.
    fn pause(&mut self, lane: Lane) -> Result<(), Error>;

    /// Gives a lane's events again.
    fn resume(&mut self, lane: Lane) -> Result<(), Error>;

    /// Gives a lane's events again from this position on. If they are there no longer, from the oldest on.
    async fn rewind(&mut self, lane: Lane, position: i64) -> Result<(), Error>;

    /// Notes that a lane's events are done up to this position, and in this turn. It counts from the next commit on, or from
    /// when the lane goes to another member.
    fn done(&mut self, lane: Lane, turn: Turn, position: i64);

    /// Commits what is done: the group will not be given it again. What is not committed in time, because the process died
    /// or another member took over, is given again.
    async fn commit(&mut self) -> Result<(), Error>;
}

/// The records before the first one that no log takes, and why it is refused, where there is one.
fn until_refused(records: &[Record]) -> (&[Record], Option<Error>) {
    let Some(place) = records.iter().position(|record| record.bytes() > RECORD_BYTES_MAX) else {
        return (records, None);
    };
    let cause = format!("it has {} bytes, and {RECORD_BYTES_MAX} are allowed", records[place].bytes());
    (&records[..place], Some(Error::Refused { store: STORE, cause }))
}
