//! The embedded event log: a table of the ledger's file. Groups are kept in the process, because there is only one; their
//! positions are in the file, so what was acknowledged survives a kill.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chassis::failpoint;
use proto::event::{MARK, Topic};
use sqlx::{QueryBuilder, Row as _, sqlite::SqliteRow};
use tokio::sync::watch;
use tracing::warn;

use super::{AppendError, Buried, Consumer, EventLog, Received, Record, STORE, until_refused};
use crate::{
    Error, Shard,
    error::damaged,
    ledger::{Sqlite, sqlite_failed as failed},
};

const BATCH: u32 = 256;
/// How long an event is kept.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many appended events lie between two looks for old ones.
const TRIM_EVERY: u64 = 10_000;

/// The embedded event log.
pub(crate) struct SqliteLog {
    ledger: Arc<Sqlite>,
    appended: watch::Sender<u64>,
    groups: Arc<Mutex<HashMap<&'static str, watch::Sender<Members>>>>,
}

/// Who is in a group: the order of joining decides who gets which partition.
#[derive(Clone, Debug, Default)]
struct Members {
    next: u64,
    present: Vec<u64>,
}

impl SqliteLog {
    /// The log in this ledger's file.
    #[must_use]
    pub(crate) fn new(ledger: Arc<Sqlite>) -> Self {
        Self { ledger, appended: watch::Sender::new(0), groups: Arc::default() }
    }

    /// All of them in one transaction, or none.
    async fn append_all(&self, records: &[Record]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let now = self.ledger.clock().unix_ms();
        let mut transaction = self.ledger.writer().begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        for mark in records.iter().filter(|record| record.kind == MARK) {
            // It tells all that the one before it told; without this, an idle log would grow for ever.
            sqlx::query("DELETE FROM event_log WHERE type = 'relay.mark' AND topic = $1 AND partition = $2")
                .bind(mark.topic.name())
                .bind(mark.partition.0)
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        }
        let mut query = QueryBuilder::new(
            "INSERT INTO event_log (topic, partition, key, type, payload, traceparent, epoch, appended_at_ms) ",
        );
        query.push_values(records, |mut row, record| {
            row.push_bind(record.topic.name())
                .push_bind(record.partition.0)
                .push_bind(record.key.as_str())
                .push_bind(record.kind.as_str())
                .push_bind(record.payload.as_ref())
                .push_bind(record.traceparent.as_str())
                .push_bind(record.epoch)
                .push_bind(now);
        });
        query.build().execute(&mut *transaction).await.map_err(failed)?;
        failpoint::reach("relay.sent_before_ack").await;
        transaction.commit().await.map_err(failed)?;
        let mut before = 0;
        self.appended.send_modify(|appended| before = std::mem::replace(appended, *appended + records.len() as u64));
        if before / TRIM_EVERY != (before + records.len() as u64) / TRIM_EVERY {
            // They are in the log, whatever becomes of the old ones; those are looked for again.
            if let Err(cause) = self.trim().await {
                warn!("cannot take old events off the event log: {cause}");
            }
        }
        Ok(())
    }

    async fn trim(&self) -> Result<(), Error> {
        let retention = i64::try_from(RETENTION.as_millis()).unwrap_or(i64::MAX);
        sqlx::query("DELETE FROM event_log WHERE appended_at_ms < $1")
            .bind(self.ledger.clock().unix_ms() - retention)
            .execute(self.ledger.writer())
            .await
            .map_err(failed)?;
        Ok(())
    }
}

#[async_trait]
impl EventLog for SqliteLog {
    async fn append(&self, records: Vec<Record>) -> Result<(), AppendError> {
        let (taken, refused) = until_refused(&records);
        self.append_all(taken).await.map_err(|cause| AppendError { acknowledged: 0, cause })?;
        match refused {
            Some(cause) => Err(AppendError { acknowledged: taken.len(), cause }),
            None => Ok(()),
        }
    }

    async fn join(&self, group: &'static str, topics: &[Topic]) -> Result<Box<dyn Consumer>, Error> {
        let mut member = 0;
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let members = groups.entry(group).or_default();
        members.send_modify(|members| {
            member = members.next;
            members.next += 1;
            members.present.push(member);
        });
        Ok(Box::new(Member {
            ledger: self.ledger.clone(),
            appended: self.appended.subscribe(),
            seat: Seat { members: members.clone(), member },
            changes: members.subscribe(),
            group,
            topics: topics.to_vec(),
            lanes: HashMap::new(),
            read_up_to: 0,
        }))
    }

    async fn buried(&self, topic: Topic, limit: u32) -> Result<Vec<Buried>, Error> {
        let rows = sqlx::query(
            "SELECT position, topic, shard AS partition, key, type, payload, traceparent, epoch, consumer_group, error \
             FROM dead_letters WHERE topic = $1 ORDER BY id LIMIT $2",
        )
        .bind(topic.name())
        .bind(limit)
        .fetch_all(self.ledger.reader())
        .await
        .map_err(failed)?;
        let buried = |row: &SqliteRow| {
            Ok(Buried {
                event: received(row)?,
                group: row.try_get("consumer_group").map_err(failed)?,
                error: row.try_get("error").map_err(failed)?,
            })
        };
        rows.iter().map(buried).collect()
    }
}

/// A place in a group; it is free again when dropped.
struct Seat {
    members: watch::Sender<Members>,
    member: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.members.send_modify(|members| members.present.retain(|present| *present != self.member));
    }
}

