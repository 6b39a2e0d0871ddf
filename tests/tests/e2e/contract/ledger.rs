//! The ledger: what its traits promise, in SQLite and in PostgreSQL, races included.

mod accounts;
mod archive;
mod dead_letters;
mod departures;
mod edits;
mod events;
mod fills;
mod graph;
mod jobs;
mod keys;
mod leases;
mod marks;
mod migrations;
mod modes;
mod outbox;
pub(super) mod postgres;
mod posts;
mod relations;
mod sight;
mod writers;

use std::{
    path::Path,
    sync::atomic::{AtomicI64, Ordering},
};

use chassis::{Clock as _, clock};
use prost::Message as _;
use proto::{
    EventId, PostId, UserId,
    freshet::event::v1::{
        Envelope, Liked, PostCreated, PostDeleted, PostUpdated, PrivacyChanged, RemoteAuthorUpserted, Unliked,
        UserCreated, envelope::Payload,
    },
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::{
    Config, Error, Shard,
    archive::Archive,
    ledger::{
        Account, BlockOutcome, Deleted, Event, FollowLimits, FollowOutcome, GraphChange, Ledger, Likes, NewAccount,
        NewPost, OutboxRow, Outcome, Pair, Post, PostChange, PostKey, ReadFrom, RemoteAuthor, Viewer, Written,
    },
    migrate::Mode,
};
use tempfile::TempDir;
use tests::servers::{self, Adapter};

const SHARDS: u16 = 4;
/// How many people one may follow here.
const FOLLOWEES_MAX: u32 = 5;
/// From how many followers on someone's posts are merged at read here.
const CELEBRITY_FOLLOWERS: u32 = 10;
const LIMITS: FollowLimits = FollowLimits { followees_max: FOLLOWEES_MAX, celebrity_followers: CELEBRITY_FOLLOWERS };

/// A ledger that is a test's own, and those who write in it.
struct World {
    ledger: Ledger,
    archive: Archive,
    config: Config,
    url: String,
    next_id: AtomicI64,
    _data: TempDir,
}

async fn open(adapter: Adapter) -> Option<World> {
    let data = tempfile::tempdir().expect("a folder");
    let (config, url) = configure(adapter, data.path(), &[]).await?;
    config.migrate_ledger(Mode::Apply).await.expect("a migration");
    let ledger = config.open_ledger(&servers::parts()).await.expect("a ledger");
    let archive = config.open_archive(&servers::parts(), &ledger).await.expect("an archive");
    Some(World { ledger, archive, config, url, next_id: AtomicI64::new(0), _data: data })
}

/// What an event tells of a post, as far as anybody here looks at it.
fn told(row: &Post) -> PostCreated {
    PostCreated { post_id: row.id.to_string(), author_id: row.author.to_string(), ..PostCreated::default() }
}

/// A config whose ledger is new and empty, and the ledger's URL.
async fn configure(adapter: Adapter, data: &Path, more: &[(&'static str, &str)]) -> Option<(Config, String)> {
    let mut settings = servers::settings(&[adapter], data).await?;
    if adapter == Adapter::Postgres {
        // A config needs one; no test of the ledger talks to it.
        settings.push(("stores.events", "kafka://127.0.0.1:1".to_owned()));
    }
    settings.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
    let url = settings.iter().find(|(key, _)| *key == "stores.ledger").expect("a ledger").1.clone();
    Some((servers::config(&settings), url))
}

impl World {
    /// A new id. It is of this moment: the ledger takes no event with an old one.
    fn id<Id: TryFrom<i64, Error: std::fmt::Debug>>(&self) -> Id {
        let now = (clock::System.unix_ms() - EPOCH_UNIX_MS) << (WRITER_BITS + SEQUENCE_BITS);
        self.next_id.fetch_max(now, Ordering::SeqCst);
        Id::try_from(self.next_id.fetch_add(1, Ordering::SeqCst)).expect("an id")
    }

    async fn sign_up(&self, handle: &str) -> Result<UserId, Error> {
        self.sign_up_with(handle, None).await
    }

    async fn sign_up_with(&self, handle: &str, email: Option<&str>) -> Result<UserId, Error> {
        let compose = |row: &Account| {
            Payload::UserCreated(UserCreated {
                user_id: row.id.to_string(),
                handle: row.handle.clone(),
                display_name: row.display_name.clone(),
            })
        };
        let (handle, display_name, email) = (handle.to_owned(), handle.to_uppercase(), email.map(str::to_owned));
        let account = NewAccount { id: self.id(), handle, display_name, email, password_hash: "hash".into() };
        let event = Event { id: self.id::<EventId>(), compose: &compose };
        self.ledger.accounts.create(account, event).await.map(|account| account.id)
    }

    /// So many people, in order of their ids.
    async fn people(&self, number: usize) -> Vec<UserId> {
        let mut people = Vec::new();
        for _ in 0..number {
            let handle = format!("p{}", self.next_id.load(Ordering::SeqCst));
            people.push(self.sign_up(&handle).await.expect("a sign-up"));
        }
        people
    }

    /// New events of the graph.
    fn events_of<const N: usize>(&self) -> [Event<'static, GraphChange>; N] {
        [(); N].map(|()| Event { id: self.id(), compose: &GraphChange::payload })
    }

    /// Makes one follow the other, if that is possible. Tells whether that changed anything.
    async fn follow(&self, follower: UserId, followee: UserId) -> Result<bool, Error> {
        let pair = Pair { from: follower, to: followee };
        Ok(self.ledger.graph.follow(pair, LIMITS, self.events_of()).await?.changed)
    }

    async fn unfollow(&self, follower: UserId, followee: UserId) -> Result<Outcome, Error> {
        self.ledger.graph.unfollow(Pair { from: follower, to: followee }, LIMITS, self.events_of()).await
    }

    async fn block(&self, blocker: UserId, blocked: UserId) -> Result<BlockOutcome, Error> {
        self.ledger.blocks.block(Pair { from: blocker, to: blocked }, LIMITS, self.events_of()).await
    }

    async fn unblock(&self, blocker: UserId, blocked: UserId) -> Result<Outcome, Error> {
        let [event] = self.events_of();
        self.ledger.blocks.unblock(Pair { from: blocker, to: blocked }, event).await
    }

    async fn mute(&self, muter: UserId, muted: UserId, until_ms: Option<i64>) -> Result<Outcome, Error> {
        let [event] = self.events_of();
        self.ledger.mutes.mute(Pair { from: muter, to: muted }, until_ms, event).await
    }

    async fn unmute(&self, muter: UserId, muted: UserId) -> Result<Outcome, Error> {
        let [event] = self.events_of();
        self.ledger.mutes.unmute(Pair { from: muter, to: muted }, event).await
    }

    async fn set_private(&self, user: UserId, private: bool) -> Result<bool, Error> {
        let compose =
            |private: &bool| Payload::PrivacyChanged(PrivacyChanged { user_id: user.to_string(), private: *private });
        let event = Event { id: self.id(), compose: &compose };
        self.ledger.follow_requests.set_private(user, private, event).await
    }

    async fn accept(&self, requester: UserId, target: UserId) -> Result<FollowOutcome, Error> {
        let pair = Pair { from: requester, to: target };
        self.ledger.follow_requests.accept(pair, LIMITS, self.events_of()).await
    }

    async fn reject(&self, requester: UserId, target: UserId) -> Result<bool, Error> {
        let [event] = self.events_of();
        self.ledger.follow_requests.reject(Pair { from: requester, to: target }, event).await
    }

    async fn upsert_remote(&self, remote_id: &str, handle: &str, name: &str) -> Result<Account, Error> {
        let [origin, remote_id, handle, display_name] = ["far.example", remote_id, handle, name].map(str::to_owned);
        let author = RemoteAuthor { id: self.id(), origin, remote_id, handle, display_name };
        let compose = |row: &Account| {
            Payload::RemoteAuthorUpserted(RemoteAuthorUpserted { user_id: row.id.to_string(), ..Default::default() })
        };
        let event = Event { id: self.id(), compose: &compose };
        self.ledger.remote_authors.upsert(author, event).await
    }

    async fn post(&self, author: UserId, text: &str) -> Result<Post, Error> {
        self.post_with_key(author, text, None).await
    }

    async fn post_with_key(&self, author: UserId, text: &str, key: Option<&str>) -> Result<Post, Error> {
        let key = key.map(|key| PostKey { key: key.to_owned(), fingerprint: text.as_bytes().to_vec() });
        self.write(NewPost { key, ..NewPost::of_text(self.id(), author, text) }).await
    }

    async fn write(&self, new: NewPost) -> Result<Post, Error> {
        let compose = |Written { post, fan_out }: &Written| {
            Payload::PostCreated(PostCreated { fan_out: fan_out.to_wire().into(), ..told(post) })
        };
        self.ledger.posts.create(new, Event { id: self.id(), compose: &compose }).await
    }

    async fn edit(&self, post: &Post, change: PostChange) -> Result<Post, Error> {
        let compose = |row: &Post| Payload::PostUpdated(PostUpdated { post: Some(told(row)), edited_at_ms: 0 });
        let event = Event { id: self.id(), compose: &compose };
        self.ledger.posts.update((post.author, post.id), post.version, change, event).await
    }

    async fn delete_post(&self, author: UserId, post: PostId) -> Result<Deleted, Error> {
        let compose = |row: &Deleted| {
            Payload::PostDeleted(PostDeleted { post_id: row.id.to_string(), author_id: row.author.to_string() })
        };
        self.ledger.posts.delete(author, post, Event { id: self.id(), compose: &compose }).await
    }

    async fn unlike(&self, user: UserId, post: PostId) -> Result<Likes, Error> {
        let compose = |row: &Likes| {
            Payload::Unliked(Unliked { post_id: post.to_string(), user_id: user.to_string(), like_count: row.count })
        };
        self.ledger.posts.unlike(user, post, Event { id: self.id(), compose: &compose }).await
    }

    /// Which of these posts someone may see, in order.
    async fn sees(&self, viewer: Viewer, posts: &[PostId]) -> Vec<PostId> {
        let mut seen: Vec<_> =
            self.ledger.posts.batch(viewer, posts).await.expect("posts").iter().map(|post| post.id).collect();
        seen.sort_unstable();
        seen
    }

    async fn like(&self, user: UserId, post: PostId) -> Result<Likes, Error> {
        let compose = |row: &Likes| {
            Payload::Liked(Liked { post_id: post.to_string(), user_id: user.to_string(), like_count: row.count })
        };
        self.ledger.posts.like(user, post, Event { id: self.id(), compose: &compose }).await
    }

    /// All that waits in the outbox.
    async fn rows(&self) -> Vec<OutboxRow> {
        let all: Vec<_> = (0..SHARDS).map(|shard| ReadFrom::the_first(Shard(shard))).collect();
        self.ledger.outbox.read(&all, 10_000, &[]).await.expect("the outbox").rows
    }

    /// The shards in which rows wait.
    async fn waiting(&self) -> Vec<Shard> {
        let mut shards: Vec<_> = self.rows().await.into_iter().map(|row| row.shard).collect();
        shards.dedup();
        shards
    }

    /// The events of one type that wait in the outbox.
    async fn events(&self, kind: &str) -> Vec<Envelope> {
        let rows = self.rows().await.into_iter().filter(|row| row.kind == kind);
        rows.map(|row| Envelope::decode(row.payload).expect("an envelope")).collect()
    }
}
