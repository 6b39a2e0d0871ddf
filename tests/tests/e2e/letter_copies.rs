//! The copies of dead letters on Kafka, read as another tool would: by a consumer that knows nothing of ours.

use std::collections::BTreeMap;

use async_trait::async_trait;
use chassis::{Pod, Stop};
use prost::Message as _;
use proto::{
    EventId,
    event::{Topic, kind},
    freshet::event::v1::{Envelope, PostCreated, envelope::Payload},
};
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{Consumer as _, StreamConsumer},
    message::Headers as _,
};
use relay::Publisher;
use store::{
    Shard, Stores,
    consumer::{Consumption, Event, Failure, Group, Handler, Handlers},
    event_log::{RECORD_BYTES_MAX, Record},
    ledger::dead_letters::{DeadLetter, Filter},
    migrate::Mode,
};
use tempfile::TempDir;
use tests::{
    servers::{self, Adapter},
    sql::Sql,
    wait,
};
use tokio::time::Instant;

/// The release that all crates of the workspace share.
const VERSION: &str = env!("CARGO_PKG_VERSION");
const SHARD: u16 = 2;
const SAID: &str = "test.said";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const EPOCH: i64 = 7;
/// More than a dead letter's topic takes.
const FAR_TOO_LARGE_BYTES: usize = 1_200_000;

/// Stores whose event log is on Kafka.
struct World {
    stores: Stores,
    namespace: String,
    ledger_url: String,
    _data: TempDir,
}

impl World {
    async fn open() -> Option<Self> {
        let data = tempfile::tempdir().expect("a folder");
        let settings = servers::settings(&[Adapter::Kafka], data.path()).await?;
        let setting = |name| settings.iter().find(|(key, _)| *key == name).expect("a setting").1.clone();
        let config = servers::config(&settings);
        config.migrate(Mode::Apply).await.expect("topics");
        let stores = Stores::open(&config, &servers::parts()).await.expect("stores");
        let (namespace, ledger_url) = (setting("stores.namespace"), setting("stores.ledger"));
        Some(Self { stores, namespace, ledger_url, _data: data })
    }

    fn topic(&self, name: &str) -> String {
        format!("{}.{name}", self.namespace)
    }

    async fn letters(&self, count: usize) -> Vec<DeadLetter> {
        let letters = &self.stores.ledger.dead_letters;
        wait::until(&format!("{count} letters"), async || {
            let page = letters.page(&Filter::default(), 0, 100).await.expect("letters");
            (page.len() == count).then_some(page)
        })
        .await
    }
}

/// A message as any tool sees it.
#[derive(Debug)]
struct Seen {
    offset: i64,
    timestamp_ms: Option<i64>,
    key: Vec<u8>,
    payload: Vec<u8>,
    headers: BTreeMap<String, String>,
}

/// The first messages of a topic's partition, but for marks, which come whenever they like.
async fn seen(topic: &str, partition: i32, count: usize) -> Vec<Seen> {
    let brokers = std::env::var("TEST_KAFKA").expect("Kafka");
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers.trim_start_matches("kafka://"))
        .set("group.id", "another tool")
        .create()
        .expect("a consumer");
    let mut from = TopicPartitionList::new();
    from.add_partition_offset(topic, partition, Offset::Beginning).expect("a partition");
    consumer.assign(&from).expect("an assignment");
    let mut seen = Vec::new();
    while seen.len() < count {
        let message = wait::within("a message", consumer.recv()).await.expect("a message");
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
        let headers = message.headers().expect("headers").iter();
        let headers: BTreeMap<_, _> = headers.map(|header| (header.key.to_owned(), text(header.value))).collect();
        if headers["type"] == kind::MARK {
            continue;
        }
        seen.push(Seen {
            offset: message.offset(),
            timestamp_ms: message.timestamp().to_millis(),
            key: message.key().unwrap_or_default().to_vec(),
            payload: message.payload().unwrap_or_default().to_vec(),
            headers,
        });
    }
    seen
}

/// The headers of a copy must be these, and no others.
fn assert_headers<const N: usize>(copy: &Seen, expected: [(&str, String); N]) {
    let expected: BTreeMap<_, _> = expected.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    assert_eq!(copy.headers, expected);
}

/// Refuses everything.
struct Refusing;

#[async_trait]
impl Handler for Refusing {
    async fn apply(&self, _: &[Event], _: Instant) -> Result<(), Failure> {
        Err(Failure::Final("it says what cannot be".into()))
    }
}

