//! How long a committed event takes to a consumer of the log, at a steady pace. Writers are sessions of their own: the relay
//! hears of their commits as it does of another pod's, by a NOTIFY every 2 ms at the most.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chassis::Stop;
use rdkafka::{
    ClientConfig, Message as _, Offset, TopicPartitionList,
    consumer::{Consumer as _, StreamConsumer},
};
use relay::Publisher;
use store::{event_log::Record, shard::SHARDS_DEFAULT};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_postgres::Client;

use super::{Bench, events, insert, setting};

const WRITERS: usize = 4;
/// How often each of them commits.
const COMMIT_EVERY: Duration = Duration::from_millis(8);
/// As in the product.
const NOTIFY_EVERY: Duration = Duration::from_millis(2);
/// What is not counted: connections are opened, plans are made.
const WARM_UP: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(20);
const DEADLINE: Duration = Duration::from_secs(60);

/// What the events of a run took.
pub(super) struct Latency {
    pub(super) events: usize,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
    pub(super) most: Duration,
}

/// Events by their number, each with when its commit was answered.
struct Journal {
    events: Vec<Record>,
    committed: Vec<OnceLock<Instant>>,
    dirty: AtomicBool,
    done: AtomicBool,
}

/// Commits events at this pace, and measures when they come.
pub(super) async fn measure(bench: &Bench, per_second: f64) -> Latency {
    let each = (per_second * COMMIT_EVERY.as_secs_f64() / WRITERS as f64).round().max(1.0) as usize;
    let commits = ((WARM_UP + MEASURED).as_millis() / COMMIT_EVERY.as_millis()) as usize;
    let mut events = events(each * commits * WRITERS);
    // Told apart by their place, which stands in the key; the partition stays the author's.
    events.iter_mut().enumerate().for_each(|(place, event)| event.key = place.to_string());
    let committed = events.iter().map(|_| OnceLock::new()).collect();
    let journal = Arc::new(Journal { events, committed, dirty: AtomicBool::default(), done: AtomicBool::default() });

    let consumer = consumer(bench);
    let (stop, publisher) = (Stop::new(), Publisher::new("bench", &bench.stores));
    let url = setting(&bench.settings, "stores.ledger");
    let run = async {
        // The shards are claimed and the connection that listens stands.
        sleep(WARM_UP).await;
        let begun = Instant::now();
        let writers = (0..WRITERS).map(|writer| write(url, &journal, writer, each));
        let writing = async {
            futures_util::future::join_all(writers).await;
            journal.done.store(true, Ordering::Release);
        };
        let (arrived, (), ()) =
            tokio::join!(arrivals(&consumer, journal.events.len()), writing, tell(&bench.raw, &journal));
        stop.cancel();
        (begun, arrived)
    };
    let (ended, (begun, arrived)) = tokio::join!(publisher.run(stop.clone()), run);
    ended.expect("the publisher ends well");
    let counted = begun + WARM_UP;
    let took = |(arrived, committed): (&Instant, &OnceLock<Instant>)| {
        let committed = *committed.get().expect("a commit");
        (committed >= counted).then(|| arrived.saturating_duration_since(committed))
    };
    let mut took: Vec<_> = arrived.iter().zip(&journal.committed).filter_map(took).collect();
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    Latency { events: took.len(), p50: at(0.5), p99: at(0.99), most: at(1.0) }
}

/// One writer's commits, in its own session.
async fn write(url: &str, journal: &Journal, writer: usize, each: usize) {
    let client = super::super::connect(url).await;
    let mut due = interval(COMMIT_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for (chunk, events) in journal.events.chunks(each).enumerate().filter(|(chunk, _)| chunk % WRITERS == writer) {
        due.tick().await;
        insert(&client, events).await;
        let now = Instant::now();
        for committed in &journal.committed[chunk * each..][..events.len()] {
            committed.set(now).expect("an event is committed once");
        }
        journal.dirty.store(true, Ordering::Release);
    }
}

/// Tells the relay of commits, one NOTIFY for many.
async fn tell(client: &Client, journal: &Journal) {
    while !journal.done.load(Ordering::Acquire) || journal.dirty.load(Ordering::Acquire) {
        if journal.dirty.swap(false, Ordering::AcqRel) {
            client.batch_execute("SELECT pg_notify('freshet_outbox', 'bench')").await.expect("a NOTIFY");
            sleep(NOTIFY_EVERY).await;
        } else {
            sleep(Duration::from_micros(200)).await;
        }
    }
}

/// Reads every partition from where it ends now.
fn consumer(bench: &Bench) -> StreamConsumer {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", bench.brokers())
        .set("group.id", "bench")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .create()
        .expect("a consumer");
    let mut partitions = TopicPartitionList::new();
    for partition in 0..SHARDS_DEFAULT {
        partitions.add_partition_offset(&bench.topic(), partition.into(), Offset::End).expect("a partition");
    }
    consumer.assign(&partitions).expect("an assignment");
    consumer
}

/// When each event came, in the order of their numbers.
async fn arrivals(consumer: &StreamConsumer, number: usize) -> Vec<Instant> {
    let mut arrived = vec![None; number];
    let mut missing = number;
    let reading = async {
        while missing > 0 {
            let message = consumer.recv().await.expect("a record");
            let place = message.key().and_then(|key| std::str::from_utf8(key).ok()?.parse::<usize>().ok());
            // A mark has no key; what comes again came before.
            if let Some(seen @ None) = place.map(|place| &mut arrived[place]) {
                *seen = Some(Instant::now());
                missing -= 1;
            }
        }
    };
    tokio::time::timeout(DEADLINE, reading).await.expect("every event in time");
    arrived.into_iter().map(|at| at.expect("it came")).collect()
}
