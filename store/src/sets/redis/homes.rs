//! Home timelines in Redis.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use proto::{EntryId, UserId};

use super::{
    Redis,
    authors::{self, TOO_LATE},
    error::unavailable,
    keys::Bucket,
    script::Call,
};
use crate::{
    Error,
    error::damaged,
    sets::{
        AuthorState, BUILD_MS_MAX, Build, BuildToken, Coverage, Entry, FOLLOWED_KEPT_MS, HOME_MEMBERS_KEPT,
        HOME_MEMBERS_MAX, HomeTimelines, Page, PodName, Push,
        entry::{Sentinel, State},
    },
};

/// Entries a script call, unless one reader alone has more: Redis does nothing else meanwhile.
const CALL_ENTRIES_MAX: usize = 250;

/// Pushes in calls of a bearable size. One server takes any readers in one call; of a Cluster, a call is for the keys of one
/// bucket.
fn calls(pushes: &[Push], is_cluster: bool) -> Vec<Vec<(Bucket, &Push)>> {
    let mut pushes: Vec<_> = pushes.iter().map(|push| (Bucket::of(push.reader), push)).collect();
    pushes.sort_unstable_by_key(|(bucket, push)| (*bucket, push.reader));
    let mut calls: Vec<Vec<(Bucket, &Push)>> = Vec::new();
    let mut room = 0;
    for (bucket, push) in pushes {
        let entries = push.entries.len().max(1);
        match calls.last_mut() {
            Some(call) if entries <= room && (!is_cluster || call[0].0 == bucket) => call.push((bucket, push)),
            _ => {
                calls.push(vec![(bucket, push)]);
                room = CALL_ENTRIES_MAX;
            }
        }
        room = room.saturating_sub(entries);
    }
    calls
}

impl Redis {
    async fn push_call(
        &self,
        pushes: &[(Bucket, &Push)],
        not_after_unix_ms: i64,
    ) -> Result<Vec<(UserId, PodName)>, Error> {
        let mut call = Call::default().arg(not_after_unix_ms).arg(HOME_MEMBERS_MAX).arg(HOME_MEMBERS_KEPT);
        for bucket in pushes.chunk_by(|a, b| a.0 == b.0) {
            call.add_key(self.keys.online(bucket[0].0));
            call.add_arg(bucket.len());
            for (number, push) in bucket {
                call.add_key(self.keys.home_in(*number, push.reader));
                call.add_arg(push.reader.get());
            }
            for (_, push) in bucket {
                call.add_entries(&push.entries);
            }
        }
        let told: Option<Vec<(i64, PodName)>> = self.scripts.push.call(&self.link, &call).await?;
        let told = told.ok_or_else(|| unavailable("the event was fetched too long ago to be applied now"))?;
        let bad = |_| damaged(super::error::STORE, "a connection of nobody");
        told.into_iter().map(|(reader, pod)| Ok((UserId::new(reader).map_err(bad)?, pod))).collect()
    }

    /// Adds entries and states, for a follow or for the build with this token. Whether there was such a home.
    async fn merge_call(
        &self,
        (reader, token): (UserId, Option<BuildToken>),
        entries: &[Entry],
        complete_to: Coverage,
        states: &[AuthorState],
        not_after_unix_ms: i64,
    ) -> Result<bool, Error> {
        let token = token.map(|token| token.0.to_be_bytes());
        let mut call = Call::default().key(self.keys.home(reader)).key(self.keys.authors(reader));
        call.add_arg(token.as_ref().map_or(&[][..], |token| token));
        call.add_arg(&complete_to.to_bytes());
        call.add_arg(HOME_MEMBERS_MAX);
        call.add_arg(HOME_MEMBERS_KEPT);
        call.add_arg(not_after_unix_ms);
        call.add_arg(FOLLOWED_KEPT_MS);
        call.add_arg(states.len());
        for state in states {
            call.add_arg(&state.field());
            call.add_arg(&state.value());
        }
        for entry in entries {
            call.add_arg(entry.score());
            call.add_arg(&entry.member());
        }
        let merged: Option<bool> = self.scripts.merge.call(&self.link, &call).await?;
        merged.ok_or_else(|| unavailable(TOO_LATE))
    }
}

/// The sentinel, if the last member is one: a set without it vouches for nothing, and is no home.
fn sentinel(last: &[Vec<u8>]) -> Option<Sentinel> {
    last.first().and_then(|member| Sentinel::from_member(member).ok().flatten())
}

