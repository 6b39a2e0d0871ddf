//! How long a committed event takes until the log has acknowledged it, at a steady pace. Writers are sessions of their own: the
//! relay hears of their commits as it does of another pod's, by a NOTIFY every millisecond at the most.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chassis::Stop;
use proto::event::Topic;
use relay::Publisher;
use store::{
    Error,
    event_log::{AppendError, Consumer, EventLog, Record},
    ledger::dead_letters::NewLetter,
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_postgres::Client;

use super::{Bench, INSERT, events, insert, setting};

const WRITERS: usize = 4;
/// How often each of them commits.
const COMMIT_EVERY: Duration = Duration::from_millis(8);
/// As in the product.
const NOTIFY_EVERY: Duration = Duration::from_millis(1);
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

/// Events by their number, each with when its commit was answered, and when its append was.
struct Journal {
    events: Vec<Record>,
    committed: Vec<OnceLock<Instant>>,
    acknowledged: Vec<OnceLock<Instant>>,
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
    let nothing = || events.iter().map(|_| OnceLock::new()).collect();
    let (committed, acknowledged) = (nothing(), nothing());
    let (dirty, done) = (AtomicBool::default(), AtomicBool::default());
    let journal = Arc::new(Journal { events, committed, acknowledged, dirty, done });

    let mut stores = bench.stores.clone();
    stores.event_log = Arc::new(Noting { log: stores.event_log.clone(), journal: journal.clone() });
    let (stop, publisher) = (Stop::new(), Publisher::new("bench", &stores));
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
        tokio::join!(writing, tell(&bench.raw, &journal));
        journal.all_are_acknowledged().await;
        stop.cancel();
        begun
    };
    let (ended, begun) = tokio::join!(publisher.run(stop.clone()), run);
    ended.expect("the publisher ends well");
    let counted = begun + WARM_UP;
    let took = |(acknowledged, committed): (&OnceLock<Instant>, &OnceLock<Instant>)| {
        let committed = *committed.get().expect("a commit");
        let acknowledged = acknowledged.get().expect("an acknowledgement");
        (committed >= counted).then(|| acknowledged.saturating_duration_since(committed))
    };
    let mut took: Vec<_> = journal.acknowledged.iter().zip(&journal.committed).filter_map(took).collect();
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    Latency { events: took.len(), p50: at(0.5), p99: at(0.99), most: at(1.0) }
}

/// One writer's commits, in its own session.
async fn write(url: &str, journal: &Journal, writer: usize, each: usize) {
    let client = super::super::connect(url).await;
    let prepared = client.prepare(INSERT).await.expect("a statement");
    let mut due = interval(COMMIT_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for (chunk, events) in journal.events.chunks(each).enumerate().filter(|(chunk, _)| chunk % WRITERS == writer) {
        due.tick().await;
        insert(&client, &prepared, events).await;
        let now = Instant::now();
        for committed in &journal.committed[chunk * each..][..events.len()] {
            committed.set(now).expect("an event is committed once");
        }
        journal.dirty.store(true, Ordering::Release);
    }
}

/// Tells the relay of commits, one NOTIFY for many.
async fn tell(client: &Client, journal: &Journal) {
    let notify = client.prepare("SELECT pg_notify('freshet_outbox', 'bench')").await.expect("a statement");
    while !journal.done.load(Ordering::Acquire) || journal.dirty.load(Ordering::Acquire) {
        if journal.dirty.swap(false, Ordering::AcqRel) {
            client.execute(&notify, &[]).await.expect("a NOTIFY");
            sleep(NOTIFY_EVERY).await;
        } else {
            sleep(Duration::from_micros(200)).await;
        }
    }
}

impl Journal {
    async fn all_are_acknowledged(&self) {
        let all = async {
            while !self.acknowledged.iter().all(|at| at.get().is_some()) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(DEADLINE, all).await.expect("every event in time");
    }
}

/// The event log, which notes when it has acknowledged what.
struct Noting {
    log: Arc<dyn EventLog>,
    journal: Arc<Journal>,
}

#[async_trait]
impl EventLog for Noting {
    async fn append(&self, records: Vec<Record>) -> Result<(), AppendError> {
        // A mark has no key.
        let places: Vec<usize> = records.iter().filter_map(|record| record.key.parse().ok()).collect();
        self.log.append(records).await?;
        let now = Instant::now();
        for place in places {
            // What is sent again was acknowledged before.
            let _ = self.journal.acknowledged[place].set(now);
        }
        Ok(())
    }

    async fn join(&self, group: &'static str, topics: &[Topic]) -> Result<Box<dyn Consumer>, Error> {
        self.log.join(group, topics).await
    }

    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        self.log.bury(letter).await
    }
}
