//! A member of a group, in the one process that there is.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use proto::event::Topic;
use sqlx::{QueryBuilder, Row as _, sqlite::SqliteRow};
use tokio::sync::watch;

use super::STORE;
use crate::{
    Error, Shard,
    error::damaged,
    event_log::{Consumer, Lane, Received, Record, Turn},
    ledger::{Sqlite, sqlite_failed as failed},
};

const BATCH: u32 = 256;

/// Who is in a group: the order of joining decides who gets which partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    pub(super) next: u64,
    pub(super) present: Vec<u64>,
}

/// A place in a group; it is free again when dropped.
pub(super) struct Seat {
    members: watch::Sender<Members>,
    member: u64,
}

impl Seat {
    pub(super) fn new(members: &watch::Sender<Members>, member: u64) -> Self {
        Self { members: members.clone(), member }
    }

    /// Partition p of every topic is the p-th member's, round and round.
    fn lanes(&self, present: &[u64], shards: u16, topics: &[Topic]) -> Vec<Lane> {
        let Some(place) = present.iter().position(|member| *member == self.member) else { return Vec::new() };
        let mine = (0..shards).filter(|shard| usize::from(*shard) % present.len() == place);
        mine.flat_map(|shard| topics.iter().map(move |topic| Lane { topic: *topic, shard: Shard(shard) })).collect()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.members.send_modify(|members| members.present.retain(|present| *present != self.member));
    }
}

/// A member of a group.
pub(super) struct Member {
    ledger: Arc<Sqlite>,
    appended: watch::Receiver<u64>,
    seat: Seat,
    changes: watch::Receiver<Members>,
    group: &'static str,
    topics: Vec<Topic>,
    turns: Turn,
    /// Whether members came or went since the lanes were taken.
    divided_anew: bool,
    lanes: HashMap<Lane, Held>,
    /// The log was read up to here for the lanes above.
    read_up_to: i64,
}

/// A lane that is the member's.
struct Held {
    turn: Turn,
    /// What lies up to here was given, or is another lane's.
    read: i64,
    /// The last event that was given.
    given: Option<i64>,
    done: Option<i64>,
    committed: i64,
    paused: bool,
}

impl Held {
    fn from(committed: i64, turn: Turn) -> Self {
        Self { turn, read: committed, given: None, done: None, committed, paused: false }
    }

    /// Up to where it is done. With nothing under way that is all that was read, so that a restart need not read it again.
    fn position(&self) -> i64 {
        match self.given {
            Some(given) if self.done.is_none_or(|done| done < given) => self.done.unwrap_or(self.committed),
            _ => self.read,
        }
    }
}

impl Member {
    pub(super) fn new(
        ledger: Arc<Sqlite>,
        appended: watch::Receiver<u64>,
        seat: Seat,
        group: &'static str,
        topics: &[Topic],
    ) -> Self {
        let changes = seat.members.subscribe();
        Self {
            ledger,
            appended,
            seat,
            changes,
            group,
            topics: topics.to_vec(),
            turns: 0,
            divided_anew: true,
            lanes: HashMap::new(),
            read_up_to: 0,
        }
    }

    /// Begins every lane that is mine from now on at the group's committed position, and goes on in those that stay mine.
    async fn take_lanes(&mut self) -> Result<(), Error> {
        let rows = sqlx::query("SELECT topic, partition, position FROM event_offsets WHERE consumer_group = $1")
            .bind(self.group)
            .fetch_all(self.ledger.reader())
            .await
            .map_err(failed)?;
        let mut committed = HashMap::new();
        for row in &rows {
            let lane = Lane { topic: topic(row)?, shard: Shard(row.try_get("partition").map_err(failed)?) };
            committed.insert(lane, row.try_get::<i64, _>("position").map_err(failed)?);
        }
        let present = self.changes.borrow_and_update().present.clone();
        self.divided_anew = false;
        let mine = self.seat.lanes(&present, self.ledger.shards(), &self.topics);
        self.turns += 1;
        self.lanes.retain(|lane, _| mine.contains(lane));
        for lane in mine {
            let committed = committed.get(&lane).copied().unwrap_or(0);
            self.lanes.entry(lane).or_insert_with(|| Held::from(committed, self.turns));
        }
        self.read_from_the_first();
        Ok(())
    }

    fn read_from_the_first(&mut self) {
        let read = self.lanes.values().filter(|held| !held.paused).map(|held| held.read);
        self.read_up_to = read.min().unwrap_or(i64::MAX);
    }

