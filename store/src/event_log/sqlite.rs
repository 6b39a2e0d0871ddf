//! The embedded event log: a table of the ledger's file. Groups are kept in the process, because there is only one; their
//! positions are in the file, so what was acknowledged survives a kill.

mod consumer;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use consumer::{Member, Members, Seat};
use proto::event::Topic;
use sqlx::QueryBuilder;
use tokio::sync::watch;

use super::{Consumer, EventLog, Record};
use crate::{
    Error,
    ledger::{Sqlite, dead_letters::NewLetter, sqlite_failed as failed},
};

const STORE: &str = "the event log";
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

impl SqliteLog {
    /// The log in this ledger's file.
    #[must_use]
    pub(crate) fn new(ledger: Arc<Sqlite>) -> Self {
        Self { ledger, appended: watch::Sender::new(0), groups: Arc::default() }
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
    async fn append(&self, records: Vec<Record>) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let now = self.ledger.clock().unix_ms();
        let mut query = QueryBuilder::new(
            "INSERT INTO event_log (topic, partition, key, type, payload, traceparent, epoch, appended_at_ms) ",
        );
        query.push_values(&records, |mut row, record| {
            row.push_bind(record.topic.name())
                .push_bind(record.partition.0)
                .push_bind(record.key.as_str())
                .push_bind(record.kind.as_str())
                .push_bind(record.payload.as_ref())
                .push_bind(record.traceparent.as_str())
                .push_bind(record.epoch)
                .push_bind(now);
        });
        query.build().execute(self.ledger.writer()).await.map_err(failed)?;
        let before = *self.appended.borrow();
        let after = before + records.len() as u64;
        self.appended.send_replace(after);
        if before / TRIM_EVERY != after / TRIM_EVERY {
            self.trim().await?;
        }
        Ok(())
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
        let seat = Seat::new(members, member);
        Ok(Box::new(Member::new(self.ledger.clone(), self.appended.subscribe(), seat, group, topics)))
    }

    async fn bury(&self, _letter: &NewLetter<'_>) -> Result<(), Error> {
        // The ledger has the letter, and no other tool reads this log.
        Ok(())
    }
}
