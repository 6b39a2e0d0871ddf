//! Where the rows of each shard of the outbox begin, as far as a pod knows.
//!
//! A database that cannot forget removed rows walks over all of them to find a shard's first one. So a pod remembers, for each
//! shard, an id below which there is no row and never will be: its head. Reading on from the last row would not do, because
//! rows surface in the order of commits and not of ids. What does is a horizon: an id up to which each row is either there or
//! was never committed. A read that began when the horizon was known, and found nothing below some row, moves the head
//! up to that row, but not past the horizon.
//!
//! The horizon follows from what each removal sees of the ledger (see [`Sight`]): ids that were given before some transaction
//! of ours began were given to transactions that are older than it, and once none of those is open, those ids are decided.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::Shard;

/// All is forgotten so often, and found again by a walk: rows that somebody puts in below them by hand, out of a backup
/// say, come up as well. Rarely, because under a held snapshot the walk is over some hundred thousand dead rows.
const BELIEVED_FOR: Duration = Duration::from_secs(600);

/// The heads of all shards.
#[derive(Default)]
pub(super) struct Heads(Mutex<State>);

#[derive(Default)]
struct State {
    /// Every row up to it is there or never will be.
    horizon: i64,
    next: Option<Candidate>,
    /// By shard; there is no row below, and never will be.
    heads: Vec<i64>,
    /// How many removals have begun.
    removals: u64,
    /// How often all was forgotten.
    life: u64,
    forget_at: Option<Instant>,
}

/// What may become the horizon.
struct Candidate {
    horizon: i64,
    /// Removals from this one on begin after these ids were given.
    known_to: u64,
    /// Younger than each transaction that was given them.
    transaction: Option<i64>,
}

/// What was known when a read began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Every row up to it is there or never will be.
    pub(super) horizon: i64,
    life: u64,
}

/// What a removal saw of the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    /// The last id that was given, at some time before its answer.
    pub(super) last_id: i64,
    /// Its own transaction: younger than all that were there when it began.
    pub(super) transaction: i64,
    /// Each transaction that is older than this one was over when it began.
    pub(super) open_from: i64,
}

impl Heads {
    /// What is known, for a read that begins now.
    pub(super) fn see(&self) -> Known {
        let state = self.state();
        Known { horizon: state.horizon, life: state.life }
    }

    /// A shard's head.
    pub(super) fn of(&self, shard: Shard) -> i64 {
        *self.state().head(shard)
    }

    /// The heads of so many shards.
    pub(super) fn all(&self, shards: u16) -> Vec<i64> {
        let mut state = self.state();
        (0..shards).map(|shard| *state.head(Shard(shard))).collect()
    }

    /// A read that began with this knowledge tells that this row is the first of its shard, or that there is none.
    pub(super) fn found(&self, shard: Shard, known: Known, first: Option<i64>) {
        let mut state = self.state();
        // What was forgotten since the read began is not brought back.
        if known.life == state.life && known.horizon > 0 {
            let decided = known.horizon + 1;
            let head = state.head(shard);
            *head = first.map_or(decided, |first| first.min(decided)).max(*head);
        }
    }

    /// A removal begins. Answers which.
    pub(super) fn removal_begins(&self) -> u64 {
        let mut state = self.state();
        state.removals += 1;
        state.removals
    }

    /// What a removal saw.
    pub(super) fn removal_saw(&self, removal: u64, sight: Sight) {
        let mut state = self.state();
        state.check(sight.last_id);
        let candidate = Candidate { horizon: sight.last_id, known_to: state.removals + 1, transaction: None };
        let Some(next) = &mut state.next else {
            state.next = Some(candidate);
            return;
        };
        match next.transaction {
            None if removal >= next.known_to => next.transaction = Some(sight.transaction),
            Some(transaction) if sight.open_from >= transaction => {
                let horizon = next.horizon;
                state.horizon = state.horizon.max(horizon);
                state.next = Some(candidate);
            }
            _ => {}
        }
    }

    /// Says which id was the last that was given. When it is lower than before, the ledger is an earlier one by now, and
    /// nothing of what was known of the other one holds.
    pub(super) fn check(&self, last_id: i64) {
        self.state().check(last_id);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if *state.forget_at.get_or_insert(now + BELIEVED_FOR) <= now {
            state.forget();
            state.forget_at = Some(now + BELIEVED_FOR);
        }
        state
    }
}

impl State {
    fn head(&mut self, shard: Shard) -> &mut i64 {
        let place = usize::from(shard.0);
        if self.heads.len() <= place {
            self.heads.resize(place + 1, 0);
        }
        &mut self.heads[place]
    }

    fn check(&mut self, last_id: i64) {
        if last_id < self.horizon {
            self.forget();
        }
    }

    fn forget(&mut self) {
        *self = Self { removals: self.removals, life: self.life + 1, forget_at: self.forget_at, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: Shard = Shard(3);

    /// A removal of which nothing is known but what it saw, begun and ended at once.
    fn remove(heads: &Heads, last_id: i64, transaction: i64, open_from: i64) {
        let removal = heads.removal_begins();
        heads.removal_saw(removal, Sight { last_id, transaction, open_from });
    }

    fn find(heads: &Heads, first: Option<i64>) -> i64 {
        heads.found(SHARD, heads.see(), first);
        heads.of(SHARD)
    }

    /// Ids up to 100 are decided.
    fn known() -> Heads {
        let heads = Heads::default();
        remove(&heads, 100, 50, 40);
        remove(&heads, 110, 51, 40);
        remove(&heads, 120, 52, 51);
        heads
    }

    #[test]
    fn nothing_is_known_while_a_transaction_is_open_that_may_bring_up_a_lower_id() {
        let heads = Heads::default();
        for transaction in 50..60 {
            remove(&heads, 100 + transaction, transaction, 40);
            assert_eq!(find(&heads, Some(100)), 0);
        }
        // It is over, and so are all that were given an id before transaction 51.
        remove(&heads, 170, 60, 60);
        assert_eq!((find(&heads, Some(170)), heads.see().horizon), (151, 150));
    }

    #[test]
    fn a_head_goes_up_to_the_first_row_and_not_past_the_horizon() {
        let heads = known();
        assert_eq!(find(&heads, Some(90)), 90);
        assert_eq!(find(&heads, Some(100)), 100);
        assert_eq!(find(&heads, None), 101);
        assert_eq!(find(&heads, Some(120)), 101);
        assert_eq!(heads.all(5), [0, 0, 0, 101, 0]);
    }

    #[test]
    fn a_read_knows_no_more_than_when_it_began() {
        let heads = Heads::default();
        let before = heads.see();
        remove(&heads, 100, 50, 40);
        remove(&heads, 110, 51, 40);
        remove(&heads, 120, 52, 51);
        heads.found(SHARD, before, None);
        assert_eq!(heads.of(SHARD), 0);
    }

    #[test]
    fn a_removal_that_began_before_the_ids_were_given_tells_nothing_of_who_has_them() {
        let heads = Heads::default();
        let early = heads.removal_begins();
        remove(&heads, 100, 50, 40);
        heads.removal_saw(early, Sight { last_id: 100, transaction: 49, open_from: 40 });
        remove(&heads, 110, 53, 49);
        assert_eq!(find(&heads, Some(100)), 0);
    }

    #[test]
    fn a_ledger_that_went_back_is_another_one() {
        let heads = known();
        let before = heads.see();
        heads.check(100);
        assert_eq!(find(&heads, None), 101);
        heads.check(99);
        heads.found(SHARD, before, None);
        assert_eq!(heads.of(SHARD), 0);
    }
}
