//! What can never be applied, and what only may: a bad event holds up nobody but its own key, and comes back in order when
//! somebody drives it again; a store that is away holds up its lanes, and nothing is dropped.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chassis::{Pod, Stop};
use prost::Message as _;
use proto::{
    EventId,
    event::Topic,
    freshet::event::v1::{Envelope, Liked, PostCreated, envelope::Payload},
};
use store::{
    Error, Shard,
    archive::ArchivedPost,
    consumer::{Consumption, Event, Failure, Group, Handler, Handlers},
    event_log::Record,
    ledger::dead_letters::{Cause, Filter},
    sets::Entry,
};
use tests::{Person, Pods, Sandbox, wait};
use tokio::{task::JoinHandle, time::Instant};

const SHARDS: u16 = 4;
const SETTINGS: [(&str, &str); 1] = [("stores.shards", "4")];
/// Kinds of events that only these tests know.
const SAID: &str = "test.said";

/// A record of the posts topic, in the lane of its key.
fn record(key: &str, kind: &str, payload: Vec<u8>) -> Record {
    Record {
        topic: Topic::Posts,
        partition: Shard::of(key, SHARDS),
        key: key.to_owned(),
        kind: kind.to_owned(),
        payload: payload.into(),
        traceparent: String::new(),
        epoch: 1,
    }
}

/// An event with a text, of any type.
fn said(key: &str, kind: &str, text: &str) -> Record {
    let payload = Payload::PostCreated(PostCreated { text: text.to_owned(), ..PostCreated::default() });
    let envelope = Envelope {
        r#type: kind.to_owned(),
        key: key.to_owned(),
        ..Envelope::new(EventId::new(1).unwrap(), 0, 1, payload)
    };
    record(key, kind, envelope.encode_to_vec())
}

/// Remembers what it was given, a key at a time, and does as it is told.
#[derive(Default)]
struct Listener {
    heard: Mutex<HashMap<String, Vec<String>>>,
    refuses: AtomicBool,
    panics: AtomicBool,
    is_away: AtomicBool,
}

impl Listener {
    fn heard(&self, key: &str) -> Vec<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned().unwrap_or_default()
    }

    async fn hears(&self, key: &str, texts: &[&str]) {
        wait::until(&format!("{texts:?} of {key}"), async || (self.heard(key) == texts).then_some(())).await;
    }
}

#[async_trait]
impl Handler for Listener {
    async fn apply(&self, events: &[Event], _: Instant) -> Result<(), Failure> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(Error::Unavailable { store: "the test", cause: "gone fishing".into() }.into());
        }
        let text = |event: &Event| match &event.envelope.payload {
            Some(Payload::PostCreated(said)) => said.text.clone(),
            _ => String::new(),
        };
        let is_bad = |event: &Event| text(event).starts_with("bad");
        if events.iter().any(is_bad) {
            assert!(!self.panics.load(Ordering::SeqCst), "as it was told");
            if self.refuses.load(Ordering::SeqCst) {
                return Err(Failure::Final("it is bad".into()));
            }
        }
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            heard.entry(event.envelope.key.clone()).or_default().push(text(event));
        }
        Ok(())
    }
}

/// A consumer of the test's own, on the stores of a sandbox.
struct Running {
    pod: Pod,
    stop: Stop,
    task: JoinHandle<Result<(), Error>>,
}

