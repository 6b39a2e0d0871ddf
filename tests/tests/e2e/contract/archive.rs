//! The archive: posts and follows, to the oldest, in the ledger's own tables and on Cassandra.

mod cassandra_only;
mod fill;
mod follows;
mod public;

use chassis::{Clock as _, clock};
use proto::{
    EventId, PostId, UserId,
    freshet::event::v1::{PostCreated, UserCreated, envelope::Payload},
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::{
    Config,
    archive::{Archive, ArchivedPost as Post, Chunk, Edge},
    ledger::{Event, FollowLimits, GraphChange, Ledger, NewAccount, NewPost, Pair},
    migrate::Mode,
};
use tempfile::TempDir;
use tests::servers::{self, Adapter};

struct Opened {
    archive: Archive,
    ledger: Ledger,
    config: Config,
    keyspace: String,
    _data: TempDir,
}

/// A ledger with two people in it, and an archive that is filled from it: what is read comes from the archive.
async fn open(adapter: Adapter) -> Option<Opened> {
    Some(filled(open_unfilled(adapter).await?).await)
}

async fn filled(mut opened: Opened) -> Opened {
    for author in [ADA, LIN] {
        opened.sign_up(author).await;
    }
    opened.fill().await;
    opened.open_again().await;
    opened
}

async fn open_unfilled(adapter: Adapter) -> Option<Opened> {
    let data = tempfile::tempdir().expect("a folder");
    let settings = servers::settings(&[adapter], data.path()).await?;
    Some(open_on(settings, data).await)
}

async fn open_on(settings: Vec<(&'static str, String)>, data: TempDir) -> Opened {
    let keyspace = settings.iter().find(|(key, _)| *key == "stores.namespace").expect("a namespace").1.clone();
    let config = servers::config(&settings);
    config.migrate(Mode::Apply).await.expect("a migration");
    let parts = servers::parts();
    let ledger = config.open_ledger(&parts).await.expect("a ledger");
    let archive = config.open_archive(&parts, &ledger).await.expect("an archive");
    Opened { archive, ledger, config, keyspace, _data: data }
}

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    cassandra = tests::servers::Adapter::Cassandra,
] {
    posts_added_in_any_order_and_twice_are_read_newest_first,
    a_page_goes_on_below_the_last_one_to_the_oldest,
    authors_are_apart,
    an_older_write_does_not_undo_a_newer_one,
    any_text_comes_back_as_it_was,
    a_long_page_comes_whole,
});

const ADA: i64 = 11;
const LIN: i64 = 12;

fn user(id: i64) -> UserId {
    UserId::new(id).expect("an id")
}

fn id(number: i64) -> PostId {
    PostId::new(number << 22).expect("an id")
}

/// Minted now: the ledger takes no other.
fn event_id(number: i64) -> EventId {
    EventId::new(((clock::System.unix_ms() - EPOCH_UNIX_MS) << (WRITER_BITS + SEQUENCE_BITS)) + number).expect("an id")
}

impl Opened {
    /// Fills the archive, where it is not the ledger. Gives the number of chunks.
    async fn fill(&self) -> usize {
        let Some(filling) = &self.archive.filling else { return 0 };
        let mut lease = filling.claim("the test").await.unwrap().expect("a lease");
        let mut chunks = 1;
        while filling.write_chunk(&mut lease).await.unwrap() != Chunk::Last {
            chunks += 1;
        }
        chunks
    }

    /// Opens the archive anew, as a pod that starts does: it knows at once whether the archive is complete.
    async fn open_again(&mut self) {
        self.archive = self.config.open_archive(&servers::parts(), &self.ledger).await.expect("an archive");
    }

    async fn sign_up(&self, author: i64) {
        let account = NewAccount {
            id: user(author),
            handle: format!("author{author}"),
            display_name: "An author".to_owned(),
            email: None,
            password_hash: "none".to_owned(),
        };
        let compose =
            |_: &_| Payload::UserCreated(UserCreated { user_id: author.to_string(), ..UserCreated::default() });
        self.ledger.accounts.create(account, Event { id: event_id(author), compose: &compose }).await.unwrap();
    }

    /// Puts a post into the ledger, where an embedded archive has it from.
    async fn commit(&self, author: i64, number: i64, text: &str) -> Post {
        let post = NewPost::of_text(id(number), user(author), text);
        let compose =
            |_: &_| Payload::PostCreated(PostCreated { author_id: author.to_string(), ..PostCreated::default() });
        let event = Event { id: event_id(1000 + number), compose: &compose };
        (&self.ledger.posts.create(post, event).await.unwrap()).into()
    }

