//! The edge's limits, each with its unit.

use std::time::Duration;

/// Bytes of a request's body.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a request's headers.
pub(crate) const HEADER_BYTES_MAX: usize = 16 * 1024;
/// How long a client may take to send its headers.
pub(crate) const HEADER_TIME_MAX: Duration = Duration::from_secs(10);
/// Events that wait for a slow reader. Past it the stream is closed: the browser comes back and reads its timeline.
pub(crate) const STREAM_QUEUE_EVENTS_MAX: usize = 256;
/// Posts that a pod remembers, so that what it is told again is shown once. More than the relay can repeat: it sends and
/// applies batches of 256 a shard.
pub(crate) const TOLD_EVENTS_MAX: usize = 65_536;
/// How long a connection is registered without renewal.
pub(crate) const REGISTERED_MS: i64 = 30_000;
/// How often connections are registered again.
pub(crate) const REGISTER_EVERY: Duration = Duration::from_secs(5);
/// When a browser that was sent away comes back, at the earliest.
pub(crate) const RETRY_MS_MIN: u64 = 2_000;
/// And over how many milliseconds the returns are spread.
pub(crate) const RETRY_MS_SPREAD: u64 = 6_000;

const _: () = assert!(REGISTER_EVERY.as_millis() * 2 < REGISTERED_MS as u128);