impl Running {
    fn start(world: &Sandbox, handlers: Handlers) -> Self {
        static TOPICS: [Topic; 1] = [Topic::Posts];
        let pod = Pod::new("listener");
        let consumption = Consumption::on(&pod, world.stores(), Group::new("listeners", &TOPICS, handlers));
        let stop = Stop::new();
        let stopping = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
        let task = tokio::spawn(async move { consumption.run(stopping).await });
        Self { pod, stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic").expect("no error");
    }
}

/// Stores without pods: whatever is in the log is the test's own.
async fn quiet() -> Sandbox {
    Sandbox::with_settings(Pods { timeline: 0, relay: 0, ranking: 0, edge: 0 }, &SETTINGS).await
}

async fn letters(world: &Sandbox) -> Vec<(String, Cause, u32)> {
    let page = world.stores().ledger.dead_letters.page(&Filter::default(), 0, 100).await.expect("letters");
    page.into_iter().map(|letter| (letter.event.record.key, letter.cause, letter.attempts)).collect()
}

async fn letters_are(world: &Sandbox, wanted: &[(&str, Cause)]) {
    wait::until(&format!("the letters {wanted:?}"), async || {
        let found = letters(world).await;
        let found: Vec<_> = found.iter().map(|(key, cause, _)| (key.as_str(), *cause)).collect();
        (found == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_event_holds_up_its_key_alone_and_comes_back_in_order() {
    let world = quiet().await;
    let (log, ledger) = (&world.stores().event_log, &world.stores().ledger.dead_letters);
    let listener = Arc::new(Listener::default());
    listener.refuses.store(true, Ordering::SeqCst);
    let running = Running::start(&world, Handlers::default().on(SAID, listener.clone()));

    // Ten keys share the lane of the first, so that they are in one batch with the bad one.
    let neighbours: Vec<_> = (0..)
        .map(|n: u32| format!("n{n}"))
        .filter(|key| Shard::of(key, SHARDS) == Shard::of("k", SHARDS))
        .take(10)
        .collect();
    let mut records = vec![said("k", SAID, "good"), said("k", SAID, "bad"), said("k", SAID, "two")];
    records.extend(neighbours.iter().map(|key| said(key, SAID, "hello")));
    records.push(said("k", SAID, "three"));
    log.append(records).await.unwrap();
    for key in &neighbours {
        listener.hears(key, &["hello"]).await;
    }
    let aside = [("k", Cause::BrokenRule), ("k", Cause::Parked), ("k", Cause::Parked)];
    letters_are(&world, &aside).await;
    listener.hears("k", &["good"]).await;

    // Driven again while it is still bad, it stays, and so does what waits behind it.
    ledger.redrive(&Filter { key: Some("k".into()), ..Filter::default() }, "ada").await.unwrap();
    wait::until("a second try", async || {
        letters(&world).await.contains(&("k".into(), Cause::BrokenRule, 2)).then_some(())
    })
    .await;
    letters_are(&world, &aside).await;

    listener.refuses.store(false, Ordering::SeqCst);
    for _ in 0..2 {
        ledger.redrive(&Filter { cause: Some(Cause::BrokenRule), ..Filter::default() }, "ada").await.unwrap();
    }
    letters_are(&world, &[]).await;
    log.append(vec![said("k", SAID, "four")]).await.unwrap();
    listener.hears("k", &["good", "bad", "two", "three", "four"]).await;
    let audit = ledger.audit(10).await.unwrap();
    assert!(audit.len() == 3 && audit.iter().all(|line| line.who == "ada"), "{audit:?}");
    assert!(audit[0].what.contains("redrive --cause broken_rule"), "{audit:?}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_behind_a_discarded_letter_goes_on_also_by_another_pod() {
    let world = quiet().await;
    let (log, ledger) = (&world.stores().event_log, &world.stores().ledger.dead_letters);
    let listener = Arc::new(Listener::default());
    let handlers = || Handlers::default().on(SAID, listener.clone());
    listener.refuses.store(true, Ordering::SeqCst);
    let first = Running::start(&world, handlers());
    log.append(vec![said("k", SAID, "bad"), said("k", SAID, "two")]).await.unwrap();
    letters_are(&world, &[("k", Cause::BrokenRule), ("k", Cause::Parked)]).await;
    first.end().await;

    // Another pod knows that the key waits.
    let second = Running::start(&world, handlers());
    log.append(vec![said("k", SAID, "three"), said("other", SAID, "hello")]).await.unwrap();
    listener.hears("other", &["hello"]).await;
    letters_are(&world, &[("k", Cause::BrokenRule), ("k", Cause::Parked), ("k", Cause::Parked)]).await;

    let discarded =
        ledger.discard(&Filter { cause: Some(Cause::BrokenRule), ..Filter::default() }, "ada").await.unwrap();
    assert_eq!((discarded.matched, discarded.followers), (1, 2));
    listener.hears("k", &["two", "three"]).await;
    letters_are(&world, &[]).await;
    log.append(vec![said("k", SAID, "four")]).await.unwrap();
    listener.hears("k", &["two", "three", "four"]).await;
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_that_an_older_release_does_not_know_is_applied_by_the_next_one() {
    let world = quiet().await;
    let log = &world.stores().event_log;
    let listener = Arc::new(Listener::default());
    let older = Running::start(&world, Handlers::default().on(SAID, listener.clone()));
    let events = [("k", SAID, "one"), ("k", "test.whispered", "two"), ("k", SAID, "three"), ("j", SAID, "hello")];
    log.append(events.map(|(key, kind, text)| said(key, kind, text)).to_vec()).await.unwrap();
    listener.hears("j", &["hello"]).await;
    letters_are(&world, &[("k", Cause::UnknownType), ("k", Cause::Parked)]).await;
    older.end().await;

    let newer =
        Running::start(&world, Handlers::default().on(SAID, listener.clone()).on("test.whispered", listener.clone()));
    listener.hears("k", &["one", "two", "three"]).await;
    letters_are(&world, &[]).await;
    newer.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_and_a_handler_that_panics_become_dead_letters_at_once() {
    let world = quiet().await;
    let listener = Arc::new(Listener::default());
    listener.panics.store(true, Ordering::SeqCst);
    let running = Running::start(&world, Handlers::default().on(SAID, listener.clone()));
    let nonsense = [record("a", SAID, vec![0xFF; 7]), said("b", SAID, "bad"), record("", "", Vec::new())];
    world.stores().event_log.append(nonsense.to_vec()).await.unwrap();
    world.stores().event_log.append(vec![said("a", SAID, "after"), said("c", SAID, "fine")]).await.unwrap();
    listener.hears("c", &["fine"]).await;
    wait::until("four letters", async || {
        let mut found = letters(&world).await;
        found.sort();
        let expected =
            [("", Cause::UnknownType), ("a", Cause::Undecodable), ("a", Cause::Parked), ("b", Cause::BrokenRule)];
        let expected: Vec<_> = expected.iter().map(|(key, cause)| ((*key).to_owned(), *cause, 1)).collect();
        (found == expected).then_some(())
    })
    .await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_sink_is_away_its_lanes_wait_and_health_says_why() {
    let world = quiet().await;
    let log = &world.stores().event_log;
    let [away, there] = [(); 2].map(|()| Arc::new(Listener::default()));
    away.is_away.store(true, Ordering::SeqCst);
    let handlers = Handlers::default().on(SAID, away.clone()).on("test.sung", there.clone());
    let running = Running::start(&world, handlers);
    let other =
        (0..).map(|n: u32| format!("o{n}")).find(|key| Shard::of(key, SHARDS) != Shard::of("k", SHARDS)).unwrap();
    let many: Vec<_> = (0..3000).map(|number| said("k", SAID, &number.to_string())).collect();
    log.append(many).await.unwrap();
    log.append(vec![said(&other, "test.sung", "la")]).await.unwrap();
    there.hears(&other, &["la"]).await;
    let lane = format!("listeners posts/{}", Shard::of("k", SHARDS));
    wait::until("a degraded pod", async || {
        let troubles = running.pod.health.troubles();
        troubles.iter().any(|(part, cause)| *part == lane && cause.contains("gone fishing")).then_some(())
    })
    .await;
    assert_eq!(letters(&world).await, []);

    away.is_away.store(false, Ordering::SeqCst);
    wait::until("all of it", async || (away.heard("k").len() >= 3000).then_some(())).await;
    let expected: Vec<_> = (0..3000).map(|number: u32| number.to_string()).collect();
    assert_eq!(away.heard("k"), expected);
    wait::until("a pod that is well", async || running.pod.health.troubles().is_empty().then_some(())).await;
    running.end().await;
}

/// The whole product: a bad event of an author holds up that author's posts alone, and when it is discarded they arrive.
#[tokio::test(flavor = "multi_thread")]
async fn readers_lose_nothing_when_an_author_has_a_bad_event() {
    let world = Sandbox::with_settings(Pods::ONE, &SETTINGS).await;
    world.expect_error("is a dead letter");
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    ada.follow(&lin).await;
    ada.follow(&max).await;
    let before = lin.post("before").await;
    ada.home_shows(&[&before]).await;
    // A home that is built anew shows it before it is published.
    world.outbox_is_empty().await;

    let author = lin.id.to_string();
    let broken = Payload::Liked(Liked { post_id: "nonsense".into(), ..Liked::default() });
    let envelope = Envelope {
        r#type: "post.created".into(),
        key: author.clone(),
        ..Envelope::new(EventId::new(1).unwrap(), 0, 1, broken)
    };
    world.stores().event_log.append(vec![record(&author, "post.created", envelope.encode_to_vec())]).await.unwrap();
    letters_are(&world, &[(&author, Cause::BrokenRule)]).await;
    let late = lin.post("late").await;
    let flows = max.post("flows").await;
    letters_are(&world, &[(&author, Cause::BrokenRule), (&author, Cause::Parked)]).await;
    ada.home_shows(&[&flows, &before]).await;

    let letters = &world.stores().ledger.dead_letters;
    letters.discard(&Filter { cause: Some(Cause::BrokenRule), ..Filter::default() }, "the operator").await.unwrap();
    ada.home_shows(&[&flows, &late, &before]).await;
}

/// What readers can see of everything: homes to their ends, authors' newest posts, the archive.
async fn everything(world: &Sandbox, people: &[&Person]) -> Vec<(Vec<String>, Vec<Entry>, Vec<ArchivedPost>)> {
    let (sets, archive) = (&world.stores().sets, &world.stores().archive);
    let mut seen = Vec::new();
    for person in people {
        let home = person.scrolls_home(200).await;
        let recent = sets.recents.newest(person.id, 1000).await.expect("recents");
        let posts = archive.posts_by_author.page(person.id, None, 1000).await.expect("posts");
        seen.push((home, recent, posts));
    }
    seen
}

/// Sets a group back to the first event of every lane.
async fn set_back(world: &Sandbox, group: &'static str, topics: &[Topic]) {
    let mut member = world.stores().event_log.join(group, topics).await.expect("a member");
    wait::until("all lanes", async || {
        // Lanes come only while somebody waits for events.
        _ = tokio::time::timeout(Duration::from_millis(100), member.next()).await;
        (member.lanes().len() == usize::from(SHARDS) * topics.len()).then_some(())
    })
    .await;
    for (lane, turn) in member.lanes() {
        member.rewind(lane, 0).await.expect("the beginning");
        member.done(lane, turn, -1);
    }
    member.commit().await.expect("a commit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_from_the_first_event_changes_nothing() {
    let mut world = Sandbox::with_settings(Pods::ONE, &SETTINGS).await;
    world.expect_error("is a dead letter");
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    ada.follow(&lin).await;
    ada.follow(&max).await;
    ada.home_shows(&[]).await;
    let mut stream = ada.stream().await;
    let mut posts = Vec::new();
    // More than a home holds, so that some of them lie below its coverage.
    for number in 0..150 {
        posts.push(lin.post(&format!("post {number}")).await);
    }
    max.follow(&lin).await;
    lin.follow(&max).await;
    posts.push(max.post("hello").await);
    let shown: Vec<_> = posts.iter().rev().collect();
    ada.home_shows(&shown).await;
    max.home_shows(&shown[1..]).await;
    lin.home_shows(&shown[..1]).await;
    // What each author wrote comes in order; the two of them in any.
    for _ in &posts {
        stream.next().await.expect("a post");
    }

    world.stop("relay").await;
    let before = everything(&world, &[&ada, &lin, &max]).await;
    let topics = [Topic::Posts, Topic::Graph];
    set_back(&world, "relay", &topics).await;
    // Behind everything in each lane, something that cannot be applied: when it is put aside, the lane was replayed.
    let ends: Vec<_> = (0..SHARDS)
        .flat_map(|shard| topics.map(|topic| (topic, Shard(shard))))
        .map(|(topic, partition)| Record {
            topic,
            partition,
            ..said(&format!("{topic:?} {partition}"), SAID, "the end")
        })
        .collect();
    world.stores().event_log.append(ends.clone()).await.unwrap();
    world.add_relay().await;
    wait::until("the replay", async || (letters(&world).await.len() == ends.len()).then_some(())).await;
    assert!(everything(&world, &[&ada, &lin, &max]).await == before, "a replay changed what readers see");
    // The pod that holds the stream is told again what it was told before, and the reader is not.
    let new = lin.post("new").await;
    stream.shows_next(&new).await;
}
