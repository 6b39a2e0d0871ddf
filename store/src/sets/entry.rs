//! The form of a timeline in a sorted set. An entry: score = minus the milliseconds of its id, so that new entries land at
//! the head; member = the inverted id (so that the newest comes first within a millisecond too) and the author. A sentinel
//! comes last and says down to where the set is complete: it cannot be lost apart from the entries that it vouches for,
//! and lets an empty timeline exist.

use proto::{EntryId, UserId};

use super::BuildToken;
use crate::{Error, error::damaged};

const STORE: &str = "the sets";
const ENTRY_BYTES: usize = 16;
const SENTINEL_BYTES: usize = 18;
/// Higher than the first byte of every entry, whose inverted id is positive.
const SENTINEL_MARK: u8 = 0xFF;

/// A reference to a post in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its place.
    pub id: EntryId,
    /// Who wrote the post.
    pub author: UserId,
}

impl Entry {
    /// Its score in the sorted set.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "milliseconds stay below 2^53 for 285,000 years")]
    pub fn score(self) -> f64 {
        -(self.id.unix_ms() as f64)
    }

    /// Its member in the sorted set.
    #[must_use]
    pub fn member(self) -> [u8; ENTRY_BYTES] {
        let mut member = [0; ENTRY_BYTES];
        member[..8].copy_from_slice(&(i64::MAX - self.id.get()).to_be_bytes());
        member[8..].copy_from_slice(&self.author.get().to_be_bytes());
        member
    }

    /// Reads a member.
    pub fn from_member(member: &[u8]) -> Result<Self, Error> {
        let bad = || damaged(STORE, format_args!("the member {member:02x?} is no entry"));
        let member: &[u8; ENTRY_BYTES] = member.try_into().map_err(|_| bad())?;
        let (id, author) = member.split_at(8);
        let number = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes).map_err(|_| bad());
        let id = EntryId::new(i64::MAX - number(id)?).map_err(|_| bad())?;
        Ok(Self { id, author: UserId::new(number(author)?).map_err(|_| bad())? })
    }
}

/// Down to where a set is complete: every entry with this id or a higher one is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Coverage(i64);

impl Coverage {
    /// Complete to the beginning.
    pub const TO_THE_BEGINNING: Self = Self(0);

    /// Complete down to this entry, itself included.
    #[must_use]
    pub fn down_to(entry: EntryId) -> Self {
        Self(entry.get())
    }

    /// Whether an entry with this id would have to be in the set.
    #[must_use]
    pub fn includes(self, entry: EntryId) -> bool {
        entry.get() >= self.0
    }

    /// As the sentinel has it.
    pub(super) fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    /// The entry below which the set knows nothing; `None` when it is complete to the beginning.
    #[must_use]
    pub fn bottom(self) -> Option<EntryId> {
        EntryId::new(self.0).ok()
    }
}

/// How far a set is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Somebody is building it: not to be read.
    Building,
    /// To be read.
    Complete,
}

/// The last member of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sentinel {
    /// How far the set is built.
    pub state: State,
    /// Whose build it is or was.
    pub token: BuildToken,
    /// Down to where it is complete.
    pub coverage: Coverage,
}

impl Sentinel {
    /// Its score: always last.
    pub const SCORE: f64 = f64::INFINITY;

    /// Its member in the sorted set.
    #[must_use]
    pub fn member(self) -> [u8; SENTINEL_BYTES] {
        let mut member = [SENTINEL_MARK; SENTINEL_BYTES];
        member[1] = match self.state {
            State::Building => 0,
            State::Complete => 1,
        };
        member[2..10].copy_from_slice(&self.token.0.to_be_bytes());
        member[10..].copy_from_slice(&self.coverage.to_bytes());
        member
    }

    /// Reads a member; `None` when it is an entry.
    pub fn from_member(member: &[u8]) -> Result<Option<Self>, Error> {
        if member.first() != Some(&SENTINEL_MARK) {
            return Ok(None);
        }
        let bad = || damaged(STORE, format_args!("the member {member:02x?} is no sentinel"));
        let member: &[u8; SENTINEL_BYTES] = member.try_into().map_err(|_| bad())?;
        let state = match member[1] {
            0 => State::Building,
            1 => State::Complete,
            _ => return Err(bad()),
        };
        let (token, coverage) = member[2..].split_at(8);
        let token = BuildToken(token.try_into().map(u64::from_be_bytes).map_err(|_| bad())?);
        let coverage = Coverage(coverage.try_into().map(i64::from_be_bytes).map_err(|_| bad())?);
        Ok(Some(Self { state, token, coverage }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(id: i64, author: i64) -> Entry {
        Entry { id: EntryId::new(id).unwrap(), author: UserId::new(author).unwrap() }
    }

    proptest! {
        #[test]
        fn members_are_read_as_they_were_written(id in 1..=i64::MAX, author in 1..=i64::MAX, token: u64, building: bool) {
            let entry = entry(id, author);
            prop_assert_eq!(Entry::from_member(&entry.member()).unwrap(), entry);
            let state = if building { State::Building } else { State::Complete };
            let sentinel = Sentinel { state, token: BuildToken(token), coverage: Coverage::down_to(entry.id) };
            prop_assert_eq!(Sentinel::from_member(&sentinel.member()).unwrap(), Some(sentinel));
            prop_assert_eq!(Sentinel::from_member(&entry.member()).unwrap(), None);
            prop_assert!(sentinel.member().as_slice() > entry.member().as_slice());
        }

        #[test]
        fn the_newer_entry_comes_first(a in 1..=i64::MAX, b in 1..=i64::MAX) {
            // By score, then by member, as a sorted set has it; ids of one millisecond differ by their member only.
            let key = |id| { let entry = entry(id, 1); (entry.score(), entry.member()) };
            prop_assert_eq!(a > b, key(a) < key(b));
        }

        #[test]
        fn garbage_is_told_not_served(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            if bytes.len() != ENTRY_BYTES {
                prop_assert!(Entry::from_member(&bytes).is_err());
            }
            _ = Sentinel::from_member(&bytes);
        }
    }
}
