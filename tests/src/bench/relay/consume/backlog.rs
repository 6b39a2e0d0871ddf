//! What there is to apply: posts as people write them, in the lanes of their authors.

use bytes::Bytes;
use chassis::{Clock as _, clock};
use prost::Message as _;
use proto::{
    EventId, UserId,
    event::Topic,
    freshet::event::v1::{Envelope, Mark, PostCreated, envelope::Payload},
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::{Shard, event_log::Record, sets::Entry, shard::SHARDS_DEFAULT};

use super::{Bench, People, shards};

/// Every post of the run was written within this time, a post a millisecond.
const WRITTEN_WITHIN_MS: i64 = 10 * 60 * 1000;
const HOUR_MS: i64 = 60 * 60 * 1000;
const APPEND_RECORDS: usize = 10_000;
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A post, and its event as the log carries it.
pub(super) struct Post {
    pub(super) id: i64,
    pub(super) author: UserId,
    pub(super) text: String,
    pub(super) created_at_ms: i64,
    pub(super) version: i64,
    pub(super) event: Bytes,
}

/// Makes posts, each newer than those before it.
pub(super) struct Posts {
    authors: Vec<UserId>,
    since_ms: i64,
    /// All that were made, the oldest first.
    pub(super) made: Vec<Entry>,
}

/// The posts of a round, by lane.
pub(super) struct Backlog {
    pub(super) lanes: Vec<Vec<Post>>,
}

/// The marks that stand before and behind a round's posts in each lane: when they are passed tells how long it took. They lie
/// ahead of the clock, so that no other mark is taken for them.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub(super) first: i64,
    pub(super) last: i64,
}

impl Marks {
    pub(super) fn new() -> Self {
        let first = clock::System.unix_ms() + HOUR_MS;
        Self { first, last: first + 1 }
    }
}

impl Posts {
    pub(super) fn by(people: &People) -> Self {
        let since_ms = clock::System.unix_ms() - WRITTEN_WITHIN_MS;
        Self { authors: people.all.clone(), since_ms, made: Vec::new() }
    }

    /// So many more.
    pub(super) fn next(&mut self, number: usize) -> Backlog {
        let mut lanes: Vec<_> = shards().map(|_| Vec::new()).collect();
        for _ in 0..number {
            let place = self.made.len();
            let author = self.authors[mixed(place as u64) as usize % self.authors.len()];
            let post = Post::new(place, author, self.since_ms + place as i64);
            self.made.push(post.entry());
            lanes[usize::from(post.shard().0)].push(post);
        }
        Backlog { lanes }
    }
}

impl Post {
    fn new(number: usize, author: UserId, created_at_ms: i64) -> Self {
        let id = (created_at_ms - EPOCH_UNIX_MS) << (WRITER_BITS + SEQUENCE_BITS);
        let text = format!("{number}: {}", "a post of middling length, as most of them are ".repeat(3));
        let payload = Payload::PostCreated(PostCreated {
            post_id: id.to_string(),
            author_id: author.to_string(),
            text: text.clone(),
            created_at_ms,
            ..PostCreated::default()
        });
        let version = created_at_ms * 1000;
        let event_id = EventId::new(id).expect("an id of an event");
        let event = Envelope::new(event_id, created_at_ms, version, payload).encode_to_vec().into();
        Self { id, author, text, created_at_ms, version, event }
    }

    pub(super) fn entry(&self) -> Entry {
        Entry { id: self.id.try_into().expect("an id of an entry"), author: self.author }
    }

    fn shard(&self) -> Shard {
        Shard::of(&self.author.to_string(), SHARDS_DEFAULT)
    }

    fn record(&self) -> Record {
        let kind = proto::event::kind::POST_CREATED;
        record(self.shard(), self.author.to_string(), kind, self.event.clone())
    }
}

impl Backlog {
    pub(super) fn number(&self) -> usize {
        self.lanes.iter().map(Vec::len).sum()
    }

    /// Appends it to the log, between marks.
    pub(super) async fn append(&self, bench: &Bench, marks: Marks) {
        let mut records: Vec<_> = shards().map(|shard| mark(shard, marks.first)).collect();
        records.extend(self.lanes.iter().flatten().map(Post::record));
        records.extend(shards().map(|shard| mark(shard, marks.last)));
        for some in records.chunks(APPEND_RECORDS) {
            bench.stores.event_log.append(some.to_vec()).await.expect("the log takes the backlog");
        }
    }
}

fn mark(shard: Shard, settled_unix_ms: i64) -> Record {
    let payload = Payload::Mark(Mark { settled_unix_ms, partition: shard.0.into() });
    let event_id = EventId::new(settled_unix_ms).expect("an id of an event");
    let envelope = Envelope::new(event_id, settled_unix_ms, settled_unix_ms * 1000, payload);
    record(shard, String::new(), proto::event::kind::MARK, envelope.encode_to_vec().into())
}

fn record(partition: Shard, key: String, kind: &str, payload: Bytes) -> Record {
    let (kind, traceparent) = (kind.to_owned(), TRACEPARENT.to_owned());
    Record { topic: Topic::Posts, partition, key, kind, payload, traceparent, epoch: 1 }
}

/// A number that looks like chance and is the same in every run: the finaliser of SplitMix64.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
