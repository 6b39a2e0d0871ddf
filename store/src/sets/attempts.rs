//! How often something was tried, and who has come in from where.

use async_trait::async_trait;

use crate::Error;

/// From how many places a person is known to come at the most; the one that was not used for the longest time is forgotten.
pub const KNOWN_SOURCES_MAX: usize = 32;

/// How much may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// So often,
    pub tries_max: u32,
    /// within so many milliseconds, which slide.
    pub span_ms: i64,
}

/// How often something was tried, over all pods. A window is named by whoever uses it.
#[async_trait]
pub trait Attempts: Send + Sync {
    /// Takes a place in a window. Where all are taken nothing changes, and the answer is in how many milliseconds one will be
    /// free; of many at once, no more than the limit get one. The same ticket again has the place that it has.
    async fn take(&self, window: &str, ticket: u64, limit: Limit) -> Result<Option<i64>, Error>;

    /// Gives a place back: the try does not count.
    async fn give_back(&self, window: &str, ticket: u64) -> Result<(), Error>;

    /// Notes that someone has come in from a source, for so many milliseconds; see [`KNOWN_SOURCES_MAX`].
    async fn remember(&self, who: &str, source: &str, kept_ms: i64) -> Result<(), Error>;

    /// Whether someone has come in from each of these sources.
    async fn knows(&self, who: &str, sources: &[String]) -> Result<Vec<bool>, Error>;
}
