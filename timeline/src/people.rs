//! People: signing up, signing in, and what they are to each other.

mod graph;
pub(crate) mod grpc;
mod name;
mod password;

use std::{sync::Arc, time::Duration};

use chassis::{Clock, Error, Random, Reason, config::Keys, id::Minter};
use graph::Graph;
use name::{DisplayName, Handle};
use password::{Hasher, Password};
use proto::freshet::event::v1::{UserCreated, envelope::Payload};
use store::{
    Stores,
    ledger::{Account, Accounts, Event, NewAccount},
    sets::{Session, SessionHash, Sessions},
};

/// How people sign in.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    passwords: password::Config,
    session_ttl: Duration,
    graph: graph::Config,
}

impl Config {
    /// Reads the keys `people.*`.
    pub(crate) fn read(keys: &mut Keys) -> Self {
        let day = Duration::from_secs(24 * 3600);
        let range = Duration::from_secs(1)..=365 * day;
        Self {
            passwords: password::Config::read(keys),
            session_ttl: keys.duration("people.session_ttl", 30 * day, range, "how long a session lasts"),
            graph: graph::Config::read(keys),
        }
    }
}

/// A session that was just opened. The secret is known here only.
pub(crate) struct SignedIn {
    account: Account,
    secret: String,
    expires_at_ms: i64,
}

/// Accounts, sessions, and who follows whom.
pub(crate) struct People {
    accounts: Arc<dyn Accounts>,
    graph: Graph,
    sessions: Arc<dyn Sessions>,
    ids: Arc<Minter>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    hasher: Hasher,
    session_ttl: Duration,
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
            graph: Graph::new(stores, ids.clone(), clock.clone(), &config.graph),
            sessions: stores.sets.sessions.clone(),
            ids,
            clock,
            random,
            hasher,
            session_ttl: config.session_ttl,
        })
    }

    async fn sign_up(&self, handle: Handle, name: DisplayName, password: Password) -> Result<Account, Error> {
        // Hashed before anything is minted: it takes its time, and the ledger takes no old ids.
        let password_hash = self.hasher.hash(password).await?;
        let event = self.ids.mint()?;
        let (handle, display_name) = (handle.into(), name.into());
        let account = NewAccount { id: self.ids.mint()?, handle, display_name, password_hash };
        let compose = |row: &Account| {
            Payload::UserCreated(UserCreated {
                user_id: row.id.to_string(),
                handle: row.handle.clone(),
                display_name: row.display_name.clone(),
            })
        };
        Ok(self.accounts.create(account, Event { id: event, compose: &compose }).await?)
    }

    /// An unknown handle costs the same hashing as a wrong password, so that time does not tell them apart.
    async fn sign_in(&self, handle: &str, password: Password) -> Result<SignedIn, Error> {
        let found = match Handle::new(handle) {
            Ok(handle) => self.accounts.credentials(&String::from(handle)).await?,
            // What is no handle is nobody's.
            Err(_) => None,
        };
        let (account, hash) = found.map_or((None, None), |(account, hash)| (Some(account), Some(hash)));
        let fits = self.hasher.verify(password, hash).await?;
        let Some(account) = account.filter(|_| fits) else {
            return Err(Error::new(Reason::CredentialsWrong, "handle and password do not fit"));
        };
        let secret = self.random.secret();
        let ttl_ms = i64::try_from(self.session_ttl.as_millis()).unwrap_or(i64::MAX / 2);
        let expires_at_ms = self.clock.unix_ms() + ttl_ms;
        self.sessions.open(SessionHash::of(&secret), Session { user: account.id, expires_at_ms }).await?;
        Ok(SignedIn { account, secret, expires_at_ms })
    }
}
