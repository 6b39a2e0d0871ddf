//! The sets by the bare driver: the product's own scripts, called through one connection that many share.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use prost::Message as _;
use proto::{UserId, freshet::event::v1::Delivery};
use redis::{AsyncConnectionConfig, Cmd, aio::MultiplexedConnection};
use store::sets::{Entry, HOME_MEMBERS_KEPT, HOME_MEMBERS_MAX, POD_STREAM_MESSAGES_MAX, RECENT_MEMBERS_MAX};

use super::{
    super::{
        super::{Bench, setting},
        people::People,
    },
    Post,
};

/// A machine that is busy otherwise must not end the run.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const NOT_AFTER_MS: i64 = i64::MAX >> 16;
const STREAM_MS: u64 = 10 * 60 * 1000;
const SEND_MESSAGES_MAX: usize = 100;
const BUCKETS: u64 = 64;
/// Entries a script call.
const CALL_ENTRIES_MAX: usize = 250;

/// A connection, and the scripts by their hashes.
pub(super) struct Sets {
    connection: MultiplexedConnection,
    prefix: String,
    push: String,
    push_recents: String,
    send: String,
}

macro_rules! script {
    ($name:literal) => {
        concat!(
            include_str!("../../../../../../store/src/sets/redis/lua/prelude.lua"),
            "\n",
            include_str!(concat!("../../../../../../store/src/sets/redis/lua/", $name, ".lua"))
        )
    };
}

impl Sets {
    pub(super) async fn open(bench: &Bench) -> Self {
        let client = redis::Client::open(setting(&bench.settings, "stores.sets")).expect("a client");
        let patient = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_WITHIN));
        let connection = client.get_multiplexed_async_connection_with_config(&patient).await.expect("Redis");
        let load = async |code: &str| {
            let mut connection = connection.clone();
            let load = redis::cmd("SCRIPT").arg("LOAD").arg(code).query_async::<String>(&mut connection).await;
            load.expect("a script")
        };
        Self {
            prefix: format!("{}:", setting(&bench.settings, "stores.namespace")),
            push: load(script!("push")).await,
            push_recents: load(script!("push_recents")).await,
            send: load(script!("send")).await,
            connection,
        }
    }

    pub(super) async fn push_recents(&self, posts: &[Post]) {
        let mut entries: Vec<_> = posts.iter().map(Post::entry).collect();
        entries.sort_unstable_by_key(|entry| entry.author);
        let call = async |entries: &[Entry]| {
            let authors: Vec<_> = entries.chunk_by(|a, b| a.author == b.author).collect();
            let mut call = redis::cmd("EVALSHA");
            call.arg(&self.push_recents).arg(authors.len());
            authors.iter().for_each(|of_author| {
                call.arg(format!("{}recent:{}", self.prefix, of_author[0].author));
            });
            call.arg(RECENT_MEMBERS_MAX);
            authors.into_iter().for_each(|of_author| add_entries(&mut call, of_author));
            self.ask::<()>(&call).await;
        };
        join_all(entries.chunks(CALL_ENTRIES_MAX).map(call)).await;
    }

    /// Pushes to the followers' homes, then tells the pods of those who are connected.
    pub(super) async fn push(&self, posts: &[Post], people: &People) {
        let mut by_reader: BTreeMap<UserId, Vec<&Post>> = BTreeMap::new();
        for post in posts {
            people.followers[&post.author].iter().for_each(|reader| by_reader.entry(*reader).or_default().push(post));
        }
        let mut pushes: Vec<_> = by_reader.iter().map(|(reader, posts)| (bucket(*reader), *reader, posts)).collect();
        pushes.sort_unstable_by_key(|(bucket, reader, _)| (*bucket, *reader));
        let told = join_all(in_calls(&pushes).into_iter().map(|some| self.push_some(some))).await;

        let mut readers: BTreeMap<(i64, String), Vec<i64>> = BTreeMap::new();
        for (reader, pod) in told.into_iter().flatten() {
            for post in &by_reader[&UserId::new(reader).expect("a reader")] {
                readers.entry((post.id, pod.clone())).or_default().push(reader);
            }
        }
        let mut by_pod: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        let events: BTreeMap<_, _> = posts.iter().map(|post| (post.id, &post.event)).collect();
        for ((post, pod), reader_ids) in readers {
            let delivery = Delivery { event: events[&post].to_vec(), reader_ids, traceparent: String::new() };
            by_pod.entry(pod).or_default().push(delivery.encode_to_vec());
        }
        join_all(by_pod.iter().map(|(pod, messages)| self.tell(pod, messages))).await;
    }

    async fn push_some(&self, pushes: &[(u64, UserId, &Vec<&Post>)]) -> Vec<(i64, String)> {
        let buckets: Vec<_> = pushes.chunk_by(|a, b| a.0 == b.0).collect();
        let mut call = redis::cmd("EVALSHA");
        call.arg(&self.push).arg(buckets.len() + pushes.len());
        for bucket in &buckets {
            call.arg(format!("{}online:{{{}}}", self.prefix, bucket[0].0));
            for (number, reader, _) in *bucket {
                call.arg(format!("{}timeline:home:{{{number}}}:{reader}", self.prefix));
            }
        }
        call.arg(NOT_AFTER_MS).arg(HOME_MEMBERS_MAX).arg(HOME_MEMBERS_KEPT);
        for bucket in buckets {
            call.arg(bucket.len()).arg(bucket.iter().map(|(_, reader, _)| reader.get()).collect::<Vec<_>>());
            for (_, _, posts) in bucket {
                let entries: Vec<_> = posts.iter().map(|post| post.entry()).collect();
                add_entries(&mut call, &entries);
            }
        }
        self.ask(&call).await
    }

    async fn tell(&self, pod: &str, messages: &[Vec<u8>]) {
        for some in messages.chunks(SEND_MESSAGES_MAX) {
            let mut call = redis::cmd("EVALSHA");
            call.arg(&self.send).arg(2).arg(format!("{}pod:{{{pod}}}", self.prefix));
            call.arg(format!("{}pod:{{{pod}}}:sent", self.prefix));
            call.arg(POD_STREAM_MESSAGES_MAX).arg(STREAM_MS).arg(some);
            self.ask::<()>(&call).await;
        }
    }

    async fn ask<T: redis::FromRedisValue>(&self, call: &Cmd) -> T {
        call.query_async(&mut self.connection.clone()).await.expect("an answer")
    }
}

fn add_entries(call: &mut Cmd, entries: &[Entry]) {
    call.arg(entries.len());
    for entry in entries {
        call.arg(entry.score()).arg(&entry.member());
    }
}

/// As many readers a call as have so many entries together.
fn in_calls<'a, 'p>(pushes: &'a [(u64, UserId, &'p Vec<&'p Post>)]) -> Vec<&'a [(u64, UserId, &'p Vec<&'p Post>)]> {
    let (mut calls, mut first, mut entries) = (Vec::new(), 0, 0);
    for (place, (_, _, posts)) in pushes.iter().enumerate() {
        if place > first && entries + posts.len() > CALL_ENTRIES_MAX {
            calls.push(&pushes[first..place]);
            (first, entries) = (place, 0);
        }
        entries += posts.len();
    }
    calls.push(&pushes[first..]);
    calls
}

/// FNV-1a of the reader's id, as the product has it.
fn bucket(reader: UserId) -> u64 {
    let id = reader.to_string();
    let hash = id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash % BUCKETS
}
