//! How far all that was written has arrived: what is under way holds it back, wherever it is; an idle installation goes on.

use std::sync::Arc;

use async_trait::async_trait;
use chassis::{
    Clock as _, clock,
    config::{Keys, Layers},
    grpc,
    id::Minter,
    token::Keyring,
};
use proto::{
    PostId, UserId,
    event::{Topic, kind},
    freshet::event::v1::{PostCreated, UserCreated, envelope::Payload},
};
use store::{
    Config, Error, Stores,
    archive::{ArchivedPost, PostsByAuthor},
    event_log::{AppendError, Consumer, EventLog, Record},
    ledger::{Account, Event, NewAccount, NewPost, Written, dead_letters::NewLetter},
    migrate::Mode,
    writer,
};
use tempfile::TempDir;
use tests::{
    servers::{self, Adapter},
    wait,
};
use tokio::{net::TcpListener, sync::watch};

store_contract!(open: [
    embedded = &[tests::servers::Adapter::Sqlite][..],
    on_servers = &[
        tests::servers::Adapter::Postgres,
        tests::servers::Adapter::Redis,
        tests::servers::Adapter::Kafka,
    ][..],
] {
    idle_partitions_settle,
    what_is_not_published_holds_it_back,
    a_fan_out_that_is_not_done_holds_it_back,
    what_a_dead_owner_left_holds_it_back,
});

const SHARDS: u16 = 4;
/// Longer than anything takes to settle that nothing holds back.
const LONG_MS: i64 = 14_000;

/// Whoever comes to a shut gate waits until it is open.
#[derive(Clone)]
struct Gate(watch::Sender<bool>);

impl Gate {
    fn open() -> Self {
        Self(watch::Sender::new(true))
    }

    fn set_open(&self, open: bool) {
        self.0.send_replace(open);
    }

    async fn pass(&self) {
        self.0.subscribe().wait_for(|open| *open).await.expect("a gate");
    }
}

/// Stores, and gates in front of two of them: of appending events that are no marks, and of archiving a post.
struct World {
    stores: Stores,
    to_log: Gate,
    to_archive: Gate,
    ids: Arc<Minter>,
    parts: store::Parts,
    url: String,
    _data: TempDir,
}

struct GatedLog(Arc<dyn EventLog>, Gate);

#[async_trait]
impl EventLog for GatedLog {
    async fn append(&self, records: Vec<Record>) -> Result<(), AppendError> {
        if records.iter().any(|record| record.kind != kind::MARK) {
            self.1.pass().await;
        }
        self.0.append(records).await
    }

    async fn join(&self, group: &'static str, topics: &[Topic]) -> Result<Box<dyn Consumer>, Error> {
        self.0.join(group, topics).await
    }

    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        self.0.bury(letter).await
    }
}

struct GatedArchive(Arc<dyn PostsByAuthor>, Gate);

#[async_trait]
impl PostsByAuthor for GatedArchive {
    async fn add(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        self.1.pass().await;
        self.0.add(posts).await
    }

    async fn remove(&self, author: UserId, post: PostId, version: i64) -> Result<(), Error> {
        self.0.remove(author, post, version).await
    }

    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<ArchivedPost>, Error> {
        self.0.page(author, below, limit).await
    }
}

async fn open(adapters: &[Adapter]) -> Option<World> {
    let data = tempfile::tempdir().expect("a folder");
    let settings = servers::settings(adapters, data.path()).await?;
    let url = settings.iter().find(|(key, _)| *key == "stores.ledger").expect("a ledger").1.clone();
    let (config, parts): (Config, _) = (servers::config(&settings), servers::parts());
    config.migrate(Mode::Apply).await.expect("prepared stores");
    let mut stores = Stores::open(&config, &parts).await.expect("stores");
    let (to_log, to_archive) = (Gate::open(), Gate::open());
    stores.event_log = Arc::new(GatedLog(stores.event_log, to_log.clone()));
    stores.archive.posts_by_author = Arc::new(GatedArchive(stores.archive.posts_by_author, to_archive.clone()));
    let ids = writer::keep(&parts.pod, stores.ledger.writer_numbers.clone(), parts.clock.clone()).await.unwrap();
    Some(World { stores, to_log, to_archive, ids, parts, url, _data: data })
}

impl World {
    /// Starts a relay on these stores.
    async fn relay(&self) -> chassis::Pod {
        let pod = servers::parts().pod;
        let secret = format!("test:{}", "A".repeat(43));
        let parts = relay::Parts {
            pod: pod.clone(),
            stores: self.stores.clone(),
            clock: self.parts.clock.clone(),
            keyring: Keyring::parse(&secret, self.parts.clock.clone()).expect("a key"),
            grpc: grpc::Config::read(&mut Keys::new(Layers::load(None, [], vec![]).expect("settings"))),
        };
        relay::start(parts, TcpListener::bind("127.0.0.1:0").await.expect("a port")).expect("a relay");
        pod
    }

