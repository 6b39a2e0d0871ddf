//! Named places where a test can hold, delay or kill a process, and switches that make it do wrong on purpose. Without the
//! feature `failpoints`, which only the tests crate asks for, they compile to nothing.
//!
//! `FRESHET_FAILPOINTS=NAME=ACTION,…`, where an action is one of
//! - `hold:FILE`: whoever comes to NAME waits for as long as FILE exists,
//! - `delay:SPAN`: whoever comes to NAME waits that long, such as `delay:20ms`,
//! - `kill`: the process that comes to NAME ends there, as by `kill -9`,
//! - `freeze`: the process that comes to NAME stands still there, until it is sent SIGCONT,
//! - `on`: the fault NAME is switched on.

/// The environment variable that arms failpoints.
pub const VARIABLE: &str = "FRESHET_FAILPOINTS";

/// Comes to a named place.
#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unused_async, reason = "the armed form waits")]
pub async fn reach(_name: &str) {}

/// Whether a fault is switched on.
#[cfg(not(feature = "failpoints"))]
#[must_use]
pub const fn is_on(_name: &str) -> bool {
    false
}

/// Comes to a named place.
#[cfg(feature = "failpoints")]
pub async fn reach(name: &str) {
    use std::{path::Path, time::Duration};

    let Some(action) = action(name) else { return };
    match action.split_once(':').unwrap_or((action, "")) {
        ("hold", file) if Path::new(file).exists() => {
            tracing::info!("failpoint {name} reached");
            while Path::new(file).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        ("delay", span) => tokio::time::sleep(crate::config::parse_duration(span).unwrap_or_default()).await,
        ("kill", _) => std::process::abort(),
        ("freeze", _) => {
            let stopped = std::process::Command::new("kill").args(["-STOP", &std::process::id().to_string()]).status();
            match stopped {
                // The signal takes effect on all threads a moment after it was sent: this one must not go on until then.
                Ok(_) => std::thread::sleep(Duration::from_millis(200)),
                Err(cause) => tracing::error!("failpoint {name} cannot stop the process: {cause}"),
            }
        }
        _ => {}
    }
}

/// Whether a fault is switched on.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn is_on(name: &str) -> bool {
    action(name) == Some("on")
}

/// What is armed at a place. Read once: a process is armed when it starts.
#[cfg(feature = "failpoints")]
fn action(name: &str) -> Option<&'static str> {
    static ARMED: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let armed = ARMED.get_or_init(|| std::env::var(VARIABLE).unwrap_or_default());
    armed.split(',').filter_map(|one| one.split_once('=')).find(|(place, _)| *place == name).map(|(_, action)| action)
}
