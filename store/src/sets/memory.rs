//! The sets of an embedded set-up, in the process. They are empty at the start, as after a lost Redis, and are built by the
//! same rebuild.

mod attempts;
mod authors;
mod connections;
mod homes;
mod hot;
mod members;
mod progress;
mod sessions;
mod settled;
mod sorted_set;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use chassis::{Clock, Random};
use proto::UserId;
use sorted_set::SortedSet;
use tokio::sync::Notify;

use super::{Entry, PodName, RECENT_MEMBERS_MAX, Recents, Session, SessionHash};
use crate::{Error, Shard};

/// All sets, in the process.
pub struct Memory {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    state: Mutex<State>,
    /// Rung whenever a pod is told something.
    told: Notify,
}

#[derive(Default)]
struct State {
    homes: HashMap<UserId, homes::Home>,
    recents: HashMap<UserId, SortedSet>,
    sessions: HashMap<SessionHash, Session>,
    windows: attempts::Windows,
    /// By person, then by source, with the time until when each counts.
    known: HashMap<String, HashMap<String, i64>>,
    /// By reader, then by connection.
    connections: HashMap<UserId, HashMap<String, connections::Registered>>,
    pods: BTreeMap<PodName, connections::PodStream>,
    hot: BTreeMap<String, hot::Day>,
    /// With the time when each runs out.
    relays: BTreeMap<PodName, i64>,
    settled: BTreeMap<Shard, i64>,
}

impl Memory {
    /// Empty sets.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Random>) -> Self {
        Self { clock, random, state: Mutex::default(), told: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No operation leaves the state half changed when it panics: each one is a few inserts.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Recents for Memory {
    async fn push(&self, entries: &[Entry]) -> Result<(), Error> {
        let mut state = self.state();
        for entry in entries {
            let recent = state.recents.entry(entry.author).or_default();
            recent.add(entry.score(), &entry.member());
            while recent.len() > RECENT_MEMBERS_MAX {
                recent.pop_last();
            }
        }
        Ok(())
    }

    async fn take_out(&self, entry: Entry) -> Result<(), Error> {
        if let Some(recent) = self.state().recents.get_mut(&entry.author) {
            recent.remove(entry.score(), &entry.member());
        }
        Ok(())
    }

    async fn newest(&self, author: UserId, limit: usize) -> Result<Vec<Entry>, Error> {
        let state = self.state();
        let members = state.recents.get(&author).map(SortedSet::members).into_iter().flatten();
        members.take(limit).map(Entry::from_member).collect()
    }
}
