//! The relay's publishing: how many events a second it moves from PostgreSQL to Kafka, beside what the bare client sends; and
//! how long a committed event takes until it is acknowledged. Its consuming is a part of its own.

pub(super) mod consume;
mod latency;
mod peer;
mod publish;

use std::time::Duration;

use chassis::{Clock as _, Pod, clock};
use prost::Message as _;
use proto::{
    EventId,
    event::Topic,
    freshet::event::v1::{Envelope, PostCreated, envelope::Payload},
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::{Shard, Stores, event_log::Record, migrate::Mode, shard::SHARDS_DEFAULT};
use tokio_postgres::{Client, Statement};

use super::{Goal, Report, median};
use crate::servers::{self, Adapter};

/// How many events a round publishes.
const EVENTS: usize = 200_000;
/// Rounds of publisher and bare client in turn; the median counts.
const ROUNDS: usize = 3;
const AUTHORS: usize = 5_000;
/// Either is good enough: so many events a second, or this part of what the bare client sends.
const PACE_LEAST: f64 = 20_000.0;
const PART_LEAST: f64 = 0.6;
const P50_MOST: Duration = Duration::from_millis(5);
const P99_MOST: Duration = Duration::from_millis(50);

/// Stores of the run's own, and a connection beside them.
struct Bench {
    settings: Vec<(&'static str, String)>,
    stores: Stores,
    pod: Pod,
    raw: Client,
}

/// Publishes in rounds, then measures latency at a quarter of that pace.
pub(super) async fn measure() -> Report {
    let bench = Bench::open(&[Adapter::Postgres, Adapter::Kafka]).await;
    let events = events(EVENTS);
    let (mut paces, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(peer::pace(&bench, &events).await);
        paces.push(publish::pace(&bench, &events).await);
    }
    let (pace, bare) = (median(paces), median(bare));
    let rate = pace / 4.0;
    let late = latency::measure(&bench, rate).await;
    let part = pace / bare;
    Report {
        goals: vec![
            Goal { name: "publish", ratio: (pace / PACE_LEAST).max(part / PART_LEAST), least: 1.0 },
            Goal { name: "latency-p50", ratio: P50_MOST.as_secs_f64() / late.p50.as_secs_f64(), least: 1.0 },
            Goal { name: "latency-p99", ratio: P99_MOST.as_secs_f64() / late.p99.as_secs_f64(), least: 1.0 },
        ],
        figures: vec![
            format!(
                "publish: {pace:.0} events/s from outbox rows to acknowledged and removed, {part:.2} of the bare client"
            ),
            format!("bare client: {bare:.0} events/s to acknowledged"),
            format!(
                "latency: {:.0} events/s committed, {} events, from the commit to the acknowledgement:",
                rate, late.events
            ),
            format!("latency: p50 {:.1?}, p99 {:.1?}, most {:.1?}", late.p50, late.p99, late.most),
        ],
    }
}

/// Posts as people write them, by many authors.
fn events(number: usize) -> Vec<Record> {
    let now_ms = clock::System.unix_ms();
    let id = |number: usize| ((now_ms - EPOCH_UNIX_MS) << (WRITER_BITS + SEQUENCE_BITS)) + number as i64;
    let event = |number: usize| {
        let author = id(number % AUTHORS);
        let payload = Payload::PostCreated(PostCreated {
            post_id: id(number).to_string(),
            author_id: author.to_string(),
            text: format!("{number}: {}", "a post of middling length, as most of them are ".repeat(3)),
            created_at_ms: now_ms,
            ..PostCreated::default()
        });
        let kind = payload.type_name().to_owned();
        let envelope = Envelope::new(EventId::new(id(number)).expect("an id"), now_ms, now_ms * 1000, payload);
        Record {
            topic: Topic::Posts,
            partition: Shard::of(&envelope.key, SHARDS_DEFAULT),
            key: envelope.key.clone(),
            kind,
            payload: envelope.encode_to_vec().into(),
            traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
            epoch: 1,
        }
    };
    (0..number).map(event).collect()
}

impl Bench {
    async fn open(adapters: &[Adapter]) -> Self {
        let unused = std::path::Path::new("unused");
        let mut settings = servers::settings(adapters, unused).await.expect("servers");
        // As many shards as an installation has that says nothing.
        settings.retain(|(key, _)| *key != "stores.shards");
        let config = servers::config(&settings);
        config.migrate(Mode::Apply).await.expect("prepared stores");
        let parts = servers::parts();
        let stores = Stores::open(&config, &parts).await.expect("stores");
        let raw = super::connect(setting(&settings, "stores.ledger")).await;
        Self { settings, stores, pod: parts.pod, raw }
    }

    fn brokers(&self) -> &str {
        setting(&self.settings, "stores.events").trim_start_matches("kafka://")
    }

    fn topic(&self) -> String {
        format!("{}.{}", setting(&self.settings, "stores.namespace"), Topic::Posts.name())
    }
}

fn setting<'a>(settings: &'a [(&'static str, String)], key: &str) -> &'a str {
    &settings.iter().find(|(name, _)| *name == key).expect("a setting").1
}

/// Takes shards, keys, payloads, a trace and the time.
const INSERT: &str = "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
    SELECT shard, 'posts', key, 'post.created', payload, $4, $5 \
    FROM unnest($1::BIGINT[], $2::TEXT[], $3::BYTEA[]) AS events (shard, key, payload)";

/// Writes events into the outbox, in one transaction, by [`INSERT`].
async fn insert(client: &Client, prepared: &Statement, events: &[Record]) {
    let shards: Vec<_> = events.iter().map(|event| i64::from(event.partition.0)).collect();
    let keys: Vec<_> = events.iter().map(|event| event.key.as_str()).collect();
    let payloads: Vec<_> = events.iter().map(|event| event.payload.as_ref()).collect();
    let (traceparent, now_ms) = (&events[0].traceparent, clock::System.unix_ms());
    client.execute(prepared, &[&shards, &keys, &payloads, traceparent, &now_ms]).await.expect("rows");
}
