//! The rows that were read and are not yet removed, and the shards that rest after a failure. The reader asks for what is not
//! among them, so that a shard's next rows are sent while the ones before are still on their way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use store::Shard;

/// How many rows of a shard are under way at the most.
pub(super) const SHARD_ROWS_MAX: usize = 1000;

/// What every lane has in hand.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<BTreeMap<Shard, Hand>>);

/// What a lane has in hand.
#[derive(Debug, Default)]
struct Hand {
    rows: BTreeSet<i64>,
    rests: bool,
}

impl UnderWay {
    /// Whether a shard's lane takes more rows.
    pub(super) fn has_room(&self, shard: Shard) -> bool {
        self.hands().get(&shard).is_none_or(|hand| !hand.rests && hand.rows.len() < SHARD_ROWS_MAX)
    }

    /// The rows of these shards.
    pub(super) fn of(&self, shards: &[Shard]) -> Vec<(Shard, i64)> {
        let hands = self.hands();
        let rows = shards.iter().filter_map(|shard| hands.get(shard).map(|hand| (*shard, &hand.rows)));
        rows.flat_map(|(shard, rows)| rows.iter().map(move |id| (shard, *id))).collect()
    }

    /// Rows were read.
    pub(super) fn take(&self, shard: Shard, ids: impl Iterator<Item = i64>) {
        self.hands().entry(shard).or_default().rows.extend(ids);
    }

    /// Rows were removed, or are to be read again. Whether the lane had no room for more until now.
    pub(super) fn give_back(&self, shard: Shard, ids: &[i64]) -> bool {
        let mut hands = self.hands();
        let hand = hands.entry(shard).or_default();
        let was_full = hand.rows.len() >= SHARD_ROWS_MAX;
        for id in ids {
            hand.rows.remove(id);
        }
        was_full && hand.rows.len() < SHARD_ROWS_MAX
    }

    /// Nothing more is read of a shard, for as long as it rests.
    pub(super) fn rest(&self, shard: Shard, rests: bool) {
        self.hands().entry(shard).or_default().rests = rests;
    }

    fn hands(&self) -> MutexGuard<'_, BTreeMap<Shard, Hand>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
