//! People, as the ledger has them.

use async_trait::async_trait;
use proto::UserId;

use super::Event;
use crate::Error;

/// A person's row, as everybody may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Who.
    pub id: UserId,
    /// The unique name, in small letters.
    pub handle: String,
    /// What is shown.
    pub display_name: String,
    /// What they say of themselves.
    pub bio: String,
    /// When the account was made.
    pub created_at_ms: i64,
}

/// A person's row, as only that person may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAccount {
    /// What everybody may see.
    pub account: Account,
    /// The e-mail address, as it was written.
    pub email: Option<String>,
}

/// A person who signs up.
#[derive(Clone, Debug)]
pub struct NewAccount {
    /// Who.
    pub id: UserId,
    /// The unique name, in small letters.
    pub handle: String,
    /// What is shown.
    pub display_name: String,
    /// The e-mail address, if there is one.
    pub email: Option<String>,
    /// The argon2id hash of the password.
    pub password_hash: String,
}

/// What someone signs in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Who.
    pub account: Account,
    /// The argon2id hash of the password.
    pub password_hash: String,
    /// When the password was chosen: it tells whether it is still the same one. In microseconds since 1970.
    pub changed_us: i64,
}

/// What is to change of a profile; the rest stays.
#[derive(Clone, Debug, Default)]
pub struct ProfileChange {
    /// What is shown.
    pub display_name: Option<String>,
    /// What they say of themselves.
    pub bio: Option<String>,
    /// The e-mail address; `Some(None)` takes it away.
    pub email: Option<Option<String>>,
}

/// People. Whoever was deleted is not there, for every method but [`Accounts::delete`]; only the handle stays taken.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Makes an account. [`Error::HandleTaken`] when the handle is, or was, someone's; [`Error::EmailTaken`] when the e-mail
    /// address is someone's, without regard to case.
    async fn create(&self, account: NewAccount, event: Event<'_, Account>) -> Result<Account, Error>;

    /// Whether there is such a person.
    async fn exists(&self, user: UserId) -> Result<bool, Error>;

    /// The people with these ids, in no order; unknown ids are left out.
    async fn batch(&self, ids: &[UserId]) -> Result<Vec<Account>, Error>;

    /// The person with this handle, which is in small letters.
    async fn by_handle(&self, handle: &str) -> Result<Option<Account>, Error>;

    /// The person, with what nobody else may see.
    async fn own(&self, user: UserId) -> Result<Option<OwnAccount>, Error>;

    /// What the person with this handle signs in by.
    async fn credentials(&self, handle: &str) -> Result<Option<Credentials>, Error>;

    /// What the person signs in by.
    async fn credentials_of(&self, user: UserId) -> Result<Option<Credentials>, Error>;

    /// Changes a profile. Where all is so already, no event is written. [`Error::EmailTaken`] as for
    /// [`create`](Self::create).
    async fn update(&self, user: UserId, change: ProfileChange, event: Event<'_, Account>)
    -> Result<OwnAccount, Error>;

    /// Sets another password, if the one that these credentials tell of is still set. False when it is not: of two who change
    /// it at once, one does. Nobody derives anything from a password, so no event tells of it.
    async fn set_password(&self, before: &Credentials, hash: &str) -> Result<bool, Error>;

    /// Puts another hash of the same password in the place of the one that these credentials have, if it is still there.
    async fn rehash(&self, before: &Credentials, hash: &str) -> Result<(), Error>;

    /// Deletes a person: the row stays, without anything personal, and keeps the handle. False when it was so already. When
    /// this is answered nobody can write in that person's name any more, and everything that they wrote is committed.
    async fn delete(&self, user: UserId, event: Event<'_, ()>) -> Result<bool, Error>;
}
