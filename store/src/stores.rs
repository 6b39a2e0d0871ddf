//! Opens the stores that a config names. A store is chosen by its URL's scheme.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use chassis::{Clock, Random, config::Keys};

use crate::{
    archive::{InLedger, PostsByAuthor},
    event_log::{EventLog, SqliteLog},
    ledger::{Accounts, Graph, Outbox, Posts, ShardLeases, Sqlite, WriterNumbers},
    sets::{Connections, HomeTimelines, HotLists, Memory, PodStreams, Recents, Sessions},
    shard::{SHARDS_DEFAULT, SHARDS_MAX},
};

/// Where data lives.
#[derive(Clone, Debug)]
pub struct Config {
    ledger: LedgerUrl,
    shards: u16,
}

/// Which ledger, by the scheme of its URL.
#[derive(Clone, Debug)]
enum LedgerUrl {
    /// `sqlite://PATH`: the file at this path, taken as it stands.
    Sqlite(PathBuf),
}

impl Config {
    /// Reads the keys `stores.*`. `ledger` is where the ledger is unless a key says otherwise.
    pub fn read(keys: &mut Keys, ledger: &Path) -> Self {
        let default = format!("sqlite://{}", ledger.display());
        let parse = |text: &str| match text.split_once("://") {
            Some(("sqlite", path)) if !path.is_empty() => Some(LedgerUrl::Sqlite(path.into())),
            _ => None,
        };
        let about = "where the truth is: accounts, follows, posts, likes, the outbox and the event log";
        let allowed = "sqlite:// and a path, such as sqlite:///var/lib/freshet/freshet.db";
        let ledger = LedgerUrl::Sqlite(ledger.into());
        let ledger = keys.value("stores.ledger", ledger, default, allowed, about, parse);
        let about = "slices of the outbox and partitions of a topic; fixed when the ledger is made";
        let range = 1..=u64::from(SHARDS_MAX);
        let shards = keys.number("stores.shards", u64::from(SHARDS_DEFAULT), range, about);
        Self { ledger, shards: u16::try_from(shards).unwrap_or(SHARDS_DEFAULT) }
    }

    /// Takes all data away, unless a process uses it.
    pub fn erase(&self) -> Result<(), OpenError> {
        let LedgerUrl::Sqlite(path) = &self.ledger;
        Sqlite::erase(path)
    }
}

/// Why the stores cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the folder.
    #[error("the data folder {} is in use by another freshet process", folder.display())]
    FolderInUse {
        /// Which folder.
        folder: PathBuf,
    },
    /// The ledger cannot be opened.
    #[error("cannot open the ledger {}: {cause}", path.display())]
    Ledger {
        /// Its file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

/// All stores, each by the trait of its concern.
#[derive(Clone)]
pub struct Stores {
    /// People.
    pub accounts: Arc<dyn Accounts>,
    /// Who follows whom.
    pub graph: Arc<dyn Graph>,
    /// Posts and likes.
    pub posts: Arc<dyn Posts>,
    /// Committed events.
    pub outbox: Arc<dyn Outbox>,
    /// Who publishes which shard.
    pub shard_leases: Arc<dyn ShardLeases>,
    /// Who mints ids under which number.
    pub writer_numbers: Arc<dyn WriterNumbers>,
    /// Published events.
    pub event_log: Arc<dyn EventLog>,
    /// Every author's posts.
    pub posts_by_author: Arc<dyn PostsByAuthor>,
    /// Readers' home timelines.
    pub homes: Arc<dyn HomeTimelines>,
    /// Authors' newest posts.
    pub recents: Arc<dyn Recents>,
    /// Who is signed in.
    pub sessions: Arc<dyn Sessions>,
    /// Who is connected where.
    pub connections: Arc<dyn Connections>,
    /// What edge pods are told.
    pub pod_streams: Arc<dyn PodStreams>,
    /// The hot posts of each day.
    pub hot_lists: Arc<dyn HotLists>,
}

impl Stores {
    /// Opens them.
    pub async fn open(config: &Config, clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Result<Self, OpenError> {
        let LedgerUrl::Sqlite(path) = &config.ledger;
        let ledger = Arc::new(Sqlite::open(path, config.shards, clock.clone()).await?);
        let sets = Arc::new(Memory::new(clock, random));
        Ok(Self {
            accounts: ledger.clone(),
            graph: ledger.clone(),
            posts: ledger.clone(),
            outbox: ledger.clone(),
            shard_leases: ledger.clone(),
            writer_numbers: ledger.clone(),
            event_log: Arc::new(SqliteLog::new(ledger.clone())),
            posts_by_author: Arc::new(InLedger(ledger)),
            homes: sets.clone(),
            recents: sets.clone(),
            sessions: sets.clone(),
            connections: sets.clone(),
            pod_streams: sets.clone(),
            hot_lists: sets,
        })
    }
}
