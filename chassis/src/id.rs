//! Mints ids. The right to mint is a grant: a writer number that nobody else has, and the span of milliseconds in which it
//! may be used. A pod whose clock ran ahead, or whose lease was lost, cannot repeat an id: it mints below its ceiling only,
//! and whoever gets the number next begins at that ceiling.

use std::sync::{Arc, Mutex, PoisonError};

use proto::id::{EPOCH_UNIX_MS, MILLIS_MAX, SEQUENCE_BITS, WRITER_BITS};

use crate::{Clock, Error, Reason};

/// How many writers can mint at once.
pub const WRITERS_MAX: u16 = 1 << WRITER_BITS;
const SEQUENCE_MAX: u16 = (1 << SEQUENCE_BITS) - 1;

/// The right to mint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The writer number, below [`WRITERS_MAX`].
    pub writer: u16,
    /// The first millisecond (since 1970) that may be used.
    pub floor_unix_ms: i64,
    /// The first millisecond that may not.
    pub ceiling_unix_ms: i64,
}

/// Mints unique, increasing ids while it holds a grant.
pub struct Minter {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    grant: Option<Grant>,
    /// The millisecond of the newest id. It never goes back, whatever the clock does.
    last_unix_ms: i64,
    next_sequence: u16,
}

impl Minter {
    /// A minter without a grant.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::new(State { grant: None, last_unix_ms: EPOCH_UNIX_MS, next_sequence: 0 }) }
    }

    /// Gives the right to mint, renews it, or takes it away.
    pub fn set_grant(&self, grant: Option<Grant>) {
        self.state().grant = grant;
    }

    /// The first millisecond that no id of this minter has touched yet.
    #[must_use]
    pub fn untouched_unix_ms(&self) -> i64 {
        self.state().last_unix_ms + 1
    }

    /// A new id, higher than every earlier one.
    pub fn mint<Id: TryFrom<i64>>(&self) -> Result<Id, Error> {
        let number = self.number()?;
        Id::try_from(number).map_err(|_| Error::internal(format!("minted {number}, which is no id")))
    }

    fn number(&self) -> Result<i64, Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        let grant = state.grant.ok_or_else(|| unavailable("this pod holds no writer number"))?;
        let earliest = now.max(grant.floor_unix_ms);
        if earliest > state.last_unix_ms {
            state.last_unix_ms = earliest;
            state.next_sequence = 0;
        } else if state.next_sequence > SEQUENCE_MAX {
            // More than 4,096 in a millisecond, or a clock that stands or went back: borrow the next millisecond.
            state.last_unix_ms += 1;
            state.next_sequence = 0;
        }
        let ms = state.last_unix_ms - EPOCH_UNIX_MS;
        if state.last_unix_ms >= grant.ceiling_unix_ms || !(0..=MILLIS_MAX).contains(&ms) {
            return Err(unavailable("the right to mint is not renewed"));
        }
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        Ok(ms << (WRITER_BITS + SEQUENCE_BITS) | i64::from(grant.writer) << SEQUENCE_BITS | i64::from(sequence))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing in here panics half-way, so a poisoned state is a whole one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unavailable(why: &str) -> Error {
    Error::new(Reason::Unavailable, format!("cannot give out new ids at the moment: {why}; try again"))
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use proptest::prelude::*;
    use proto::PostId;

    use super::*;
    use crate::clock::Manual;

    const NOW: i64 = EPOCH_UNIX_MS + 1_000_000;
    const WINDOW_MS: i64 = 10_000;

    fn minter(clock: &Manual, floor_unix_ms: i64) -> Minter {
        let minter = Minter::new(Arc::new(clock.clone()));
        let ceiling_unix_ms = clock.unix_ms().max(floor_unix_ms) + WINDOW_MS;
        minter.set_grant(Some(Grant { writer: 7, floor_unix_ms, ceiling_unix_ms }));
        minter
    }

    #[derive(Clone, Debug)]
    enum Step {
        Mint(u16),
        TurnClock(i64),
        Restart,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..5000_u16).prop_map(Step::Mint),
            (-5000..5000_i64).prop_map(Step::TurnClock),
            Just(Step::Restart)
        ]
    }

    proptest! {
        #[test]
        fn ids_increase_over_restarts_and_clock_steps(steps in prop::collection::vec(step(), 1..40)) {
            let clock = Manual::at_unix_ms(NOW);
            let mut minter = minter(&clock, 0);
            let mut last = 0;
            for step in steps {
                match step {
                    Step::Mint(count) => for _ in 0..count {
                        // Without renewal the ceiling stops it in the end: refused, never repeated.
                        let Ok(id) = minter.mint::<PostId>() else { break };
                        prop_assert!(id.get() > last);
                        last = id.get();
                    },
                    Step::TurnClock(ms) => clock.turn_ms(ms),
                    // The successor begins where the dead pod was allowed to go.
                    Step::Restart => {
                        let ceiling = minter.state().grant.unwrap().ceiling_unix_ms;
                        minter = self::minter(&clock, ceiling);
                    }
                }
            }
        }
    }

    #[test]
    fn threads_share_no_id_and_each_sees_its_own_increase() {
        let clock = Manual::at_unix_ms(NOW);
        let minter = minter(&clock, 0);
        let mint_many = || {
            let ids: Vec<_> = (0..20_000).map(|_| minter.mint::<PostId>().unwrap()).collect();
            assert!(ids.is_sorted());
            ids
        };
        let all: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(mint_many)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn nothing_is_minted_without_a_grant_or_past_its_ceiling() {
        let clock = Manual::at_unix_ms(NOW);
        let minter = minter(&clock, 0);
        clock.turn_ms(WINDOW_MS - 1);
        minter.mint::<PostId>().unwrap();
        clock.turn_ms(1);
        assert_eq!(minter.mint::<PostId>().unwrap_err().reason(), Reason::Unavailable);
        minter.set_grant(None);
        assert_eq!(minter.mint::<PostId>().unwrap_err().reason(), Reason::Unavailable);
    }

    #[test]
    fn an_id_carries_time_and_writer() {
        let clock = Manual::at_unix_ms(NOW);
        let id = minter(&clock, 0).mint::<PostId>().unwrap();
        assert_eq!(id.unix_ms(), NOW);
        assert_eq!((id.get() >> SEQUENCE_BITS) & i64::from(WRITERS_MAX - 1), 7);
    }
}
