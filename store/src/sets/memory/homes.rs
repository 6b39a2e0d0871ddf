//! Home timelines in the process, by the same rules as in Redis.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use proto::{EntryId, UserId};

use super::{Memory, SortedSet};
use crate::{
    Error,
    sets::{
        AuthorState, BUILD_MS_MAX, Build, BuildToken, Coverage, Entry, HOME_MEMBERS_KEPT, HOME_MEMBERS_MAX,
        HomeTimelines, Page, PodName, Push, Special,
        entry::{Sentinel, State},
    },
};

/// A reader's home: entries, and the sentinel as the last member. With it, what the reader's authors are to them.
pub(super) struct Home {
    set: SortedSet,
    authors: HashMap<(Special, UserId), AuthorState>,
}

impl Home {
    fn building(token: BuildToken) -> Self {
        let mut home = Self { set: SortedSet::default(), authors: HashMap::new() };
        home.vouch(Sentinel { state: State::Building, token, coverage: Coverage::TO_THE_BEGINNING });
        home
    }

    fn sentinel(&self) -> Result<Sentinel, Error> {
        let last = self.set.last().unwrap_or_default();
        Sentinel::from_member(last)?.ok_or_else(|| crate::error::damaged("the sets", "a home without a sentinel"))
    }

    fn vouch(&mut self, sentinel: Sentinel) {
        if matches!(self.set.last().map(Sentinel::from_member), Some(Ok(Some(_)))) {
            self.set.pop_last();
        }
        self.set.add(Sentinel::SCORE, &sentinel.member());
    }

    /// Adds an entry, unless it lies below the coverage: there, pages come from the archive. A full home is cut first, and
    /// its coverage rises with the cut.
    fn add(&mut self, entry: Entry) -> Result<(), Error> {
        let mut sentinel = self.sentinel()?;
        if !sentinel.coverage.includes(entry.id) {
            return Ok(());
        }
        if self.set.len() >= HOME_MEMBERS_MAX {
            self.set.pop_last();
            while self.set.len() >= HOME_MEMBERS_KEPT {
                self.set.pop_last();
            }
            let lowest = Entry::from_member(self.set.last().unwrap_or_default())?;
            sentinel.coverage = sentinel.coverage.max(Coverage::down_to(lowest.id));
            self.set.add(Sentinel::SCORE, &sentinel.member());
        }
        if sentinel.coverage.includes(entry.id) {
            self.set.add(entry.score(), &entry.member());
        }
        Ok(())
    }

    /// Raises the coverage; it never falls, because what lies below may be missing.
    fn raise(&mut self, coverage: Coverage, state: Option<State>) -> Result<(), Error> {
        let before = self.sentinel()?;
        let coverage = before.coverage.max(coverage);
        self.vouch(Sentinel { state: state.unwrap_or(before.state), token: before.token, coverage });
        Ok(())
    }

    fn merge(&mut self, entries: &[Entry], complete_to: Coverage, state: Option<State>) -> Result<(), Error> {
        self.raise(complete_to, state)?;
        entries.iter().try_for_each(|entry| self.add(*entry))
    }

    /// Sets a state, unless one that is as new is there. Tells whether it was set.
    pub(super) fn set_state(&mut self, state: AuthorState) -> bool {
        let key = (state.special, state.author);
        let is_newer = self.authors.get(&key).is_none_or(|known| known.version < state.version);
        if is_newer {
            self.authors.insert(key, state);
        }
        is_newer
    }

    /// Takes an author's entries out, while this state holds.
    pub(super) fn scrub(&mut self, state: AuthorState) -> Result<(), Error> {
        if self.authors.get(&(state.special, state.author)) != Some(&state) {
            return Ok(());
        }
        let entries = self.entries().collect::<Result<Vec<_>, _>>()?;
        for entry in entries.into_iter().filter(|entry| entry.author == state.author) {
            self.set.remove(entry.score(), &entry.member());
        }
        Ok(())
    }

    fn entries(&self) -> impl Iterator<Item = Result<Entry, Error>> {
        self.set.members().take(self.set.len() - 1).map(Entry::from_member)
    }
}