#[async_trait]
impl HomeTimelines for Redis {
    async fn push(&self, pushes: &[Push], not_after_unix_ms: i64) -> Result<BTreeMap<PodName, Vec<UserId>>, Error> {
        let calls = calls(pushes, self.is_cluster);
        let told = try_join_all(calls.iter().map(|pushes| self.push_call(pushes, not_after_unix_ms))).await?;
        let mut online: BTreeMap<PodName, Vec<UserId>> = BTreeMap::new();
        for (reader, pod) in told.into_iter().flatten() {
            online.entry(pod).or_default().push(reader);
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
        self.merge_call((reader, None), entries, complete_to, states, not_after_unix_ms).await.map(|_| ())
    }

    async fn take_out(&self, readers: &[UserId], entry: Entry) -> Result<(), Error> {
        let pushes: Vec<_> = readers.iter().map(|reader| Push { reader: *reader, entries: Vec::new() }).collect();
        let take_out = async |pushes: Vec<(Bucket, &Push)>| {
            let mut call = Call::default().arg(&entry.member());
            for (bucket, push) in pushes {
                call.add_key(self.keys.home_in(bucket, push.reader));
            }
            self.scripts.take_out.call::<()>(&self.link, &call).await
        };
        try_join_all(calls(&pushes, self.is_cluster).into_iter().map(take_out)).await.map(|_| ())
    }

    async fn coverage(&self, reader: UserId) -> Result<Option<Coverage>, Error> {
        let mut last = redis::cmd("ZRANGE");
        let last: Vec<Vec<u8>> = self.link.ask(last.arg(self.keys.home(reader)).arg(-1).arg(-1)).await?;
        Ok(sentinel(&last).map(|sentinel| sentinel.coverage))
    }

    async fn page(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Option<Page>, Error> {
        let home = self.keys.home(reader);
        let mut ask = redis::pipe();
        ask.atomic().cmd("ZRANGE").arg(&home).arg(-1).arg(-1);
        ask.cmd("HGETALL").arg(self.keys.authors(reader));
        // No home holds more, and Redis takes no larger number than an i64.
        let limit = limit.min(HOME_MEMBERS_MAX);
        match below.map(|below| -below.unix_ms()) {
            _ if limit == 0 => &mut ask,
            // The ids of that millisecond are all read, because their scores do not tell which of them are below.
            Some(score) => {
                ask.cmd("ZRANGE").arg(&home).arg(score).arg(score).arg("BYSCORE");
                let older = ask.cmd("ZRANGE").arg(&home).arg(format!("({score}")).arg("(+inf").arg("BYSCORE");
                older.arg("LIMIT").arg(0).arg(limit)
            }
            None => ask.cmd("ZRANGE").arg(&home).arg(0).arg(limit - 1),
        };
        let answers: Vec<Vec<Vec<u8>>> = self.link.ask_all(&ask).await?;
        let [last, states, found @ ..] = &answers[..] else { return Ok(None) };
        let Some(sentinel) = sentinel(last).filter(|sentinel| sentinel.state == State::Complete) else {
            return Ok(None);
        };
        let Some(authors) = authors::read(states, sentinel.token)? else { return Ok(None) };
        let mut entries = Vec::with_capacity(limit);
        for member in found.iter().flatten().filter(|member| !matches!(Sentinel::from_member(member), Ok(Some(_)))) {
            let entry = Entry::from_member(member)?;
            if below.is_none_or(|below| entry.id < below) && sentinel.coverage.includes(entry.id) {
                entries.push(entry);
            }
        }
        entries.truncate(limit);
        Ok(Some(Page { entries, coverage: sentinel.coverage, authors }))
    }

    async fn begin_build(&self, reader: UserId) -> Result<Build, Error> {
        let random = self.random.number().to_be_bytes();
        let call = Call::default().key(self.keys.home(reader)).key(self.keys.authors(reader));
        let call = call.arg(&random[..2]).arg(BUILD_MS_MAX);
        let answer: Vec<u8> = self.scripts.begin_build.call(&self.link, &call).await?;
        match answer.as_slice() {
            b"done" => Ok(Build::Done),
            b"theirs" => Ok(Build::Theirs),
            token => {
                let token = token.try_into().map_err(|_| damaged(super::error::STORE, "a token of another length"))?;
                Ok(Build::Mine(BuildToken(u64::from_be_bytes(token))))
            }
        }
    }

    async fn finish_build(
        &self,
        reader: UserId,
        token: BuildToken,
        entries: &[Entry],
        complete_to: Coverage,
        authors: &[AuthorState],
    ) -> Result<bool, Error> {
        // A build that takes too long loses its token: it needs no other limit.
        self.merge_call((reader, Some(token)), entries, complete_to, authors, i64::MAX).await
    }

    async fn remove(&self, reader: UserId) -> Result<(), Error> {
        let mut remove = redis::cmd("DEL");
        self.link.ask(remove.arg(self.keys.home(reader)).arg(self.keys.authors(reader))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(reader: i64, entries: usize) -> Push {
        let (reader, entry) = (UserId::new(reader).unwrap(), |id| EntryId::new(id).unwrap());
        let entries = (1..=entries).map(|id| Entry { id: entry(i64::try_from(id).unwrap()), author: reader }).collect();
        Push { reader, entries }
    }

    #[test]
    fn a_call_has_a_bearable_size_and_on_a_cluster_one_bucket() {
        let pushes: Vec<_> = (1..=500).map(|reader| push(reader, 3)).chain([push(501, 1000)]).collect();
        for is_cluster in [false, true] {
            let calls = calls(&pushes, is_cluster);
            let mut readers: Vec<_> = calls.iter().flatten().map(|(_, push)| push.reader.get()).collect();
            readers.sort_unstable();
            assert!(readers.into_iter().eq(1..=501), "each reader is in one call");
            for call in &calls {
                let entries: usize = call.iter().map(|(_, push)| push.entries.len()).sum();
                assert!(entries <= CALL_ENTRIES_MAX || call.len() == 1, "{entries} of {} readers", call.len());
                assert!(!is_cluster || call.iter().all(|(bucket, _)| *bucket == call[0].0));
            }
            let fewest = if is_cluster { 64 } else { 7 };
            assert!(calls.len() < 2 * fewest, "{} calls", calls.len());
        }
    }
}