    async fn read(&mut self) -> Result<Vec<Received>, Error> {
        loop {
            let rows = sqlx::query(
                "SELECT position, topic, partition, key, type, payload, traceparent, epoch, appended_at_ms \
                 FROM event_log WHERE position > $1 ORDER BY position LIMIT $2",
            )
            .bind(self.read_up_to)
            .bind(BATCH)
            .fetch_all(self.ledger.reader())
            .await
            .map_err(failed)?;
            let Some(last) = rows.last() else { return Ok(Vec::new()) };
            let last: i64 = last.try_get("position").map_err(failed)?;
            let events = rows.iter().map(received).collect::<Result<Vec<_>, _>>()?;
            let mut mine = Vec::new();
            for event in events {
                if let Some(held) = self.lanes.get_mut(&event.lane())
                    && !held.paused
                    && held.read < event.position
                {
                    held.given = Some(event.position);
                    mine.push(event);
                }
            }
            self.read_up_to = last;
            for held in self.lanes.values_mut().filter(|held| !held.paused) {
                held.read = held.read.max(last);
            }
            if !mine.is_empty() {
                return Ok(mine);
            }
        }
    }
}

#[async_trait]
impl Consumer for Member {
    async fn next(&mut self) -> Result<Vec<Received>, Error> {
        loop {
            if self.divided_anew || self.changes.has_changed().unwrap_or(true) {
                self.take_lanes().await?;
            }
            self.appended.mark_unchanged();
            let events = self.read().await?;
            if !events.is_empty() {
                return Ok(events);
            }
            let waited = tokio::select! {
                waited = self.appended.changed() => waited,
                waited = self.changes.changed() => {
                    self.divided_anew = true;
                    waited
                }
            };
            waited.map_err(|_| Error::Unavailable { store: STORE, cause: "it is closed".into() })?;
        }
    }

    fn lanes(&self) -> HashMap<Lane, Turn> {
        self.lanes.iter().map(|(lane, held)| (*lane, held.turn)).collect()
    }

    fn turn(&self, lane: Lane) -> Option<Turn> {
        self.lanes.get(&lane).map(|held| held.turn)
    }

    fn pause(&mut self, lane: Lane) -> Result<(), Error> {
        if let Some(held) = self.lanes.get_mut(&lane) {
            held.paused = true;
        }
        Ok(())
    }

    fn resume(&mut self, lane: Lane) -> Result<(), Error> {
        if let Some(held) = self.lanes.get_mut(&lane) {
            held.paused = false;
            self.read_from_the_first();
        }
        Ok(())
    }

    async fn rewind(&mut self, lane: Lane, position: i64) -> Result<(), Error> {
        let Some(held) = self.lanes.get_mut(&lane) else { return Ok(()) };
        (held.read, held.given, held.done) = (position - 1, None, None);
        self.read_from_the_first();
        Ok(())
    }

    fn done(&mut self, lane: Lane, turn: Turn, position: i64) {
        if let Some(held) = self.lanes.get_mut(&lane).filter(|held| held.turn == turn) {
            held.done = Some(position);
        }
    }

    async fn commit(&mut self) -> Result<(), Error> {
        // A lane that went to another member meanwhile is its to commit.
        let present = self.seat.members.borrow().present.clone();
        let mine = self.seat.lanes(&present, self.ledger.shards(), &self.topics);
        let moved: Vec<_> = self
            .lanes
            .iter()
            .filter(|(lane, held)| mine.contains(lane) && held.position() != held.committed)
            .map(|(lane, held)| (*lane, held.position()))
            .collect();
        if moved.is_empty() {
            return Ok(());
        }
        let mut query = QueryBuilder::new("INSERT INTO event_offsets (consumer_group, topic, partition, position) ");
        query.push_values(&moved, |mut row, (lane, position)| {
            row.push_bind(self.group).push_bind(lane.topic.name()).push_bind(lane.shard.0).push_bind(*position);
        });
        query.push(" ON CONFLICT (consumer_group, topic, partition) DO UPDATE SET position = excluded.position");
        query.build().execute(self.ledger.writer()).await.map_err(failed)?;
        for (lane, position) in moved {
            if let Some(held) = self.lanes.get_mut(&lane) {
                held.committed = position;
            }
        }
        Ok(())
    }
}

fn topic(row: &SqliteRow) -> Result<Topic, Error> {
    let name: &str = row.try_get("topic").map_err(failed)?;
    Topic::named(name).ok_or_else(|| damaged(STORE, format_args!("topic {name:?}")))
}

fn received(row: &SqliteRow) -> Result<Received, Error> {
    let record = Record {
        topic: topic(row)?,
        partition: Shard(row.try_get("partition").map_err(failed)?),
        key: row.try_get("key").map_err(failed)?,
        kind: row.try_get("type").map_err(failed)?,
        payload: row.try_get::<Vec<u8>, _>("payload").map_err(failed)?.into(),
        traceparent: row.try_get("traceparent").map_err(failed)?,
        epoch: row.try_get("epoch").map_err(failed)?,
    };
    let logged_at_ms = row.try_get("appended_at_ms").map_err(failed)?;
    Ok(Received { record, position: row.try_get("position").map_err(failed)?, logged_at_ms })
}