    /// Puts a post into both.
    async fn write(&self, author: i64, number: i64) -> Post {
        let post = self.commit(author, number, &format!("post {number}")).await;
        self.add(&post, number).await;
        post
    }

    async fn add(&self, post: &Post, version: i64) {
        let posts = [(post.clone(), version)];
        self.archive.posts_by_author.add(&posts).await.unwrap();
        self.archive.public_posts.add(&posts).await.unwrap();
    }

    /// Makes one follow the other, in the ledger.
    async fn commit_follow(&self, follower: i64, followee: i64) {
        let id = 3 * (1_000_000 * follower + followee);
        let events = [id, id + 1, id + 2].map(|id| Event { id: event_id(id), compose: &GraphChange::payload });
        let pair = Pair { from: user(follower), to: user(followee) };
        let limits = FollowLimits { followees_max: 10_000, celebrity_followers: 10_000 };
        self.ledger.graph.follow(pair, limits, events).await.unwrap();
    }

    /// Makes one follow the other, in both.
    async fn follow(&self, follower: i64, followee: i64) {
        self.commit_follow(follower, followee).await;
        let edge = Edge { follower: user(follower), followee: user(followee), active: true, version: 1 };
        self.archive.follows.set(&[edge]).await.unwrap();
    }

    async fn page(&self, author: i64, below: Option<PostId>, limit: u32) -> Vec<Post> {
        self.archive.posts_by_author.page(user(author), below, limit).await.unwrap()
    }
}

async fn posts_added_in_any_order_and_twice_are_read_newest_first(opened: Opened) {
    assert_eq!(opened.page(ADA, None, 10).await, []);
    let mut posts = Vec::new();
    for number in [3, 1, 5, 2, 4] {
        posts.push(opened.write(ADA, number).await);
    }
    for post in &posts {
        opened.add(post, 9).await;
    }
    posts.sort_by_key(|post| std::cmp::Reverse(post.id));
    assert_eq!(opened.page(ADA, None, 10).await, posts);
}

async fn a_page_goes_on_below_the_last_one_to_the_oldest(opened: Opened) {
    for number in 1..=7 {
        opened.write(ADA, number).await;
    }
    let mut below = None;
    for expected in [&[7, 6, 5][..], &[4, 3, 2], &[1], &[]] {
        let page: Vec<_> = opened.page(ADA, below, 3).await.iter().map(|post| post.id).collect();
        assert_eq!(page, expected.iter().map(|number| id(*number)).collect::<Vec<_>>());
        below = page.last().copied();
    }
    // Below an id that no post has, and none at all.
    let between = PostId::new(id(3).get() + 1).expect("an id");
    assert_eq!(opened.page(ADA, Some(between), 1).await[0].id, id(3));
    assert_eq!(opened.page(ADA, None, 0).await, []);
}

async fn authors_are_apart(opened: Opened) {
    let (of_ada, of_lin) = (opened.write(ADA, 1).await, opened.write(LIN, 2).await);
    assert_eq!(opened.page(ADA, None, 10).await, [of_ada]);
    assert_eq!(opened.page(LIN, None, 10).await, [of_lin]);
    assert_eq!(opened.page(13, None, 10).await, []);
}

async fn an_older_write_does_not_undo_a_newer_one(opened: Opened) {
    let newer = opened.commit(ADA, 1, "as it is now").await;
    let older = Post { text: "as it was".to_owned(), ..newer.clone() };
    opened.add(&older, 1_700_000_000_000_001).await;
    opened.add(&newer, 1_700_000_000_000_002).await;
    opened.add(&older, 1_700_000_000_000_001).await;
    assert_eq!(opened.page(ADA, None, 10).await, [newer]);
}

async fn any_text_comes_back_as_it_was(opened: Opened) {
    let text = "'quoted' \"twice\"; -- $1 ? 🐟\n\u{0}end";
    let post = opened.commit(ADA, 1, text).await;
    opened.add(&post, 1).await;
    assert_eq!(opened.page(ADA, None, 1).await[0].text, text);
}

async fn a_long_page_comes_whole(opened: Opened) {
    let mut posts = Vec::new();
    for number in 1..=1200 {
        posts.push(opened.commit(ADA, number, "short").await);
    }
    let versioned: Vec<_> = posts.iter().map(|post| (post.clone(), 1)).collect();
    opened.archive.posts_by_author.add(&versioned).await.unwrap();
    posts.reverse();
    assert_eq!(opened.page(ADA, None, 1100).await, posts[..1100]);
    assert_eq!(opened.page(ADA, None, 5000).await, posts);
}