    async fn author(&self) -> UserId {
        let compose =
            |row: &Account| Payload::UserCreated(UserCreated { user_id: row.id.to_string(), ..UserCreated::default() });
        let event = Event { id: self.ids.mint().unwrap(), compose: &compose };
        let (handle, password_hash) = ("lin".to_owned(), "none".to_owned());
        let (id, display_name) = (self.ids.mint().unwrap(), handle.clone());
        let account = NewAccount { id, display_name, handle, email: None, password_hash };
        self.stores.ledger.accounts.create(account, event).await.unwrap().id
    }

    async fn post(&self, author: UserId) -> PostId {
        let compose = |Written { post, .. }: &Written| {
            Payload::PostCreated(PostCreated {
                post_id: post.id.to_string(),
                author_id: post.author.to_string(),
                text: post.content.text.clone(),
                created_at_ms: post.created_at_ms,
                ..PostCreated::default()
            })
        };
        let event = Event { id: self.ids.mint().unwrap(), compose: &compose };
        let post = NewPost::of_text(self.ids.mint().unwrap(), author, "hello");
        self.stores.ledger.posts.create(post, event).await.unwrap().id
    }

    async fn settled(&self) -> Option<i64> {
        self.stores.sets.settled.settled(SHARDS).await.unwrap()
    }

    async fn settles(&self, unix_ms: i64) {
        wait::until("all to settle", async || self.settled().await.filter(|settled| *settled >= unix_ms)).await;
    }

    /// Watches, for longer than it takes to settle, that something does not.
    async fn stays_below(&self, unix_ms: i64) {
        let mut last = None;
        wait::until("the time to pass", async || {
            let settled = self.settled().await;
            assert!(settled < Some(unix_ms), "{settled:?} is past {unix_ms}, which has not arrived");
            assert!(settled >= last, "it went back from {last:?} to {settled:?}");
            last = settled;
            (clock::System.unix_ms() > unix_ms + LONG_MS).then_some(())
        })
        .await;
    }
}

async fn idle_partitions_settle(world: World) {
    assert_eq!(world.settled().await, None);
    world.relay().await;
    let first = wait::until("a mark of each shard", async || world.settled().await).await;
    let behind_ms = clock::System.unix_ms() - first;
    assert!((10_000..LONG_MS).contains(&behind_ms), "{behind_ms} ms behind");
    world.settles(first + 2_000).await;
}

/// A post is held where the closure says, and what is settled stays below it until it is let go.
async fn held_back(world: &World, gate: &Gate) {
    let author = world.author().await;
    world.relay().await;
    wait::until("a mark of each shard", async || world.settled().await).await;
    gate.set_open(false);
    let post = world.post(author).await;
    world.stays_below(post.unix_ms()).await;
    gate.set_open(true);
    world.settles(post.unix_ms()).await;
    assert_eq!(world.stores.sets.recents.newest(author, 10).await.unwrap().len(), 1);
}

async fn what_is_not_published_holds_it_back(world: World) {
    held_back(&world, &world.to_log).await;
}

async fn a_fan_out_that_is_not_done_holds_it_back(world: World) {
    held_back(&world, &world.to_archive).await;
}

/// It ends without giving its leases up, with a row that it has not sent; its successor marks before it sends.
async fn what_a_dead_owner_left_holds_it_back(world: World) {
    let author = world.author().await;
    let owner = world.relay().await;
    wait::until("a mark of each shard", async || world.settled().await).await;
    world.to_log.set_open(false);
    let post = world.post(author).await;
    owner.tasks.abort().await;
    world.relay().await;
    world.stays_below(post.unix_ms()).await;
    let held = async || world.stores.ledger.shard_leases.overview().await.unwrap();
    wait::until("the successor", async || held().await.iter().all(|shard| shard.epoch > 1).then_some(())).await;
    world.to_log.set_open(true);
    world.settles(post.unix_ms()).await;
}

/// A pod that is slow between its first statement and its commit.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_holds_it_back() {
    let Some(world) = open(&[Adapter::Postgres, Adapter::Redis, Adapter::Kafka]).await else { return };
    let author = world.author().await;
    world.relay().await;
    wait::until("a mark of each shard", async || world.settled().await).await;
    let slow = super::ledger::postgres::connect(&world.url).await;
    slow.batch_execute("SET application_name = 'freshet test'; BEGIN").await.unwrap();
    let before = clock::System.unix_ms();
    let post: PostId = world.ids.mint().unwrap();
    slow.execute(
        "INSERT INTO posts (id, author, text, created_at_ms, version) VALUES ($1, $2, 'slow', $3, 1)",
        &[&post.get(), &author.get(), &before],
    )
    .await
    .unwrap();
    world.stays_below(before).await;
    slow.batch_execute("COMMIT").await.unwrap();
    world.settles(before).await;
}
