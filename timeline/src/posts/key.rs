//! Idempotency keys: by what a caller knows a post, should the call be made again.

use std::time::Duration;

use chassis::Stop;
use store::ledger;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

const KEY_CHARACTERS_MAX: usize = 64;
/// A key is kept for so long. Whoever asks again does so within minutes, or a day later by hand.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// How many keys are forgotten in one transaction: few, so that it is short.
const FORGET_KEYS_MAX: u32 = 1000;

/// A key that a post can be written under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IdempotencyKey(String);

/// What was given is no key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {KEY_CHARACTERS_MAX} visible ASCII characters, without spaces")]
pub(super) struct InvalidKey;

impl IdempotencyKey {
    pub(super) fn new(text: String) -> Result<Self, InvalidKey> {
        let fits = (1..=KEY_CHARACTERS_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text)) } else { Err(InvalidKey) }
    }
}

impl From<IdempotencyKey> for String {
    fn from(key: IdempotencyKey) -> Self {
        key.0
    }
}

/// Forgets old keys until asked to stop. Every timeline pod does; together they do no harm.
pub(super) async fn keep_forgetting(posts: &dyn ledger::Posts, stop: Stop) {
    let mut due = interval(FORGET_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! { () = stop.cancelled() => return, _ = due.tick() => {} }
        if let Err(cause) = forget_all(posts, &stop).await {
            warn!("cannot forget old idempotency keys, trying again in {FORGET_EVERY:?}: {cause}");
        }
    }
}

/// All that are old enough, a small batch at a time.
async fn forget_all(posts: &dyn ledger::Posts, stop: &Stop) -> Result<(), store::Error> {
    while !stop.is_cancelled() {
        if posts.forget_keys(KEPT_FOR, FORGET_KEYS_MAX).await? < u64::from(FORGET_KEYS_MAX) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_1_to_64_visible_characters() {
        for text in ["a", "~!", "0b8f1c9e-7a52-4c6e-9d55-3f0e2b1a7c44", &"k".repeat(64)] {
            assert_eq!(IdempotencyKey::new(text.to_owned()).map(String::from).as_deref(), Ok(text));
        }
        for text in ["", " ", "a b", "a\n", "\u{7f}", "ключ", &"k".repeat(65)] {
            assert_eq!(IdempotencyKey::new(text.to_owned()), Err(InvalidKey), "{text:?}");
        }
    }
}
