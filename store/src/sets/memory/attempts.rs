//! How often something was tried, in the process.

use std::collections::HashMap;

use async_trait::async_trait;

use super::Memory;
use crate::{
    Error,
    sets::{Attempts, KNOWN_SOURCES_MAX, Limit},
};

/// How many windows there are at the least before those that are not used any more are looked for.
const SWEPT_WINDOWS_MIN: usize = 64;

/// All windows. Nobody else takes away those that are not used any more; they are looked for whenever there are twice as many
/// as there were after the last look.
#[derive(Default)]
pub(super) struct Windows {
    by_name: HashMap<String, Window>,
    swept_at: usize,
}

impl Windows {
    fn sweep(&mut self, now_ms: i64) {
        if self.by_name.len() < self.swept_at {
            return;
        }
        self.by_name.retain(|_, window| {
            window.slide(now_ms);
            !window.taken.is_empty()
        });
        self.swept_at = SWEPT_WINDOWS_MIN.max(2 * self.by_name.len());
    }
}

/// The places that are taken, with when, oldest first.
#[derive(Default)]
struct Window {
    taken: Vec<(u64, i64)>,
    span_ms: i64,
}

impl Window {
    fn slide(&mut self, now_ms: i64) {
        let since = now_ms - self.span_ms;
        self.taken.retain(|(_, at_ms)| *at_ms > since);
    }
}

#[async_trait]
impl Attempts for Memory {
    async fn take(&self, window: &str, ticket: u64, limit: Limit) -> Result<Option<i64>, Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        state.windows.sweep(now);
        let window = state.windows.by_name.entry(window.to_owned()).or_default();
        window.span_ms = limit.span_ms;
        window.slide(now);
        if window.taken.iter().any(|(one, _)| *one == ticket) {
            return Ok(None);
        }
        let max = limit.tries_max as usize;
        if window.taken.len() < max {
            window.taken.push((ticket, now));
            return Ok(None);
        }
        let in_the_way = window.taken.get(window.taken.len() - max).map_or(now, |(_, at_ms)| *at_ms);
        Ok(Some((in_the_way + limit.span_ms - now).max(1)))
    }

    async fn give_back(&self, window: &str, ticket: u64) -> Result<(), Error> {
        if let Some(window) = self.state().windows.by_name.get_mut(window) {
            window.taken.retain(|(one, _)| *one != ticket);
        }
        Ok(())
    }

    async fn remember(&self, who: &str, source: &str, kept_ms: i64) -> Result<(), Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        let known = state.known.entry(who.to_owned()).or_default();
        known.retain(|_, until_ms| *until_ms > now);
        known.insert(source.to_owned(), now + kept_ms);
        if known.len() > KNOWN_SOURCES_MAX {
            let first = known.iter().min_by_key(|(_, until_ms)| **until_ms).map(|(source, _)| source.clone());
            first.and_then(|first| known.remove(&first));
        }
        Ok(())
    }

    async fn knows(&self, who: &str, sources: &[String]) -> Result<Vec<bool>, Error> {
        let now = self.clock.unix_ms();
        let state = self.state();
        let known = state.known.get(who);
        let is_known = |source| known.and_then(|known| known.get(source)).is_some_and(|until_ms| *until_ms > now);
        Ok(sources.iter().map(is_known).collect())
    }
}
