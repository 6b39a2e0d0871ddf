//! Waiting for a condition, with a deadline.

use std::time::Duration;

use tokio::time::Instant;

/// How long anything may take before a test gives up. Far more than is needed: a busy machine is no bug.
pub const DEADLINE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// Asks until there is an answer. Panics with what was waited for when the deadline passes.
pub async fn until<T>(what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
    try_until(ask).await.unwrap_or_else(|| panic!("waited {DEADLINE:?} in vain for {what}"))
}

/// Asks until there is an answer; `None` when the deadline passes.
pub async fn try_until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask().await {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Awaits a future, with a deadline.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {DEADLINE:?} in vain for {what}"),
    }
}