fn record(key: &str, payload: Vec<u8>) -> Record {
    Record {
        topic: Topic::Posts,
        partition: Shard(SHARD),
        key: key.to_owned(),
        kind: SAID.to_owned(),
        payload: payload.into(),
        traceparent: TRACEPARENT.to_owned(),
        epoch: EPOCH,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_consumer_puts_aside_is_copied_with_where_it_came_from_and_why() {
    static TOPICS: [Topic; 1] = [Topic::Posts];
    let Some(world) = World::open().await else { return };
    let said = Envelope {
        r#type: SAID.to_owned(),
        key: "broken".to_owned(),
        ..Envelope::new(EventId::new(1).unwrap(), 0, 1, Payload::PostCreated(PostCreated::default()))
    };
    let nonsense = vec![0xFF, 0x00, 0x0A, 0x0D];
    let records = [
        record("nonsense", nonsense.clone()),
        record("broken", said.encode_to_vec()),
        // It waits behind the one before it.
        record("broken", said.encode_to_vec()),
    ];
    world.stores.event_log.append(records.to_vec()).await.unwrap();
    let (pod, stop) = (Pod::new("listener"), Stop::new());
    let handlers = Handlers::default().on(SAID, std::sync::Arc::new(Refusing));
    let consumption = Consumption::on(&pod, &world.stores, Group::new("listeners", &TOPICS, handlers));
    let put_aside = async {
        let letters = world.letters(3).await;
        // A parked one is copied after the ledger has it.
        let copies = seen(&world.topic("posts.dlt"), 0, 3).await;
        stop.cancel();
        (letters, copies)
    };
    let (ended, (letters, copies)) = tokio::join!(consumption.run(stop.clone()), put_aside);
    ended.unwrap();

    let originals = seen(&world.topic("posts"), i32::from(SHARD), 3).await;
    let causes = ["undecodable", "broken_rule", "parked"];
    for (((original, copy), letter), cause) in originals.iter().zip(&copies).zip(&letters).zip(causes) {
        assert_eq!((&copy.key, &copy.payload), (&original.key, &original.payload));
        assert_headers(
            copy,
            [
                ("type", SAID.into()),
                ("traceparent", TRACEPARENT.into()),
                ("epoch", EPOCH.to_string()),
                ("origin.topic", world.topic("posts")),
                ("origin.partition", SHARD.to_string()),
                ("origin.offset", original.offset.to_string()),
                ("origin.timestamp", original.timestamp_ms.expect("a time").to_string()),
                ("origin.key", String::from_utf8_lossy(&original.key).into_owned()),
                ("origin.epoch", EPOCH.to_string()),
                ("group", "listeners".into()),
                ("cause", cause.into()),
                ("error", letter.error.clone()),
                ("attempts", "1".into()),
                ("pod", "listener".into()),
                ("version", VERSION.into()),
            ],
        );
    }
    assert_eq!(copies[0].payload, nonsense);
    assert_eq!(copies[1].headers["error"], "it says what cannot be");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_kafka_refuses_is_copied_too_and_without_its_bytes_where_they_are_far_too_many() {
    let Some(world) = World::open().await else { return };
    let mut sql = Sql::connect(&world.ledger_url).await;
    let row = |key: &str, bytes: usize, at: i64| {
        format!("({SHARD}, 'posts', '{key}', 'post.created', randomblob({bytes}), '{TRACEPARENT}', {at})")
    };
    let rows = [
        row("first", 10, 1_000),
        row("large", RECORD_BYTES_MAX, 2_000),
        row("far_too_large", FAR_TOO_LARGE_BYTES, 3_000),
        row("last", 10, 4_000),
    ];
    let insert = "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms)";
    sql.run(&format!("{insert} VALUES {}", rows.join(", "))).await;

    let (stop, publisher) = (Stop::new(), Publisher::new("relay-1", &world.stores));
    let put_aside = async {
        let letters = world.letters(2).await;
        let outbox = &world.stores.ledger.outbox;
        wait::until("an empty outbox", async || (outbox.backlog().await.unwrap() == 0).then_some(())).await;
        stop.cancel();
        letters
    };
    let (ended, letters) = tokio::join!(publisher.run(stop.clone()), put_aside);
    ended.unwrap();

    let copies = seen(&world.topic("posts.dlt"), 0, 2).await;
    for ((copy, letter), at) in copies.iter().zip(&letters).zip(["2000", "3000"]) {
        let record = &letter.event.record;
        assert_eq!(copy.key, record.key.as_bytes());
        let mut copy = Seen { headers: copy.headers.clone(), payload: Vec::new(), key: Vec::new(), ..*copy };
        // Only where the bytes are left out.
        copy.headers.remove("origin.bytes");
        assert_headers(
            &copy,
            [
                ("type", "post.created".into()),
                ("traceparent", TRACEPARENT.into()),
                ("epoch", record.epoch.to_string()),
                ("origin.topic", world.topic("posts")),
                ("origin.partition", SHARD.to_string()),
                ("origin.offset", letter.event.position.to_string()),
                ("origin.timestamp", at.into()),
                ("origin.key", record.key.clone()),
                ("origin.epoch", record.epoch.to_string()),
                ("group", String::new()),
                ("cause", "refused".into()),
                ("error", letter.error.clone()),
                ("attempts", "1".into()),
                ("pod", "relay-1".into()),
                ("version", VERSION.into()),
            ],
        );
    }
    assert!(copies[0].payload == letters[0].event.record.payload && copies[0].payload.len() == RECORD_BYTES_MAX);
    assert_eq!(copies[0].headers.get("origin.bytes"), None);
    assert!(copies[1].payload.is_empty());
    assert_eq!(copies[1].headers["origin.bytes"], FAR_TOO_LARGE_BYTES.to_string());
    assert_eq!(letters[1].event.record.payload.len(), FAR_TOO_LARGE_BYTES);
    let published = seen(&world.topic("posts"), i32::from(SHARD), 2).await;
    assert_eq!([&published[0].key[..], &published[1].key], [b"first" as &[u8], b"last"]);
}