#[async_trait]
impl HomeTimelines for Memory {
    async fn push(&self, pushes: &[Push], not_after_unix_ms: i64) -> Result<BTreeMap<PodName, Vec<UserId>>, Error> {
        let now = self.in_time(not_after_unix_ms)?;
        let mut state = self.state();
        let mut online: BTreeMap<PodName, Vec<UserId>> = BTreeMap::new();
        for Push { reader, entries } in pushes {
            if let Some(home) = state.homes.get_mut(reader) {
                entries.iter().try_for_each(|entry| home.add(*entry))?;
            }
            let live = state.connections.get(reader).into_iter().flat_map(|held| held.values());
            for connection in live.filter_map(|registered| registered.live(now)) {
                let told = online.entry(connection.pod.clone()).or_default();
                // A reader's connections on one pod are told once: the pod knows them all.
                if told.last() != Some(reader) {
                    told.push(*reader);
                }
            }
        }
        Ok(online)
    }

    async fn merge_with(
        &self,
        reader: UserId,
        states: &[AuthorState],
        entries: &[Entry],
        complete_to: Coverage,
        not_after_unix_ms: i64,
    ) -> Result<(), Error> {
        self.in_time(not_after_unix_ms)?;
        let mut state = self.state();
        let (Some(home), [first, ..]) = (state.homes.get_mut(&reader), states) else { return Ok(()) };
        let key = (first.special, first.author);
        if home.authors.get(&key).is_some_and(|known| known.version > first.version) {
            return Ok(());
        }
        for state in states {
            home.set_state(*state);
        }
        home.merge(entries, complete_to, None)
    }

    async fn take_out(&self, readers: &[UserId], entry: Entry) -> Result<(), Error> {
        let mut state = self.state();
        for reader in readers {
            if let Some(home) = state.homes.get_mut(reader) {
                home.set.remove(entry.score(), &entry.member());
            }
        }
        Ok(())
    }

    async fn coverage(&self, reader: UserId) -> Result<Option<Coverage>, Error> {
        self.state().homes.get(&reader).map(|home| home.sentinel().map(|sentinel| sentinel.coverage)).transpose()
    }

    async fn page(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Option<Page>, Error> {
        let state = self.state();
        let Some(home) = state.homes.get(&reader) else { return Ok(None) };
        let sentinel = home.sentinel()?;
        if sentinel.state == State::Building {
            return Ok(None);
        }
        let wanted = |entry: &Result<Entry, Error>| {
            entry.as_ref().map_or(true, |entry| {
                below.is_none_or(|below| entry.id < below) && sentinel.coverage.includes(entry.id)
            })
        };
        let entries = home.entries().filter(wanted).take(limit).collect::<Result<_, _>>()?;
        let authors = home.authors.values().filter(|state| state.until_ms != AuthorState::OVER).copied().collect();
        Ok(Some(Page { entries, coverage: sentinel.coverage, authors }))
    }

    async fn begin_build(&self, reader: UserId) -> Result<Build, Error> {
        let now = self.clock.unix_ms();
        let token = BuildToken::new(now, self.random.number());
        let mut state = self.state();
        if let Some(home) = state.homes.get(&reader) {
            let sentinel = home.sentinel()?;
            // A build from the future began before the clock was set back: nobody knows its age.
            let is_alive = (0..BUILD_MS_MAX).contains(&(now - sentinel.token.began_unix_ms()));
            match sentinel.state {
                State::Complete => return Ok(Build::Done),
                State::Building if is_alive => return Ok(Build::Theirs),
                State::Building => {}
            }
        }
        state.homes.insert(reader, Home::building(token));
        Ok(Build::Mine(token))
    }

    async fn finish_build(
        &self,
        reader: UserId,
        token: BuildToken,
        entries: &[Entry],
        complete_to: Coverage,
        authors: &[AuthorState],
    ) -> Result<bool, Error> {
        let mut state = self.state();
        let Some(home) = state.homes.get_mut(&reader) else { return Ok(false) };
        if home.sentinel()?.token != token {
            return Ok(false);
        }
        for state in authors {
            home.set_state(*state);
        }
        home.merge(entries, complete_to, Some(State::Complete))?;
        Ok(true)
    }

    async fn remove(&self, reader: UserId) -> Result<(), Error> {
        self.state().homes.remove(&reader);
        Ok(())
    }
}
