//! Named places where a test can hold a process, so that it can be killed exactly there. Without the feature `failpoints`,
//! which only the tests crate asks for, a failpoint compiles to nothing.
//!
//! `FRESHET_FAILPOINTS=NAME=FILE,…`: whoever comes to NAME waits for as long as FILE exists.

/// The environment variable that arms failpoints.
pub const VARIABLE: &str = "FRESHET_FAILPOINTS";

/// Waits at this place while a test holds it.
#[cfg(not(feature = "failpoints"))]
#[expect(clippy::unused_async, reason = "the armed form waits")]
pub async fn hold(_name: &str) {}

/// Waits at this place while a test holds it.
#[cfg(feature = "failpoints")]
pub async fn hold(name: &str) {
    use std::{path::Path, time::Duration};

    let Ok(armed) = std::env::var(VARIABLE) else { return };
    let file = armed.split(',').filter_map(|one| one.split_once('=')).find(|(place, _)| *place == name);
    let Some((_, file)) = file else { return };
    if Path::new(file).exists() {
        tracing::info!("failpoint {name} reached");
        while Path::new(file).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
