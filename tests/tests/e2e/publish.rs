//! From the outbox to the event log: what is sent again, what is put aside.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use chassis::Stop;
use proto::event::{self, Topic};
use relay::Publisher;
use store::{
    Error, Stores,
    event_log::{AppendError, Consumer, EventLog, Record},
    ledger::dead_letters::{DeadLetters, Filter, NewLetter},
};
use tempfile::TempDir;
use tests::{
    Sandbox,
    servers::{self, Adapter},
    sql::Sql,
    wait,
};

/// A log that acknowledges only so many records of each of the next batches, and all of those after. Marks pass.
struct Halting {
    log: Arc<dyn EventLog>,
    acknowledges: Mutex<VecDeque<usize>>,
    /// The keys of each batch that it was given.
    given: Mutex<Vec<Vec<String>>>,
}

#[async_trait]
impl EventLog for Halting {
    async fn append(&self, mut records: Vec<Record>) -> Result<(), AppendError> {
        if records.iter().all(|record| record.kind == event::kind::MARK) {
            return self.log.append(records).await;
        }
        self.given.lock().unwrap().push(records.iter().map(|record| record.key.clone()).collect());
        let acknowledged = self.acknowledges.lock().unwrap().pop_front().unwrap_or(records.len());
        let halted = acknowledged < records.len();
        records.truncate(acknowledged);
        self.log.append(records).await?;
        if !halted {
            return Ok(());
        }
        Err(AppendError { acknowledged, cause: Error::Unavailable { store: "the log", cause: "it halts".into() } })
    }

    async fn join(&self, group: &'static str, topics: &[Topic]) -> Result<Box<dyn Consumer>, Error> {
        self.log.join(group, topics).await
    }

    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        self.log.bury(letter).await
    }
}

/// Embedded stores, and where their ledger is.
async fn embedded(folder: &TempDir) -> (Stores, String) {
    let settings = servers::settings(&[Adapter::Sqlite], folder.path()).await.expect("embedded stores");
    let url = settings.iter().find(|(key, _)| *key == "stores.ledger").expect("a ledger").1.clone();
    (Stores::open(&servers::config(&settings), &servers::parts()).await.unwrap(), url)
}

/// Publishes until nothing waits.
async fn publish_all(stores: &Stores) {
    let (stop, publisher) = (Stop::new(), Publisher::new("relay", stores));
    let until_published = async {
        let outbox = &stores.ledger.outbox;
        wait::until("an empty outbox", async || (outbox.backlog().await.unwrap() == 0).then_some(())).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(publisher.run(stop.clone()), until_published);
    ended.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_taken_away_and_the_rest_is_sent_again_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut stores, url) = embedded(&folder).await;
    let log = Arc::new(Halting {
        log: stores.event_log.clone(),
        acknowledges: Mutex::new([2, 0, 1].into()),
        given: Mutex::default(),
    });
    stores.event_log = log.clone();
    let row = |number| format!("(3, 'posts', '{number}', 'post.created', X'', '', 0)");
    let rows: Vec<_> = (0..6).map(row).collect();
    let insert = "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms)";
    Sql::connect(&url).await.run(&format!("{insert} VALUES {}", rows.join(", "))).await;
    publish_all(&stores).await;
    assert_eq!(
        *log.given.lock().unwrap(),
        [&["0", "1", "2", "3", "4", "5"][..], &["2", "3", "4", "5"], &["2", "3", "4", "5"], &["3", "4", "5"]]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_log_refuses_is_put_aside_and_holds_up_nobody() {
    let mut world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    world.outbox_is_empty().await;
    world.stop("relay").await;
    let before = lin.post("before").await;
    let mut sql = world.sql().await;
    // Of the same key, and so between the two posts in one batch.
    let payload = match sql {
        Sql::Sqlite(_) => "zeroblob(900001)",
        Sql::Postgres(_) => "decode(repeat('00', 900001), 'hex')",
    };
    sql.run(&format!(
        "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
         SELECT shard, topic, key, 'post.created', {payload}, traceparent, created_at_ms FROM outbox"
    ))
    .await;
    let after = lin.post("after").await;
    assert_eq!(world.stores().ledger.outbox.backlog().await.unwrap(), 3);

    world.expect_error("is put aside, the event log refuses it for good");
    world.add_relay().await;
    ada.home_shows(&[&after, &before]).await;
    world.outbox_is_empty().await;
    let letters = sql.texts("SELECT cause || ' ' || type || ' ' || key || ' ' || error FROM dead_letters").await;
    let expected = format!("refused post.created {} it has 9000", lin.id);
    assert!(letters.len() == 1 && letters[0].starts_with(&expected), "{letters:?}");
}

/// A log that takes copies of dead letters only at the third try, and never after the ledger has the letter.
struct Copying {
    log: Arc<dyn EventLog>,
    letters: Arc<dyn DeadLetters>,
    copied: Mutex<Vec<String>>,
}

#[async_trait]
impl EventLog for Copying {
    async fn append(&self, records: Vec<Record>) -> Result<(), AppendError> {
        self.log.append(records).await
    }

    async fn join(&self, group: &'static str, topics: &[Topic]) -> Result<Box<dyn Consumer>, Error> {
        self.log.join(group, topics).await
    }

    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        let (all, _) = self.letters.count(&Filter::default()).await?;
        assert_eq!(all, 0, "who dies here leaves a letter without a copy");
        let mut copied = self.copied.lock().unwrap();
        copied.push(letter.event.record.key.clone());
        if copied.len() < 3 {
            return Err(Error::Unavailable { store: "the log", cause: "it is away".into() });
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_the_log_refuses_waits_until_it_is_copied() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut stores, url) = embedded(&folder).await;
    let letters = stores.ledger.dead_letters.clone();
    let log = Arc::new(Copying { log: stores.event_log.clone(), letters: letters.clone(), copied: Mutex::default() });
    stores.event_log = log.clone();
    let insert = "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms)";
    let rows =
        "(3, 'posts', 'large', 'post.created', zeroblob(900001), '', 0), (3, 'posts', 'k', 'post.created', X'', '', 0)";
    Sql::connect(&url).await.run(&format!("{insert} VALUES {rows}")).await;
    publish_all(&stores).await;

    assert_eq!(*log.copied.lock().unwrap(), ["large"; 3]);
    let kept = letters.page(&Filter::default(), 0, 10).await.unwrap();
    assert!(kept.len() == 1 && kept[0].event.record.key == "large", "{kept:?}");
}
