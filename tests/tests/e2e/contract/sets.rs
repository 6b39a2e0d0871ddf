//! The sets: what timelines, sessions, attempts, connections, pod streams and hot lists promise, in the process and in Redis.

/// Runs each test on every adapter of the sets.
macro_rules! sets_contract {
    ($tests:tt) => {
        store_contract!(open: [
            memory = tests::servers::Adapter::Memory,
            redis = tests::servers::Adapter::Redis,
            redis_tls = tests::servers::Adapter::RedisTls,
            redis_cluster = tests::servers::Adapter::RedisCluster,
        ] $tests);
    };
}

mod attempts;
mod authors;
mod builds;
mod connections;
mod homes;
mod members;
mod pod_streams;
mod races;
mod records;
mod redis;
mod sessions;
mod settled;

use chassis::{Clock as _, clock};
use proto::{
    EntryId, UserId,
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::sets::{Build, Coverage, Entry, FollowVersion, Push, Sets};
use tests::servers::{self, Adapter};

/// More than any home holds.
const ALL: usize = 1000;

async fn open(adapter: Adapter) -> Option<Sets> {
    let data = tempfile::tempdir().expect("a folder");
    let config = servers::config(&servers::settings(&[adapter], data.path()).await?);
    Some(config.open_sets(&servers::parts()).await.expect("sets"))
}

fn user(id: i64) -> UserId {
    UserId::new(id).expect("an id")
}

/// The entry of a post of user 7, by its millisecond and its number within it.
fn entry(ms: i64, sequence: i64) -> Entry {
    let id = (1_000_000 + ms) << (WRITER_BITS + SEQUENCE_BITS) | sequence;
    Entry { id: EntryId::new(id).expect("an id"), author: user(7) }
}

/// Entries of so many milliseconds, in an order that is neither theirs nor its reverse.
fn shuffled(count: i64) -> Vec<Entry> {
    const STEP: i64 = 7919;
    assert!(count % STEP != 0, "a prime that does not divide it comes by every number once");
    (0..count).map(|number| entry(number * STEP % count, 0)).collect()
}

fn newest_first(entries: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.id));
    entries.dedup();
    entries
}

fn now_ms() -> i64 {
    clock::System.unix_ms()
}

/// A moment that no test reaches.
fn soon() -> i64 {
    assert!(now_ms() > EPOCH_UNIX_MS);
    now_ms() + 60_000
}

/// An entry on its way to these readers.
fn to(readers: &[UserId], entry: Entry) -> Vec<Push> {
    readers.iter().map(|reader| Push { reader: *reader, entries: vec![entry] }).collect()
}

/// Gives a reader a home with these entries.
async fn build(sets: &Sets, reader: UserId, entries: &[Entry], complete_to: Coverage) {
    let Build::Mine(token) = sets.homes.begin_build(reader).await.unwrap() else { panic!("{reader} has a home") };
    assert!(sets.homes.finish_build(reader, token, entries, complete_to, &[]).await.unwrap());
}

/// A reader's whole home, newest first.
async fn home(sets: &Sets, reader: UserId) -> Vec<Entry> {
    sets.homes.page(reader, None, ALL).await.unwrap().expect("a home").entries
}

async fn coverage(sets: &Sets, reader: UserId) -> Coverage {
    sets.homes.coverage(reader).await.unwrap().expect("a home")
}

/// A follow of the author of all entries: brings older ones into a home.
async fn merge(sets: &Sets, reader: UserId, entries: &[Entry], complete_to: Coverage) {
    let follow = FollowVersion { reader, author: user(7), version: 1 };
    sets.homes.merge(follow, entries, complete_to, soon()).await.unwrap();
}
