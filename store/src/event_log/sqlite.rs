//! The embedded event log: a table of the ledger's file. Groups are kept in the process, because there is only one; their
//! positions are in the file, so what was acknowledged survives a kill.

mod consumer;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chassis::failpoint;
use consumer::{Member, Members, Seat};
use proto::event::{Topic, kind};
use sqlx::QueryBuilder;
use tokio::sync::watch;
use tracing::warn;

use super::{AppendError, Consumer, EventLog, Record, STORE, until_refused};
use crate::{
    Error,
    ledger::{Sqlite, dead_letters::NewLetter, sqlite_failed as failed},
};

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

    /// All of them in one transaction, or none.
    async fn append_all(&self, records: &[Record]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let now = self.ledger.clock().unix_ms();
        let mut transaction = self.ledger.writer().begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        for mark in records.iter().filter(|record| record.kind == kind::MARK) {
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
        let seat = Seat::new(members, member);
        Ok(Box::new(Member::new(self.ledger.clone(), self.appended.subscribe(), seat, group, topics)))
    }

    async fn bury(&self, _letter: &NewLetter<'_>) -> Result<(), Error> {
        // The ledger has the letter, and no other tool reads this log.
        Ok(())
    }
}
