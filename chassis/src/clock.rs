//! The time, as a part: the system's, or one that a test turns.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Tells the time of day.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since 1970.
    fn unix_us(&self) -> i64;

    /// Milliseconds since 1970.
    fn unix_ms(&self) -> i64 {
        self.unix_us().div_euclid(1000)
    }
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that all others are asked to take")]
    fn unix_us(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }
}

/// A clock that stands still until a test turns it, forward or back.
#[derive(Clone, Debug)]
pub struct Manual(Arc<AtomicI64>);

impl Manual {
    /// A clock that stands at this many milliseconds since 1970.
    #[must_use]
    pub fn at_unix_ms(ms: i64) -> Self {
        Self(Arc::new(AtomicI64::new(ms * 1000)))
    }

    /// Turns it by so many milliseconds; a negative number turns it back.
    pub fn turn_ms(&self, ms: i64) {
        self.0.fetch_add(ms * 1000, Ordering::SeqCst);
    }
}

impl Clock for Manual {
    fn unix_us(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
