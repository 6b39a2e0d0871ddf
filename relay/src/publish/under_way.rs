//! The rows that were read and are not yet removed, and the shards that rest after a failure. The reader asks for what is not
//! among them, so that a shard's next rows are sent while the ones before are still on their way.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use store::{Shard, ledger::ReadFrom};

/// How many rows of a shard are under way at the most.
pub(super) const SHARD_ROWS_MAX: usize = 1000;

/// What every lane has in hand.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<BTreeMap<Shard, Hand>>);

/// What a lane has in hand.
#[derive(Debug, Default)]
struct Hand {
    rows: BTreeSet<i64>,
    /// All rows up to here were read.
    read_to: i64,
    /// Rows were given back since a read began: what it brings comes behind them.
    overtaken: bool,
    rests: bool,
}

impl UnderWay {
    /// Whether a shard's lane takes more rows.
    pub(super) fn has_room(&self, shard: Shard) -> bool {
        self.hands().get(&shard).is_none_or(|hand| !hand.rests && hand.rows.len() < SHARD_ROWS_MAX)
    }

    /// Where to read on in these shards, and what is in hand beyond that.
    pub(super) fn read_on(&self, shards: &[Shard]) -> (Vec<ReadFrom>, Vec<i64>) {
        let (mut from, mut had, mut hands) = (Vec::with_capacity(shards.len()), Vec::new(), self.hands());
        for shard in shards {
            let hand = hands.entry(*shard).or_default();
            let kept = hand.rows.first().copied().filter(|id| *id <= hand.read_to);
            from.push(ReadFrom { shard: *shard, after: hand.read_to, kept });
            had.extend(hand.rows.range(hand.read_to + 1..));
            hand.overtaken = false;
        }
        (from, had)
    }

    /// Takes rows of a shard that were read, and with them all up to an id. False, and they are not taken, when others must be
    /// read before them.
    pub(super) fn take(&self, shard: Shard, ids: &[i64], read_to: i64) -> bool {
        let mut hands = self.hands();
        let hand = hands.entry(shard).or_default();
        if hand.overtaken || hand.rests {
            return false;
        }
        hand.rows.extend(ids);
        // Lower than before: what was known of the rows up to there does not hold any more.
        hand.read_to = if read_to < hand.read_to { 0 } else { read_to };
        true
    }

    /// Rows were removed. Whether the lane had no room for more until now.
    pub(super) fn removed(&self, shard: Shard, ids: &[i64]) -> bool {
        let mut hands = self.hands();
        let hand = hands.entry(shard).or_default();
        let was_full = hand.rows.len() >= SHARD_ROWS_MAX;
        for id in ids {
            hand.rows.remove(id);
        }
        was_full && hand.rows.len() < SHARD_ROWS_MAX
    }

    /// Rows are to be read again.
    pub(super) fn give_back(&self, shard: Shard, ids: &[i64]) {
        let mut hands = self.hands();
        let hand = hands.entry(shard).or_default();
        hand.overtaken = true;
        for id in ids {
            hand.rows.remove(id);
            hand.read_to = hand.read_to.min(id - 1);
        }
    }

    /// Nothing more is read of a shard, for as long as it rests.
    pub(super) fn rest(&self, shard: Shard, rests: bool) {
        self.hands().entry(shard).or_default().rests = rests;
    }

    fn hands(&self) -> MutexGuard<'_, BTreeMap<Shard, Hand>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: Shard = Shard(3);

    fn from(after: i64, kept: Option<i64>) -> Vec<ReadFrom> {
        vec![ReadFrom { shard: SHARD, after, kept }]
    }

    #[test]
    fn a_read_goes_on_behind_what_is_decided_and_passes_by_what_is_in_hand() {
        let rows = UnderWay::default();
        assert_eq!(rows.read_on(&[SHARD]), (from(0, None), vec![]));
        assert!(rows.take(SHARD, &[5, 8, 12], 10));
        assert_eq!(rows.read_on(&[SHARD]), (from(10, Some(5)), vec![12]));
        assert!(!rows.removed(SHARD, &[5, 8, 12]));
        assert_eq!(rows.read_on(&[SHARD]), (from(10, None), vec![]));
    }

    #[test]
    fn what_is_given_back_is_read_again_before_what_comes_after_it() {
        let rows = UnderWay::default();
        assert!(rows.take(SHARD, &[5, 8, 12], 12));
        let _ = rows.read_on(&[SHARD]);
        rows.give_back(SHARD, &[8, 12]);
        assert!(!rows.take(SHARD, &[20], 20));
        assert_eq!(rows.read_on(&[SHARD]), (from(7, Some(5)), vec![]));
        assert!(rows.take(SHARD, &[8, 12, 20], 20));
    }

    #[test]
    fn nothing_is_certain_when_what_is_decided_falls() {
        let rows = UnderWay::default();
        assert!(rows.take(SHARD, &[5, 8], 8));
        let _ = rows.read_on(&[SHARD]);
        assert!(rows.take(SHARD, &[], 0));
        assert_eq!(rows.read_on(&[SHARD]), (from(0, None), vec![5, 8]));
    }

    #[test]
    fn a_lane_that_rests_or_has_its_hands_full_takes_nothing() {
        let rows = UnderWay::default();
        let all: Vec<_> = (1..=SHARD_ROWS_MAX as i64).collect();
        assert!(rows.has_room(SHARD) && rows.take(SHARD, &all, 0) && !rows.has_room(SHARD));
        assert!(rows.removed(SHARD, &all[..1]) && rows.has_room(SHARD));
        rows.rest(SHARD, true);
        assert!(!rows.has_room(SHARD) && !rows.take(SHARD, &[2000], 0));
        rows.rest(SHARD, false);
        assert!(rows.has_room(SHARD));
    }
}
