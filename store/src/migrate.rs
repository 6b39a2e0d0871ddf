//! Prepares the stores for this release: tables, topics, keyspaces. Safe to run from several pods at once, and to run again.

use crate::{
    OpenError, archive,
    config::{ArchiveUrl, Config, EventsUrl, LedgerUrl},
    event_log,
    ledger::migrate_postgres,
};

/// Something that a migration does, or has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Which store.
    pub store: &'static str,
    /// What is done to it.
    pub what: String,
}

/// Whether to do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Only tell what would be done.
    Plan,
    /// Do it.
    Apply,
}

impl Config {
    /// Brings every store up to date, and tells what that takes. Embedded stores need nothing: they do it when opened.
    pub async fn migrate(&self, mode: Mode) -> Result<Vec<Step>, OpenError> {
        let mut steps = self.migrate_ledger(mode).await?;
        if let EventsUrl::Kafka(brokers) = &self.events {
            steps.extend(event_log::migrate_kafka(brokers, self, mode).await?);
        }
        if let ArchiveUrl::Scylla(url) = &self.archive {
            steps.extend(archive::migrate_scylla(url, self, mode).await?);
        }
        Ok(steps)
    }

    /// Brings the ledger alone up to date.
    pub async fn migrate_ledger(&self, mode: Mode) -> Result<Vec<Step>, OpenError> {
        match &self.ledger {
            LedgerUrl::Sqlite(_) => Ok(Vec::new()),
            LedgerUrl::Postgres(url) => migrate_postgres(url, self.shards, mode).await,
        }
    }
}
