//! What a reader's authors are to that reader, beyond those who are followed and pushed: kept beside the home, so that a page
//! is filtered without asking anybody else.

use async_trait::async_trait;
use proto::UserId;

use crate::{Error, error::damaged};

const STORE: &str = "the sets";
const FIELD_BYTES: usize = 9;
const VALUE_BYTES: usize = 16;
/// For how long a follow is remembered after it ended "unfollowed": no write that was under way then is taken any more.
pub const FOLLOWED_KEPT_MS: i64 = 10 * 60 * 1000;
/// For how long what was learnt of the ledger may be written.
pub const STATE_WRITE_MS_MAX: i64 = 60 * 1000;
const _: () = assert!(STATE_WRITE_MS_MAX < FOLLOWED_KEPT_MS);

/// A way in which an author is special to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Special {
    /// Merged at read, not pushed.
    Pull,
    /// No longer followed: what is still pushed, or not yet scrubbed, is not shown.
    Unfollowed,
    /// Blocked by the reader.
    Blocked,
    /// The author blocks the reader.
    BlockedBy,
    /// Muted by the reader.
    Muted,
}

impl Special {
    const ALL: [Self; 5] = [Self::Pull, Self::Unfollowed, Self::Blocked, Self::BlockedBy, Self::Muted];

    /// Its letter in the hash.
    pub(super) const fn letter(self) -> u8 {
        match self {
            Self::Pull => b'p',
            Self::Unfollowed => b'u',
            Self::Blocked => b'b',
            Self::BlockedBy => b'y',
            Self::Muted => b'm',
        }
    }
}

/// Whether an author is special to a reader in one way, as of a version: of two, the higher one is the newer truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuthorState {
    /// Who.
    pub author: UserId,
    /// In which way.
    pub special: Special,
    /// Until when, in milliseconds since 1970: [`Self::FOR_GOOD`], or [`Self::OVER`] when it is so no longer.
    pub until_ms: i64,
    /// Of the row that says so.
    pub version: i64,
}

impl AuthorState {
    /// It has ended.
    pub const OVER: i64 = 0;
    /// It does not end by itself.
    pub const FOR_GOOD: i64 = i64::MAX;

    /// A state that holds for good, or is over.
    #[must_use]
    pub const fn new(author: UserId, special: Special, holds: bool, version: i64) -> Self {
        Self { author, special, until_ms: if holds { Self::FOR_GOOD } else { Self::OVER }, version }
    }

    /// Whether the author's posts are not to be shown at this moment.
    #[must_use]
    pub fn hides_at(&self, unix_ms: i64) -> bool {
        self.special != Special::Pull && unix_ms < self.until_ms
    }

    /// Its field in the hash.
    pub(super) fn field(&self) -> [u8; FIELD_BYTES] {
        let mut field = [self.special.letter(); FIELD_BYTES];
        field[1..].copy_from_slice(&self.author.get().to_be_bytes());
        field
    }

    /// Its value in the hash.
    pub(super) fn value(&self) -> [u8; VALUE_BYTES] {
        let mut value = [0; VALUE_BYTES];
        value[..8].copy_from_slice(&self.version.to_be_bytes());
        value[8..].copy_from_slice(&self.until_ms.to_be_bytes());
        value
    }

    /// Reads a field and its value.
    pub(super) fn from_hash(field: &[u8], value: &[u8]) -> Result<Self, Error> {
        let bad = || damaged(STORE, format_args!("the state {field:02x?} = {value:02x?} is none"));
        let field: &[u8; FIELD_BYTES] = field.try_into().map_err(|_| bad())?;
        let value: &[u8; VALUE_BYTES] = value.try_into().map_err(|_| bad())?;
        let number = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes).map_err(|_| bad());
        let special = Special::ALL.into_iter().find(|special| special.letter() == field[0]).ok_or_else(bad)?;
        let author = UserId::new(number(&field[1..])?).map_err(|_| bad())?;
        let (version, until_ms) = value.split_at(8);
        Ok(Self { author, special, until_ms: number(until_ms)?, version: number(version)? })
    }
}

/// A version of a follow: that it began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowVersion {
    /// Who follows, or did.
    pub reader: UserId,
    /// Whom.
    pub author: UserId,
    /// The follow's version.
    pub version: i64,
}

/// What readers' authors are to them. A reader without a home has no states either: whoever builds the home reads them from
/// the ledger.
#[async_trait]
pub trait Authors: Send + Sync {
    /// Sets states of a reader's authors, each unless a newer one is there. Refused as [`Error::Unavailable`] when the clock
    /// is past `not_after_unix_ms`: whoever was frozen must ask the ledger again.
    async fn set(&self, reader: UserId, states: &[AuthorState], not_after_unix_ms: i64) -> Result<(), Error>;

    /// Takes an author's entries out of a home, while the reader has unfollowed that author with this very version.
    async fn scrub(&self, unfollowed: FollowVersion) -> Result<(), Error>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_state_is_read_as_it_was_written(author in 1..=i64::MAX, way in 0..5_usize, until_ms: i64, version: i64) {
            let author = UserId::new(author).unwrap();
            let state = AuthorState { author, special: Special::ALL[way], until_ms, version };
            prop_assert_eq!(AuthorState::from_hash(&state.field(), &state.value()).unwrap(), state);
        }

        #[test]
        fn garbage_is_told_not_served(field in prop::collection::vec(any::<u8>(), 0..12), value in prop::collection::vec(any::<u8>(), 0..20)) {
            if field.len() != FIELD_BYTES || value.len() != VALUE_BYTES {
                prop_assert!(AuthorState::from_hash(&field, &value).is_err());
            }
        }
    }

    #[test]
    fn what_is_over_or_only_pulled_hides_nothing() {
        let author = UserId::new(7).unwrap();
        let state = |special, until_ms| AuthorState { author, special, until_ms, version: 1 };
        assert!(state(Special::Muted, 10).hides_at(9));
        assert!(!state(Special::Muted, 10).hides_at(10));
        assert!(!state(Special::Unfollowed, AuthorState::OVER).hides_at(9));
        assert!(state(Special::BlockedBy, AuthorState::FOR_GOOD).hides_at(i64::MAX - 1));
        assert!(!state(Special::Pull, AuthorState::FOR_GOOD).hides_at(9));
    }
}
