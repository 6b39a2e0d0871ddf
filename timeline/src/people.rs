//! People: accounts, sessions, and what people are to each other.

mod accounts;
mod attempts;
mod email;
mod graph;
pub(crate) mod grpc;
mod name;
mod password;
mod sessions;
mod sign_in;

use std::{sync::Arc, time::Duration};

use attempts::Attempts;
use chassis::{Clock, Error, Random, config::Keys, id::Minter};
use graph::Graph;
use password::Hasher;
use store::{
    Stores,
    ledger::{Accounts, FollowLimits, Relations},
    sets::{HomeTimelines, Sessions},
};

/// How people sign in.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    passwords: password::Config,
    attempts: attempts::Config,
    session_ttl: Duration,
    session_max: Duration,
    graph: graph::Config,
}

impl Config {
    /// Reads the keys `people.*`.
    pub(crate) fn read(keys: &mut Keys) -> Self {
        let day = Duration::from_secs(24 * 3600);
        let range = Duration::from_secs(1)..=3650 * day;
        let passwords = password::Config::read(keys);
        let about = "how long a session lasts without being used";
        let session_ttl = keys.duration("people.session_ttl", 30 * day, range.clone(), about);
        let about = "how long a session lasts at the most";
        let session_max = keys.duration("people.session_max", 180 * day, range, about);
        let (attempts, graph) = (attempts::Config::read(keys), graph::Config::read(keys));
        Self { passwords, attempts, session_ttl, session_max, graph }
    }

    /// The limits of who follows whom.
    pub(crate) const fn follow_limits(&self) -> FollowLimits {
        self.graph.limits()
    }
}

/// Accounts, sessions, and who follows whom.
pub(crate) struct People {
    accounts: Arc<dyn Accounts>,
    relations: Arc<dyn Relations>,
    graph: Graph,
    sessions: Arc<dyn Sessions>,
    homes: Arc<dyn HomeTimelines>,
    attempts: Attempts,
    ids: Arc<Minter>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    hasher: Hasher,
    session_ttl: Duration,
    session_max: Duration,
}

impl People {
    pub(crate) fn new(
        stores: &Stores,
        ids: Arc<Minter>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        config: Config,
    ) -> Result<Self, Error> {
        let hasher = Hasher::new(&config.passwords, random.clone())?;
        Ok(Self {
            accounts: stores.ledger.accounts.clone(),
            relations: stores.ledger.relations.clone(),
            graph: Graph::new(stores, ids.clone(), clock.clone(), &config.graph),
            sessions: stores.sets.sessions.clone(),
            homes: stores.sets.homes.clone(),
            attempts: Attempts::new(stores.sets.attempts.clone(), random.clone(), config.attempts),
            ids,
            clock,
            random,
            hasher,
            session_ttl: config.session_ttl,
            session_max: config.session_max,
        })
    }
}
