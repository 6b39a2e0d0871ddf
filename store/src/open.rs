//! Opens the stores that a config names, each checked before it is used, and prepares them for a new release.

use std::{path::PathBuf, sync::Arc};

use chassis::{Clock, Pod, Random};

use crate::{
    archive::{self, Archive},
    config::{ArchiveUrl, Config, EventsUrl, LedgerUrl, SetsUrl},
    event_log::{EventLog, KafkaLog},
    ledger::{Ledger, Postgres, Sqlite},
    sets::{Memory, Redis, Sets},
};

/// What stores run on.
#[derive(Clone)]
pub struct Parts {
    /// Where what they do in the background runs; it stops last.
    pub pod: Pod,
    /// The time, for stores that have no clock of their own.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder.
    #[error("the data folder {} is in use by another freshet process", folder.display())]
    FolderInUse {
        /// Which folder.
        folder: PathBuf,
    },
    /// The store does not answer, or is not what it should be.
    #[error("cannot use {store} at {place}: {cause}")]
    Unusable {
        /// Which store.
        store: &'static str,
        /// Where, without passwords.
        place: String,
        /// Why.
        cause: String,
    },
}

/// All stores.
#[derive(Clone)]
pub struct Stores {
    /// The truth.
    pub ledger: Ledger,
    /// What is made from it and can be lost.
    pub sets: Sets,
    /// Published events.
    pub event_log: Arc<dyn EventLog>,
    /// Posts and follows, for reading at scale.
    pub archive: Archive,
}

impl Stores {
    /// Opens all of them.
    pub async fn open(config: &Config, parts: &Parts) -> Result<Self, OpenError> {
        let ledger = config.open_ledger(parts).await?;
        let sets = config.open_sets(parts).await?;
        let event_log = config.open_event_log(parts, &ledger).await?;
        let archive = config.open_archive(parts, &ledger).await?;
        Ok(Self { ledger, sets, event_log, archive })
    }
}

impl Config {
    /// Opens the ledger.
    pub async fn open_ledger(&self, parts: &Parts) -> Result<Ledger, OpenError> {
        match &self.ledger {
            LedgerUrl::Sqlite(path) => Ok(Ledger::sqlite(Sqlite::open(path, self.shards, parts.clock.clone()).await?)),
            LedgerUrl::Postgres(url) => Ok(Ledger::postgres(Postgres::open(url, self, parts).await?)),
        }
    }

    /// Opens the sets.
    pub async fn open_sets(&self, parts: &Parts) -> Result<Sets, OpenError> {
        match &self.sets {
            SetsUrl::Memory => Ok(Sets::of(Arc::new(Memory::new(parts.clock.clone(), parts.random.clone())))),
            url @ (SetsUrl::Redis(_) | SetsUrl::RedisCluster(_)) => {
                let (authority, random) = (self.sets_ca.as_deref(), parts.random.clone());
                Ok(Sets::of(Arc::new(Redis::open(url, authority, &self.namespace, random).await?)))
            }
        }
    }

    /// Opens the event log.
    pub async fn open_event_log(&self, parts: &Parts, ledger: &Ledger) -> Result<Arc<dyn EventLog>, OpenError> {
        match (&self.events, &ledger.as_event_log) {
            (EventsUrl::InLedger, Some(log)) => Ok(log.clone()),
            (EventsUrl::Kafka(brokers), _) => Ok(Arc::new(KafkaLog::open(brokers, self, parts).await?)),
            (EventsUrl::InLedger, None) => Err(OpenError::Unusable {
                store: "the event log",
                place: "ledger://".into(),
                cause: "this ledger has no event log of its own".into(),
            }),
        }
    }

    /// Opens the archive.
    pub async fn open_archive(&self, parts: &Parts, ledger: &Ledger) -> Result<Archive, OpenError> {
        match &self.archive {
            ArchiveUrl::InLedger => Ok(ledger.as_archive.clone()),
            ArchiveUrl::Scylla(url) => archive::open_scylla(url, self, parts, ledger).await,
        }
    }

    /// Takes all embedded data away, unless a process uses it.
    pub fn erase(&self) -> Result<(), OpenError> {
        match &self.ledger {
            LedgerUrl::Sqlite(path) => Sqlite::erase(path),
            LedgerUrl::Postgres(_) => Ok(()),
        }
    }
}
