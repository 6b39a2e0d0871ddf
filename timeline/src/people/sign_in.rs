//! Passwords for sessions: signing in, and changing the password.

use chassis::{Error, Reason};
use proto::UserId;
use store::{
    ledger::{Account, Credentials},
    sets::{Session, SessionHash, SessionId},
};
use tracing::warn;

use super::{
    People,
    attempts::{DeviceSecret, Source, Who},
    name::Handle,
    password::{Password, Verdict},
    sessions::Device,
};

/// Who wants in.
pub(super) struct SignIn {
    /// As it was given: what is no handle is nobody's.
    pub(super) handle: String,
    pub(super) password: Password,
    pub(super) source: Source,
    pub(super) device: Device,
}

/// A session that was just opened. Its secret is known here only.
pub(super) struct SignedIn {
    pub(super) account: Account,
    pub(super) secret: String,
    pub(super) session: Session,
    pub(super) id: SessionId,
    pub(super) device_secret: DeviceSecret,
}

impl People {
    /// An unknown handle costs the same as a wrong password, in time and in tries, so that neither tells them apart.
    pub(super) async fn sign_in(&self, request: SignIn) -> Result<SignedIn, Error> {
        let SignIn { handle, password, source, device } = request;
        let who = Who::with_handle(&handle);
        let ticket = self.attempts.begin(&who, &source).await?;
        let checked = self.check(&handle, password).await;
        let Some(credentials) = ticket.judge(&self.attempts, checked).await? else { return Err(wrong()) };
        let device_secret = source.device.clone().unwrap_or_else(|| DeviceSecret::new(&*self.random));
        self.attempts.remember(&who, &source.address, &device_secret).await?;

        let (secret, now) = (self.random.secret(), self.clock.unix_ms());
        let span_ms = |span: std::time::Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 4);
        let session = Session {
            user: credentials.account.id,
            device: device.into(),
            created_at_ms: now,
            last_seen_at_ms: now,
            idle_ms: span_ms(self.session_ttl),
            ends_at_ms: now + span_ms(self.session_max),
        };
        let hash = SessionHash::of(&secret);
        self.sessions.open(hash, session.clone()).await?;
        // Whoever changes the password, or deletes the account, commits that and then ends the sessions that are open. So of
        // the two at the same moment, at least one sees the other.
        let now = self.accounts.credentials_of(credentials.account.id).await?;
        if now.is_none_or(|now| now.changed_us != credentials.changed_us) {
            self.sessions.end(hash).await?;
            return Err(wrong());
        }
        Ok(SignedIn { account: credentials.account, secret, session, id: hash.id(), device_secret })
    }

    /// Sessions are ended on both sides of the change: before it, so that a death in between leaves none; after it, for those
    /// that were opened meanwhile.
    pub(super) async fn change_password(
        &self,
        user: UserId,
        [old, new]: [Password; 2],
        keep: Option<SessionId>,
    ) -> Result<(), Error> {
        let credentials = self.accounts.credentials_of(user).await?;
        let credentials = credentials.ok_or_else(|| Error::new(Reason::UserNotFound, "there is no such user"))?;
        let ticket = self.attempts.begin_own(user).await?;
        let checked = self.verify(Some(credentials), old).await;
        let Some(credentials) = ticket.judge(&self.attempts, checked).await? else {
            return Err(Error::new(Reason::CredentialsWrong, "the old password does not fit"));
        };
        let hash = self.hasher.hash(new).await?;
        self.sessions.end_all(user, keep).await?;
        if !self.accounts.set_password(&credentials, &hash).await? {
            return Err(Error::new(Reason::CredentialsWrong, "the password was changed by somebody else just now"));
        }
        self.sessions.end_all(user, keep).await?;
        Ok(())
    }

    /// The credentials of a handle, if the password fits.
    async fn check(&self, handle: &str, password: Password) -> Result<Option<Credentials>, Error> {
        let found = match Handle::new(handle) {
            Ok(handle) => self.accounts.credentials(&String::from(handle)).await?,
            Err(_) => None,
        };
        self.verify(found, password).await
    }

    /// The credentials, if the password fits. A hash that was made with other parameters is replaced.
    async fn verify(&self, found: Option<Credentials>, password: Password) -> Result<Option<Credentials>, Error> {
        let hash = found.as_ref().map(|found| found.password_hash.clone());
        let Verdict { fits, better } = self.hasher.verify(password, hash).await?;
        let Some(mut credentials) = found.filter(|_| fits) else { return Ok(None) };
        if let Some(better) = better {
            match self.accounts.rehash(&credentials, &better).await {
                Ok(()) => credentials.password_hash = better,
                // It is as good as before, and the next sign-in tries again.
                Err(cause) => warn!("cannot replace a password's hash by one with other parameters: {cause}"),
            }
        }
        Ok(Some(credentials))
    }
}

fn wrong() -> Error {
    Error::new(Reason::CredentialsWrong, "handle and password do not fit")
}