struct Member {
    ledger: Arc<Sqlite>,
    appended: watch::Receiver<u64>,
    seat: Seat,
    changes: watch::Receiver<Members>,
    group: &'static str,
    topics: Vec<Topic>,
    /// The partitions that are mine, each with the position up to which it is done or under way.
    lanes: HashMap<(Topic, Shard), i64>,
    /// The log was read up to here for the lanes above.
    read_up_to: i64,
}

#[async_trait]
impl Consumer for Member {
    async fn next(&mut self) -> Result<Vec<Received>, Error> {
        loop {
            if self.lanes.is_empty() || self.changes.has_changed().unwrap_or(true) {
                self.take_lanes().await?;
            }
            self.appended.mark_unchanged();
            let events = self.read().await?;
            if !events.is_empty() {
                return Ok(events);
            }
            let changed = |waited: Result<(), watch::error::RecvError>| {
                waited.map_err(|_| Error::Unavailable { store: STORE, cause: "it is closed".into() })
            };
            tokio::select! {
                waited = self.appended.changed() => changed(waited)?,
                waited = self.changes.changed() => { changed(waited)?; self.take_lanes().await?; }
            }
        }
    }

    async fn commit(&mut self) -> Result<(), Error> {
        // A lane that went to another member meanwhile is its to commit.
        let mine = self.my_lanes();
        self.lanes.retain(|lane, _| mine.contains(lane));
        if self.lanes.is_empty() {
            return Ok(());
        }
        let mut query = QueryBuilder::new("INSERT INTO event_offsets (consumer_group, topic, partition, position) ");
        query.push_values(&self.lanes, |mut row, ((topic, partition), position)| {
            row.push_bind(self.group).push_bind(topic.name()).push_bind(partition.0).push_bind(*position);
        });
        query.push(
            " ON CONFLICT (consumer_group, topic, partition) DO UPDATE SET position = max(position, excluded.position)",
        );
        query.build().execute(self.ledger.writer()).await.map_err(failed)?;
        Ok(())
    }

    async fn commit_only(&mut self, last_done: &[&Received]) -> Result<(), Error> {
        let lane = |event: &&Received| ((event.record.topic, event.record.partition), event.position);
        self.lanes = last_done.iter().map(lane).collect();
        let committed = self.commit().await;
        // The next look begins at what is committed.
        self.lanes.clear();
        committed
    }

    async fn bury(&mut self, event: &Received, error: &str) -> Result<(), Error> {
        let record = &event.record;
        sqlx::query(
            "INSERT INTO dead_letters (consumer_group, topic, shard, position, key, type, payload, traceparent, \
             epoch, error, buried_at_ms, logged_at_ms, cause, attempts, pod, release) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, 'broken_rule', 1, '', '') \
             ON CONFLICT (consumer_group, topic, shard, position) DO NOTHING",
        )
        .bind(self.group)
        .bind(record.topic.name())
        .bind(record.partition.0)
        .bind(event.position)
        .bind(&record.key)
        .bind(&record.kind)
        .bind(record.payload.as_ref())
        .bind(&record.traceparent)
        .bind(record.epoch)
        .bind(error)
        .bind(self.ledger.clock().unix_ms())
        .execute(self.ledger.writer())
        .await
        .map_err(failed)?;
        Ok(())
    }
}

impl Member {
    /// Partition p of every topic is the p-th member's, round and round.
    fn my_lanes(&self) -> Vec<(Topic, Shard)> {
        let present = self.seat.members.borrow().present.clone();
        let Some(place) = present.iter().position(|member| *member == self.seat.member) else { return Vec::new() };
        let mine = (0..self.ledger.shards()).filter(|partition| usize::from(*partition) % present.len() == place);
        mine.flat_map(|partition| self.topics.iter().map(move |topic| (*topic, Shard(partition)))).collect()
    }

    /// Begins every partition that is mine now at the group's committed position.
    async fn take_lanes(&mut self) -> Result<(), Error> {
        self.changes.mark_unchanged();
        let rows = sqlx::query("SELECT topic, partition, position FROM event_offsets WHERE consumer_group = $1")
            .bind(self.group)
            .fetch_all(self.ledger.reader())
            .await
            .map_err(failed)?;
        let mut committed = HashMap::new();
        for row in &rows {
            let lane = (topic(row)?, Shard(row.try_get("partition").map_err(failed)?));
            committed.insert(lane, row.try_get::<i64, _>("position").map_err(failed)?);
        }
        self.lanes =
            self.my_lanes().into_iter().map(|lane| (lane, committed.get(&lane).copied().unwrap_or(0))).collect();
        self.read_up_to = self.lanes.values().copied().min().unwrap_or(0);
        Ok(())
    }

    async fn read(&mut self) -> Result<Vec<Received>, Error> {
        loop {
            let rows = sqlx::query(
                "SELECT position, topic, partition, key, type, payload, traceparent, epoch FROM event_log \
                 WHERE position > $1 ORDER BY position LIMIT $2",
            )
            .bind(self.read_up_to)
            .bind(BATCH)
            .fetch_all(self.ledger.reader())
            .await
            .map_err(failed)?;
            let Some(last) = rows.last() else { return Ok(Vec::new()) };
            let last: i64 = last.try_get("position").map_err(failed)?;
            let mut mine = Vec::new();
            for row in &rows {
                let event = received(row)?;
                let lane = (event.record.topic, event.record.partition);
                if self.lanes.get(&lane).is_some_and(|done| *done < event.position) {
                    mine.push(event);
                }
            }
            self.read_up_to = last;
            // Nothing of mine lies between, so a restart need not read it again.
            self.lanes.values_mut().for_each(|position| *position = (*position).max(last));
            if !mine.is_empty() {
                return Ok(mine);
            }
        }
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
    Ok(Received { record, position: row.try_get("position").map_err(failed)? })
}
