//! Trying again what may pass, with backoff, while the pod's health says what it waits for.

use std::time::Duration;

use chassis::{Pod, Stop};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::{event_log::Lane, shard::stable_hash};

const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Why a lane leaves what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was fetched too long ago: it must be fetched again, by whoever's it is then.
    Stale,
    /// The pod drains.
    Draining,
}

/// The tries of one lane at one thing.
pub(super) struct Patience<'a> {
    pod: &'a Pod,
    part: String,
    not_after: Instant,
    stop: &'a Stop,
    pub(super) attempts: u32,
}

impl<'a> Patience<'a> {
    pub(super) fn new(pod: &'a Pod, group: &str, lane: Lane, not_after: Instant, stop: &'a Stop) -> Self {
        Self { pod, part: format!("{group} {lane}"), not_after, stop, attempts: 0 }
    }

    /// Until when it may be tried.
    pub(super) const fn not_after(&self) -> Instant {
        self.not_after
    }

    /// Whether there is time for another try.
    pub(super) fn check(&self) -> Result<(), End> {
        if Instant::now() < self.not_after { Ok(()) } else { Err(End::Stale) }
    }

    /// Waits before another try.
    pub(super) async fn wait(&mut self, cause: String) -> Result<(), End> {
        self.attempts += 1;
        let wait = wait_before(self.attempts, stable_hash(format!("{} {}", self.pod.name(), self.part).as_bytes()));
        if self.pod.health.degrade(&self.part, cause.clone()) {
            warn!("{} waits, and is tried again until it passes: {cause}", self.part);
        }
        tokio::select! {
            () = self.stop.cancelled() => Err(End::Draining),
            () = tokio::time::sleep(wait) => self.check(),
        }
    }

    /// It passed.
    pub(super) fn passed(&mut self) {
        if self.pod.health.recover(&self.part) {
            info!("{} goes on after {} tries", self.part, self.attempts + 1);
        }
        self.attempts = 0;
    }
}

/// It doubles up to a limit, and up to half of it is taken off by chance, so that those who fail together do not come back
/// together.
fn wait_before(attempt: u32, chance: u64) -> Duration {
    let full = WAIT_MIN.saturating_mul(1 << attempt.clamp(1, 16).saturating_sub(1)).min(WAIT_MAX);
    let mixed = stable_hash(&(chance ^ u64::from(attempt)).to_be_bytes());
    full - full.mul_f64((mixed % 1000) as f64 / 2000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_differ() {
        for attempt in 1..40 {
            let wait = wait_before(attempt, 7);
            assert!(wait <= WAIT_MAX && wait >= WAIT_MIN / 2, "{attempt}: {wait:?}");
        }
        assert!(wait_before(1, 7) <= WAIT_MIN);
        assert!(wait_before(30, 7) >= WAIT_MAX / 2);
        let waits: std::collections::BTreeSet<_> = (0..20).map(|lane| wait_before(10, lane)).collect();
        assert!(waits.len() > 10, "{waits:?}");
    }
}
