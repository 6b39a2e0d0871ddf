//! Accounts: signing up, reading people, changing a profile, going away.

use std::collections::HashMap;

use chassis::{Error, Reason};
use proto::{
    UserId,
    freshet::event::v1::{UserChanged, UserCreated, UserDeleted, envelope::Payload},
};
use store::ledger::{Account, Counters, Event, NewAccount, OwnAccount, ProfileChange};

use super::{
    People,
    email::Email,
    name::{Bio, DisplayName, Handle},
    password::Password,
};

/// People who can be asked for at once.
pub(super) const BATCH_USERS_MAX: usize = 200;

/// Who wants an account.
pub(super) struct SignUp {
    pub(super) handle: Handle,
    pub(super) name: DisplayName,
    pub(super) email: Option<Email>,
    pub(super) password: Password,
}

/// What is to change of a profile.
#[derive(Default)]
pub(super) struct Update {
    /// The name; `Some(None)` makes it the handle.
    pub(super) name: Option<Option<DisplayName>>,
    pub(super) bio: Option<Bio>,
    /// The address; `Some(None)` takes it away.
    pub(super) email: Option<Option<Email>>,
}

impl People {
    pub(super) async fn sign_up(&self, new: SignUp) -> Result<Account, Error> {
        // Hashed before anything is minted: it takes its time, and the ledger takes no old ids.
        let password_hash = self.hasher.hash(new.password).await?;
        let event = self.ids.mint()?;
        let (handle, display_name, email) = (new.handle.into(), new.name.into(), new.email.map(String::from));
        let account = NewAccount { id: self.ids.mint()?, handle, display_name, email, password_hash };
        let compose = |row: &Account| {
            Payload::UserCreated(UserCreated {
                user_id: row.id.to_string(),
                handle: row.handle.clone(),
                display_name: row.display_name.clone(),
            })
        };
        Ok(self.accounts.create(account, Event { id: event, compose: &compose }).await?)
    }

    pub(super) async fn user(&self, user: UserId) -> Result<Account, Error> {
        self.accounts.batch(&[user]).await?.pop().ok_or_else(nobody)
    }

    /// Those who are there, each as often and in the order as asked for, and those who are not.
    pub(super) async fn users(&self, ids: &[UserId]) -> Result<(Vec<Account>, Vec<UserId>), Error> {
        let found = self.accounts.batch(ids).await?;
        let found: HashMap<_, _> = found.into_iter().map(|account| (account.id, account)).collect();
        let (mut users, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            match found.get(id) {
                Some(account) => users.push(account.clone()),
                None => missing.push(*id),
            }
        }
        Ok((users, missing))
    }

    /// The exact numbers of those who are there.
    pub(super) async fn counters(&self, ids: &[UserId]) -> Result<HashMap<UserId, Counters>, Error> {
        let counters = self.relations.counters(ids).await?;
        Ok(counters.into_iter().map(|counters| (counters.user, counters)).collect())
    }

    pub(super) async fn user_by_handle(&self, handle: Handle) -> Result<Account, Error> {
        self.accounts.by_handle(&String::from(handle)).await?.ok_or_else(nobody)
    }

    pub(super) async fn own_account(&self, user: UserId) -> Result<OwnAccount, Error> {
        self.accounts.own(user).await?.ok_or_else(nobody)
    }

    pub(super) async fn update_profile(&self, user: UserId, update: Update) -> Result<OwnAccount, Error> {
        let display_name = match update.name {
            // A handle never changes, so it does not matter that it is read before.
            Some(None) => Some(self.user(user).await?.handle),
            Some(Some(name)) => Some(name.into()),
            None => None,
        };
        let (bio, email) = (update.bio.map(String::from), update.email.map(|email| email.map(String::from)));
        let compose = |row: &Account| {
            Payload::UserChanged(UserChanged {
                user_id: row.id.to_string(),
                handle: row.handle.clone(),
                display_name: row.display_name.clone(),
                bio: row.bio.clone(),
            })
        };
        let event = Event { id: self.ids.mint()?, compose: &compose };
        Ok(self.accounts.update(user, ProfileChange { display_name, bio, email }, event).await?)
    }

    /// The person is gone when the ledger says so. Sessions are ended on both sides of that: before it, so that a death in
    /// between leaves none; after it, for one that was opened meanwhile. The home goes after it too: who builds one looks whether
    /// its reader is there when its keys are made, so that none is left. Whoever gets no answer may ask again; what the person
    /// has to do with others ends by a job.
    pub(super) async fn delete_account(&self, user: UserId) -> Result<(), Error> {
        self.sessions.end_all(user, None).await?;
        let compose = |(): &()| Payload::UserDeleted(UserDeleted { user_id: user.to_string() });
        self.accounts.delete(user, Event { id: self.ids.mint()?, compose: &compose }).await?;
        self.sessions.end_all(user, None).await?;
        Ok(self.homes.remove(user).await?)
    }
}

fn nobody() -> Error {
    Error::new(Reason::UserNotFound, "there is no such user")
}
