//! Which lanes are a member's, since which turn, and how far each is done: what was received under an earlier turn is no
//! longer the member's to commit.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use proto::event::Topic;
use rdkafka::{
    ClientContext, Offset, TopicPartitionList,
    config::RDKafkaLogLevel,
    consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext, Rebalance},
    error::KafkaError,
};
use tracing::{debug, info};

use super::Told;
use crate::{
    Shard,
    config::Namespace,
    event_log::{Lane, Turn},
};

/// The lanes that are a member's.
pub(super) struct Assignment {
    group: &'static str,
    namespace: Namespace,
    topics: HashMap<String, Topic>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    turns: u64,
    lanes: HashMap<Lane, Turn>,
    /// Up to where each is done, where that is not committed yet.
    done: HashMap<Lane, i64>,
}

impl Assignment {
    /// Nothing yet, of these topics.
    pub(super) fn new(group: &'static str, topics: &[Topic], namespace: &Namespace) -> Self {
        let by_name = topics.iter().map(|topic| (namespace.topic(topic.name()), *topic)).collect();
        Self { group, namespace: namespace.clone(), topics: by_name, held: Mutex::default() }
    }

    /// The lanes that are held, each with its turn.
    pub(super) fn lanes(&self) -> HashMap<Lane, Turn> {
        self.held().lanes.clone()
    }

    /// The turn under which a lane is held, if it is.
    pub(super) fn turn(&self, lane: Lane) -> Option<Turn> {
        self.held().lanes.get(&lane).copied()
    }

    /// The lane with this topic's name and this number.
    pub(super) fn lane(&self, topic: &str, partition: i32) -> Option<Lane> {
        Some(Lane { topic: *self.topics.get(topic)?, shard: Shard(u16::try_from(partition).ok()?) })
    }

    /// Notes how far a lane is done, if this turn is not over.
    pub(super) fn done(&self, lane: Lane, turn: Turn, position: i64) {
        let mut held = self.held();
        if held.lanes.get(&lane) == Some(&turn) {
            held.done.insert(lane, position);
        }
    }

    /// What is done and not committed.
    pub(super) fn uncommitted(&self) -> HashMap<Lane, i64> {
        self.held().done.clone()
    }

    /// Forgets what was committed; what was done since then stays.
    pub(super) fn committed(&self, positions: &HashMap<Lane, i64>) {
        self.held().done.retain(|lane, done| positions.get(lane) != Some(done));
    }

    /// Positions as the brokers want them: the first that is not done.
    pub(super) fn offsets(&self, positions: &HashMap<Lane, i64>) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::with_capacity(positions.len());
        for (lane, position) in positions {
            let name = self.namespace.topic(lane.topic.name());
            list.add_partition_offset(&name, i32::from(lane.shard.0), Offset::Offset(position + 1))?;
        }
        Ok(list)
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

    /// What was done of the lanes that are lost.
    fn lose(&self, lanes: &[Lane]) -> HashMap<Lane, i64> {
        let mut held = self.held();
        held.lanes.retain(|lane, _| !lanes.contains(lane));
        lanes.iter().filter_map(|lane| Some((*lane, held.done.remove(lane)?))).collect()
    }

    /// Commits what is done before another member begins there. Should it fail, that is done again, and does no harm.
    fn hand_over(&self, consumer: &BaseConsumer<Self>, done: &HashMap<Lane, i64>) {
        if done.is_empty() || consumer.assignment_lost() {
            return;
        }
        let outcome = self.offsets(done).and_then(|offsets| consumer.commit(&offsets, CommitMode::Sync));
        if let Err(cause) = outcome {
            debug!(group = self.group, "cannot commit what was done of lanes that go to others: {cause}");
        }
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
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let (what, lanes) = match rebalance {
            Rebalance::Assign(partitions) => {
                let lanes = self.lanes_of(partitions);
                self.take(&lanes);
                ("takes", lanes)
            }
            Rebalance::Revoke(partitions) => {
                let lanes = self.lanes_of(partitions);
                self.hand_over(consumer, &self.lose(&lanes));
                ("gives up", lanes)
            }
            Rebalance::Error(_) => return,
        };
        if !lanes.is_empty() {
            let named: Vec<_> = lanes.iter().map(Lane::to_string).collect();
            info!(group = self.group, "a member of {} {what} {}", self.group, named.join(" "));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(shard: u16) -> Lane {
        Lane { topic: Topic::Posts, shard: Shard(shard) }
    }

    #[test]
    fn a_lane_that_was_lost_and_came_back_is_held_under_another_turn() {
        let assignment = Assignment::new("relay", &[Topic::Posts], &Namespace::default());
        assert_eq!(assignment.lane("posts", 1), Some(lane(1)));
        assert_eq!(assignment.lane("likes", 1), None);

        assignment.take(&[lane(0), lane(1)]);
        let before = assignment.turn(lane(0));
        assignment.lose(&[lane(0)]);
        assert_eq!(assignment.turn(lane(0)), None);
        assert_eq!(assignment.turn(lane(1)), before);
        assignment.take(&[lane(0)]);
        assert!(assignment.turn(lane(0)) > before);
        assert_eq!(assignment.turn(lane(1)), before);
    }

    #[test]
    fn what_is_done_is_committed_once_and_only_in_its_turn() {
        let assignment = Assignment::new("relay", &[Topic::Posts], &Namespace::default());
        assignment.take(&[lane(0), lane(1)]);
        let turn = assignment.turn(lane(0)).unwrap();
        assignment.done(lane(0), turn, 7);
        assignment.done(lane(1), turn, 3);
        let committing = assignment.uncommitted();
        // More is done while the brokers are asked.
        assignment.done(lane(0), turn, 9);
        assignment.committed(&committing);
        assert_eq!(assignment.uncommitted(), HashMap::from([(lane(0), 9)]));

        assert_eq!(assignment.lose(&[lane(0)]), HashMap::from([(lane(0), 9)]));
        assignment.done(lane(0), turn, 11);
        assignment.take(&[lane(0)]);
        assignment.done(lane(0), turn, 12);
        assert_eq!(assignment.uncommitted(), HashMap::new());
    }
}
