//! Shards: slices of the outbox, each with one owner at a time. A topic's partition is its shard, so that order is kept a key
//! from the ledger to the last consumer.

use std::fmt;

/// How many shards there are when nobody says otherwise. Fixed when the ledger is made.
pub const SHARDS_DEFAULT: u16 = 16;
/// How many there can be.
pub const SHARDS_MAX: u16 = 1024;

/// The number of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shard(pub u16);

impl Shard {
    /// The shard of a key, the same for ever.
    #[must_use]
    pub fn of(key: &str, shards: u16) -> Self {
        let slice = stable_hash(key.as_bytes()) % u64::from(shards);
        Self(u16::try_from(slice).unwrap_or_default())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// FNV-1a: unlike the standard library's hash, it is the same in every process and every release.
pub(crate) fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_shard_and_keys_spread() {
        assert_eq!(Shard::of("4242", 16), Shard(5));
        let mut counts = [0; 16];
        for user in 0..16_000 {
            counts[usize::from(Shard::of(&user.to_string(), 16).0)] += 1;
        }
        assert!(counts.iter().all(|count| (700..1300).contains(count)), "{counts:?}");
    }
}
