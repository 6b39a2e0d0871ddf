//! How often something was tried, in Redis: a sorted set a window, a place a member, scored by when it was taken.

use async_trait::async_trait;

use super::{Redis, script::Call};
use crate::{
    Error,
    sets::{Attempts, KNOWN_SOURCES_MAX, Limit},
};

#[async_trait]
impl Attempts for Redis {
    async fn take(&self, window: &str, ticket: u64, limit: Limit) -> Result<Option<i64>, Error> {
        let call = Call::default().key(self.keys.attempts(window));
        let call = call.arg(ticket).arg(limit.tries_max).arg(limit.span_ms);
        self.scripts.take_attempt.call(&self.link, &call).await
    }

    async fn give_back(&self, window: &str, ticket: u64) -> Result<(), Error> {
        self.link.ask(redis::cmd("ZREM").arg(self.keys.attempts(window)).arg(ticket)).await
    }

    async fn remember(&self, who: &str, source: &str, kept_ms: i64) -> Result<(), Error> {
        let call = Call::default().key(self.keys.known(who)).arg(source).arg(kept_ms).arg(KNOWN_SOURCES_MAX);
        self.scripts.remember_source.call(&self.link, &call).await
    }

    async fn knows(&self, who: &str, sources: &[String]) -> Result<Vec<bool>, Error> {
        let mut call = Call::default().key(self.keys.known(who));
        sources.iter().for_each(|source| call.add_arg(source));
        self.scripts.knows_sources.call(&self.link, &call).await
    }
}
