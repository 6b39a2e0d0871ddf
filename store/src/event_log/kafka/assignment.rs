//! Which partitions are a member's, and since which turn: what was received under an earlier turn is no longer its to commit.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use proto::event::Topic;
use rdkafka::{
    ClientContext, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, ConsumerContext, Rebalance},
    error::KafkaError,
};
use tracing::info;

use super::Told;
use crate::{Shard, config::Namespace};

/// A partition of a topic.
pub(super) type Lane = (Topic, Shard);
/// Which of a member's assignments: it rises.
pub(super) type Turn = u64;

/// The partitions that are a member's.
pub(super) struct Assignment {
    group: &'static str,
    topics: HashMap<String, Topic>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    turns: u64,
    lanes: HashMap<Lane, Turn>,
}

impl Assignment {
    /// Nothing yet, of these topics.
    pub(super) fn new(group: &'static str, topics: &[Topic], namespace: &Namespace) -> Self {
        let topics = topics.iter().map(|topic| (namespace.topic(topic.name()), *topic)).collect();
        Self { group, topics, held: Mutex::default() }
    }

    /// The turn under which a partition is held, if it is.
    pub(super) fn turn(&self, lane: Lane) -> Option<Turn> {
        self.held().lanes.get(&lane).copied()
    }

    /// The partition with this name and number.
    pub(super) fn lane(&self, topic: &str, partition: i32) -> Option<Lane> {
        Some((*self.topics.get(topic)?, Shard(u16::try_from(partition).ok()?)))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lanes_of(&self, partitions: &TopicPartitionList) -> Vec<Lane> {
        partitions.elements().iter().filter_map(|one| self.lane(one.topic(), one.partition())).collect()
    }

    fn take(&self, lanes: &[Lane]) {
        let mut held = self.held();
        held.turns += 1;
        let turn = held.turns;
        held.lanes.extend(lanes.iter().map(|lane| (*lane, turn)));
    }

    fn lose(&self, lanes: &[Lane]) {
        self.held().lanes.retain(|lane, _| !lanes.contains(lane));
    }
}

impl ClientContext for Assignment {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        Told.log(level, facility, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        Told.error(error, reason);
    }
}

impl ConsumerContext for Assignment {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let (what, lanes) = match rebalance {
            Rebalance::Assign(partitions) => ("takes", self.lanes_of(partitions)),
            Rebalance::Revoke(partitions) => ("gives up", self.lanes_of(partitions)),
            Rebalance::Error(_) => return,
        };
        match rebalance {
            Rebalance::Assign(_) => self.take(&lanes),
            _ => self.lose(&lanes),
        }
        if !lanes.is_empty() {
            let named: Vec<_> = lanes.iter().map(|(topic, shard)| format!("{}/{shard}", topic.name())).collect();
            info!(group = self.group, "a member of {} {what} {}", self.group, named.join(" "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_was_lost_and_came_back_is_held_under_another_turn() {
        let assignment = Assignment::new("relay", &[Topic::Posts], &Namespace::default());
        let (first, second) = ((Topic::Posts, Shard(0)), (Topic::Posts, Shard(1)));
        assert_eq!(assignment.lane("posts", 1), Some(second));
        assert_eq!(assignment.lane("likes", 1), None);

        assignment.take(&[first, second]);
        let before = assignment.turn(first);
        assignment.lose(&[first]);
        assert_eq!(assignment.turn(first), None);
        assert_eq!(assignment.turn(second), before);
        assignment.take(&[first]);
        assert!(assignment.turn(first) > before);
        assert_eq!(assignment.turn(second), before);
    }
}
