//! Who is signed in.

use std::{fmt, str::FromStr};

use async_trait::async_trait;
use proto::UserId;
use sha2::{Digest as _, Sha256};

use crate::Error;

/// How many sessions a person has at the most. Past it, the one that was not seen for the longest time is ended.
pub const SESSIONS_A_PERSON_MAX: usize = 100;
/// How exactly it is known when a session was last seen: a use within this time of the last one writes nothing.
pub const SESSION_SEEN_MS: i64 = 60_000;

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Whose.
    pub user: UserId,
    /// What the device said that it is.
    pub device: String,
    /// When it was opened.
    pub created_at_ms: i64,
    /// When it was last used, to [`SESSION_SEEN_MS`].
    pub last_seen_at_ms: i64,
    /// How long it lasts without being used.
    pub idle_ms: i64,
    /// When it ends, however much it is used.
    pub ends_at_ms: i64,
}

impl Session {
    /// When it ends if it is not used until then.
    #[must_use]
    pub fn expires_at_ms(&self) -> i64 {
        self.last_seen_at_ms.saturating_add(self.idle_ms).min(self.ends_at_ms)
    }

    /// Whether a use at this moment is worth a write.
    #[must_use]
    pub fn is_to_be_renewed(&self, now_ms: i64) -> bool {
        now_ms - self.last_seen_at_ms >= SESSION_SEEN_MS.min(self.idle_ms / 2)
    }
}

/// The hash of a session's secret: the secret itself is stored nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionHash(pub(super) [u8; 32]);

impl SessionHash {
    /// The hash of a secret.
    #[must_use]
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// What the session is called where its owner can see it.
    #[must_use]
    pub fn id(self) -> SessionId {
        let digest: [u8; 32] = Sha256::digest(self.0).into();
        let mut id = [0; SessionId::BYTES];
        id.copy_from_slice(&digest[..SessionId::BYTES]);
        SessionId(id)
    }
}

/// What a session is called where its owner can see it: the beginning of its hash's hash. Nothing leads back from it to the
/// hash, nor from that to the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId([u8; Self::BYTES]);

impl SessionId {
    const BYTES: usize = 16;
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What was given is no id of a session.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an id of a session: it must be 32 hexadecimal digits")]
pub struct InvalidSessionId;

impl FromStr for SessionId {
    type Err = InvalidSessionId;

    fn from_str(text: &str) -> Result<Self, InvalidSessionId> {
        if text.len() != 2 * Self::BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(InvalidSessionId);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| InvalidSessionId)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// Who is signed in. What is ended stays ended, whatever else is done to it at the same moment.
#[async_trait]
pub trait Sessions: Send + Sync {
    /// Opens a session; see [`SESSIONS_A_PERSON_MAX`].
    async fn open(&self, hash: SessionHash, session: Session) -> Result<(), Error>;

    /// The session, while it lasts.
    async fn find(&self, hash: SessionHash) -> Result<Option<Session>, Error>;

    /// Notes that a session was used, if it is still there: its end moves on. It never goes back.
    async fn renew(&self, hash: SessionHash, seen_at_ms: i64) -> Result<(), Error>;

    /// Ends a session.
    async fn end(&self, hash: SessionHash) -> Result<(), Error>;

    /// A person's sessions, the one that was seen last first.
    async fn of_user(&self, user: UserId) -> Result<Vec<(SessionId, Session)>, Error>;

    /// Ends one of a person's sessions. False when there was none with this id.
    async fn end_one(&self, user: UserId, id: SessionId) -> Result<bool, Error>;

    /// Ends all of a person's sessions but this one. Tells how many there were.
    async fn end_all(&self, user: UserId, keep: Option<SessionId>) -> Result<u32, Error>;
}

/// Puts the one that was seen last first.
pub(super) fn sort(sessions: &mut [(SessionId, Session)]) {
    sessions.sort_unstable_by_key(|(id, session)| (std::cmp::Reverse(session.last_seen_at_ms), *id));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_nothing_of_the_secret_and_is_read_as_it_is_written() {
        let hash = SessionHash::of("secret");
        let text = hash.id().to_string();
        assert_eq!(text.parse(), Ok(hash.id()));
        assert_eq!(text.to_uppercase().parse(), Ok(hash.id()));
        assert_ne!(hash.id(), SessionHash::of("another").id());
        assert_ne!(hash.id().0, hash.0[..SessionId::BYTES], "it is no part of the hash");
        for bad in ["", "0", &text[1..], &format!("{text}0"), &"g".repeat(32), &format!("+{}", &text[1..])] {
            assert_eq!(bad.parse::<SessionId>(), Err(InvalidSessionId), "{bad:?}");
        }
    }

    #[test]
    fn a_use_is_written_once_a_minute() {
        let user = UserId::new(1).unwrap();
        let session = Session {
            user,
            device: String::new(),
            created_at_ms: 0,
            last_seen_at_ms: 1_000_000,
            idle_ms: 10_000_000,
            ends_at_ms: 5_000_000,
        };
        assert_eq!(session.expires_at_ms(), 5_000_000);
        assert!(!session.is_to_be_renewed(1_000_000 + SESSION_SEEN_MS - 1));
        assert!(session.is_to_be_renewed(1_000_000 + SESSION_SEEN_MS));
        // One that lasts for seconds is renewed before it is over.
        assert!(Session { idle_ms: 10_000, ..session }.is_to_be_renewed(1_005_000));
    }
}
