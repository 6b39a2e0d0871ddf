//! The event log: what every group and member is promised, in an SQLite table and on Kafka.

mod kafka_only;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{FutureExt as _, future::select_all};
use proto::event::{Topic, kind};
use store::{
    Config, Error, Shard,
    event_log::{Consumer, EventLog, Lane, RECORD_BYTES_MAX, Received, Record},
    ledger::Ledger,
    migrate::Mode,
};
use tempfile::TempDir;
use tests::{
    servers::{self, Adapter},
    wait::within,
};

const SHARDS: u16 = 4;
const GROUP: &str = "readers";

struct Opened {
    log: Arc<dyn EventLog>,
    config: Config,
    ledger: Ledger,
    _data: TempDir,
}

async fn open(adapter: Adapter) -> Option<Opened> {
    let data = tempfile::tempdir().expect("a folder");
    let config = servers::config(&servers::settings(&[adapter], data.path()).await?);
    config.migrate(Mode::Apply).await.expect("a migration");
    let parts = servers::parts();
    let ledger = config.open_ledger(&parts).await.expect("a ledger");
    let log = config.open_event_log(&parts, &ledger).await.expect("an event log");
    Some(Opened { log, config, ledger, _data: data })
}

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    kafka = tests::servers::Adapter::Kafka,
] {
    events_come_whole_and_in_order_a_partition,
    what_is_not_committed_is_given_again,
    what_is_committed_is_not_given_again,
    of_a_batch_that_is_left_only_what_is_done_is_committed,
    members_divide_the_partitions_and_take_over_from_one_who_leaves,
    each_group_gets_everything,
    a_late_commit_takes_nothing_back,
    a_paused_lane_gives_nothing_until_it_is_resumed_and_the_others_flow,
    a_lane_that_is_rewound_gives_its_events_again_and_begins_there_after_a_restart,
    a_large_batch_arrives_whole,
    a_record_as_large_as_can_be_arrives,
    what_stands_before_a_record_that_is_too_large_is_appended_and_nothing_behind_it,
    a_pod_that_drains_has_left_its_groups,
});

fn record(topic: Topic, partition: u16, key: &str) -> Record {
    Record {
        topic,
        partition: Shard(partition),
        key: key.to_owned(),
        kind: "post.created".to_owned(),
        payload: vec![0, 255, 10, 13].into(),
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
        epoch: 7,
    }
}

/// One event for each partition, all with this key.
fn round(key: &str) -> Vec<Record> {
    (0..SHARDS).map(|partition| record(Topic::Posts, partition, key)).collect()
}

type Place = (Topic, Shard, i64);

fn place(event: &Received) -> Place {
    (event.record.topic, event.record.partition, event.position)
}

/// Reads until there are so many different events, and commits nothing.
async fn read(member: &mut dyn Consumer, count: usize) -> BTreeMap<Place, Received> {
    within("events", async {
        let mut events = BTreeMap::new();
        while events.len() < count {
            events.extend(member.next().await.unwrap().into_iter().map(|event| (place(&event), event)));
        }
        events
    })
    .await
}

/// Says that these events are done, and commits that.
async fn finish<'a>(member: &mut dyn Consumer, events: impl IntoIterator<Item = &'a Received>) {
    for event in events {
        if let Some(turn) = member.turn(event.lane()) {
            member.done(event.lane(), turn, event.position);
        }
    }
    member.commit().await.unwrap();
}

fn in_order(events: &BTreeMap<Place, Received>) -> Vec<&str> {
    events.values().map(|event| event.record.key.as_str()).collect()
}

fn keys(events: &BTreeMap<Place, Received>) -> BTreeSet<&str> {
    events.values().map(|event| event.record.key.as_str()).collect()
}

/// Asserts that the group's next events are these alone.
async fn group_continues_with(log: &dyn EventLog, key: &str) {
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let events = read(&mut *member, usize::from(SHARDS)).await;
    assert_eq!(keys(&events), BTreeSet::from([key]));
    assert_eq!(events.len(), usize::from(SHARDS));
}

async fn of_a_batch_that_is_left_only_what_is_done_is_committed(Opened { log, .. }: Opened) {
    let numbered = |partition| (0..6).map(move |number| record(Topic::Posts, partition, &number.to_string()));
    log.append(numbered(0).chain(numbered(1)).chain(numbered(2)).collect()).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let events = read(&mut *member, 18).await;
    let of = |partition, key: &str| {
        let wanted = |event: &&Received| event.record.partition == Shard(partition) && event.record.key == key;
        events.values().find(wanted).expect("an event")
    };
    // All of lane 0, half of lane 1, nothing of lane 2.
    finish(&mut *member, [of(0, "5"), of(1, "2")]).await;
    drop(member);

    let mut next = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let rest = read(&mut *next, 9).await;
    let rest: Vec<_> = rest.values().map(|event| (event.record.partition.0, event.record.key.as_str())).collect();
    assert_eq!(rest, [(1, "3"), (1, "4"), (1, "5"), (2, "0"), (2, "1"), (2, "2"), (2, "3"), (2, "4"), (2, "5")]);
}

async fn events_come_whole_and_in_order_a_partition(Opened { log, .. }: Opened) {
    let mut sent = Vec::new();
    for number in 0..10 {
        for partition in 0..SHARDS {
            sent.push(record(Topic::Posts, partition, &format!("{number}")));
            sent.push(record(Topic::Graph, partition, &format!("{number}")));
        }
    }
    let bare =
        Record { kind: String::new(), traceparent: String::new(), payload: vec![].into(), epoch: 0, ..sent[0].clone() };
    sent.push(bare);
    // A topic that nobody here reads.
    log.append(vec![record(Topic::Likes, 0, "other")]).await.unwrap();
    for batch in sent.chunks(7) {
        log.append(batch.to_vec()).await.unwrap();
    }
    log.append(vec![]).await.unwrap();

    let mut member = log.join(GROUP, &[Topic::Posts, Topic::Graph]).await.unwrap();
    let received = read(&mut *member, sent.len()).await;
    for topic in [Topic::Posts, Topic::Graph] {
        for partition in (0..SHARDS).map(Shard) {
            let of = |record: &&Record| (record.topic, record.partition) == (topic, partition);
            let sent: Vec<_> = sent.iter().filter(of).collect();
            let received: Vec<_> = received.values().map(|event| &event.record).filter(of).collect();
            assert_eq!(received, sent);
        }
    }
}

async fn what_is_not_committed_is_given_again(Opened { log, .. }: Opened) {
    log.append(round("first")).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let given = read(&mut *member, usize::from(SHARDS)).await;
    drop(member);
    let mut next = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    assert_eq!(read(&mut *next, usize::from(SHARDS)).await, given);
}

async fn what_is_committed_is_not_given_again(Opened { log, .. }: Opened) {
    log.append(round("first")).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let given = read(&mut *member, usize::from(SHARDS)).await;
    finish(&mut *member, given.values()).await;
    // With nothing new, it changes nothing.
    member.commit().await.unwrap();
    drop(member);
    log.append(round("second")).await.unwrap();
    group_continues_with(&*log, "second").await;
}

/// Members who read at the same time, each committing what it got.
struct Members(Vec<Box<dyn Consumer>>);

impl Members {
    /// The events that one of them gets next, and whose they are.
    async fn next(&mut self) -> (usize, Vec<Received>) {
        let (events, member, _) =
            within("events of any member", select_all(self.0.iter_mut().map(|member| member.next()))).await;
        let events = events.unwrap();
        finish(&mut *self.0[member], &events).await;
        (member, events)
    }
}

async fn members_divide_the_partitions_and_take_over_from_one_who_leaves(Opened { log, .. }: Opened) {
    let mut members = Members(Vec::new());
    for _ in 0..2 {
        members.0.push(log.join(GROUP, &[Topic::Posts]).await.unwrap());
    }
    let (mut sent, mut received) = (0, BTreeSet::new());
    let mut owners = BTreeMap::new();
    // Rounds until each has partitions of its own.
    while owners.values().collect::<BTreeSet<_>>().len() < 2 {
        log.append(round("both")).await.unwrap();
        sent += usize::from(SHARDS);
        while received.len() < sent {
            let (member, events) = members.next().await;
            received.extend(events.iter().map(place));
            owners.extend(events.iter().map(|event| (event.record.partition, member)));
        }
        assert!(sent < 100_000, "one member keeps all partitions: {owners:?}");
    }
    assert_eq!(owners.len(), usize::from(SHARDS));

    drop(members.0.remove(0));
    log.append(round("one")).await.unwrap();
    sent += usize::from(SHARDS);
    while received.len() < sent {
        let (_, events) = members.next().await;
        received.extend(events.iter().map(place));
    }
}

async fn each_group_gets_everything(Opened { log, .. }: Opened) {
    let mut early = log.join("early", &[Topic::Posts]).await.unwrap();
    log.append(round("first")).await.unwrap();
    let given = read(&mut *early, usize::from(SHARDS)).await;
    finish(&mut *early, given.values()).await;
    let mut late = log.join("late", &[Topic::Posts]).await.unwrap();
    assert_eq!(read(&mut *late, usize::from(SHARDS)).await, given);
}

/// A member reads and does not commit; another takes over some of its partitions, goes further and commits. Then the first
/// commits too.
async fn a_late_commit_takes_nothing_back(Opened { log, .. }: Opened) {
    log.append(round("first")).await.unwrap();
    let mut slow = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let mut of_slow = read(&mut *slow, usize::from(SHARDS)).await;
    let mut quick = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let mut of_quick = BTreeMap::new();
    let moved = within("both members to have events of one partition", async {
        loop {
            tokio::select! {
                events = slow.next() => of_slow.extend(events.unwrap().into_iter().map(|event| (place(&event), event))),
                events = quick.next() => of_quick.extend(events.unwrap().into_iter().map(|event| (place(&event), event))),
            }
            if let Some(moved) = of_slow.keys().find(|place| of_quick.contains_key(*place)) {
                return *moved;
            }
            log.append(round("more")).await.unwrap();
        }
    })
    .await;
    log.append(vec![record(Topic::Posts, moved.1.0, "further")]).await.unwrap();
    while !of_quick.values().any(|event| event.record.key == "further") {
        of_quick.extend(read(&mut *quick, 1).await);
    }
    finish(&mut *quick, of_quick.values()).await;
    // It was received in a turn that is over, whatever is the slow one's now.
    for event in of_slow.values().filter(|event| event.record.partition == moved.1) {
        slow.done(event.lane(), 1, event.position);
    }
    slow.commit().await.unwrap();
    drop((slow, quick));
    let mut after = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    log.append(round("last")).await.unwrap();
    let mut given = BTreeMap::new();
    while given.values().filter(|event: &&Received| event.record.key == "last").count() < usize::from(SHARDS) {
        given.extend(read(&mut *after, 1).await);
    }
    let committed = of_quick.keys().filter(|(_, partition, _)| *partition == moved.1).max().expect("a place");
    let again: Vec<_> = given.keys().filter(|place| place.1 == moved.1 && *place <= committed).collect();
    assert_eq!(again, Vec::<&Place>::new(), "committed events of partition {} are given again", moved.1);
}

async fn a_paused_lane_gives_nothing_until_it_is_resumed_and_the_others_flow(Opened { log, .. }: Opened) {
    log.append(round("first")).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let first = read(&mut *member, usize::from(SHARDS)).await;
    let paused = Lane { topic: Topic::Posts, shard: Shard(2) };
    member.pause(paused).unwrap();
    log.append(round("second")).await.unwrap();
    let second = read(&mut *member, usize::from(SHARDS) - 1).await;
    assert!(second.values().all(|event| event.lane() != paused), "{second:?}");
    assert!(member.turn(paused).is_some(), "it stays the member's");
    member.resume(paused).unwrap();
    let rest = read(&mut *member, 1).await;
    assert_eq!(
        rest.values().map(|event| (event.lane(), event.record.key.as_str())).collect::<Vec<_>>(),
        [(paused, "second")]
    );
    finish(&mut *member, first.values().chain(second.values()).chain(rest.values())).await;
    drop(member);
    log.append(round("third")).await.unwrap();
    group_continues_with(&*log, "third").await;
}

async fn a_lane_that_is_rewound_gives_its_events_again_and_begins_there_after_a_restart(Opened { log, .. }: Opened) {
    let numbered = |partition| (0..6).map(move |number| record(Topic::Posts, partition, &number.to_string()));
    log.append(numbered(0).chain(numbered(1)).collect()).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let events = read(&mut *member, 12).await;
    finish(&mut *member, events.values()).await;
    let third = events.values().find(|event| event.record.partition == Shard(1) && event.record.key == "3").unwrap();
    let turn = member.turn(third.lane()).unwrap();

    member.rewind(third.lane(), third.position).await.unwrap();
    let again = read(&mut *member, 3).await;
    let told: Vec<_> = again.values().map(|event| (event.record.partition.0, event.record.key.as_str())).collect();
    assert_eq!(told, [(1, "3"), (1, "4"), (1, "5")]);
    member.done(third.lane(), turn, third.position - 1);
    member.commit().await.unwrap();
    drop(member);

    let mut next = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    assert_eq!(read(&mut *next, 3).await, again);
}

async fn a_large_batch_arrives_whole(Opened { log, .. }: Opened) {
    let batch: Vec<_> = (0..2000).map(|number| record(Topic::Posts, number % SHARDS, &number.to_string())).collect();
    log.append(batch).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let received = read(&mut *member, 2000).await;
    assert_eq!(keys(&received).len(), 2000);
    finish(&mut *member, received.values()).await;
}

/// A record of so many bytes in all.
fn sized(bytes: usize, key: &str) -> Record {
    let small = record(Topic::Posts, 0, key);
    let payload = vec![1; bytes - small.key.len() - small.traceparent.len()].into();
    Record { payload, ..small }
}

async fn a_record_as_large_as_can_be_arrives(Opened { log, .. }: Opened) {
    let large = sized(RECORD_BYTES_MAX, "large");
    log.append(vec![large.clone()]).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let received: Vec<_> = read(&mut *member, 1).await.into_values().map(|event| event.record).collect();
    assert!(received == [large], "it came changed");
}

async fn what_stands_before_a_record_that_is_too_large_is_appended_and_nothing_behind_it(Opened { log, .. }: Opened) {
    let small = |key| record(Topic::Posts, 0, key);
    let batch = vec![small("first"), small("second"), sized(RECORD_BYTES_MAX + 1, "large"), small("behind")];
    let failed = log.append(batch).await.unwrap_err();
    assert!(matches!((failed.acknowledged, &failed.cause), (2, Error::Refused { .. })), "{failed:?}");
    let alone = log.append(vec![sized(RECORD_BYTES_MAX + 1, "large")]).await.unwrap_err();
    assert!(matches!((alone.acknowledged, &alone.cause), (0, Error::Refused { .. })), "{alone:?}");

    log.append(vec![small("next")]).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    assert_eq!(in_order(&read(&mut *member, 3).await), ["first", "second", "next"]);
    assert!(member.next().now_or_never().is_none());
}

async fn a_pod_that_drains_has_left_its_groups(Opened { log, config, ledger, _data }: Opened) {
    log.append(round("first")).await.unwrap();
    let draining = servers::parts();
    let its_log = config.open_event_log(&draining, &ledger).await.unwrap();
    let mut member = its_log.join(GROUP, &[Topic::Posts]).await.unwrap();
    read(&mut *member, usize::from(SHARDS)).await;
    drop(member);
    assert_eq!(chassis::drain::drain(&draining.pod, tests::wait::DEADLINE).await, chassis::drain::Drained::Cleanly);
    assert_eq!(draining.pod.tasks.deaths(), Vec::<String>::new());
    let mut next = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    read(&mut *next, usize::from(SHARDS)).await;
}

/// What only the embedded log does: it would grow for ever by what nobody wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_mark_replaces_the_one_before_it_in_its_partition() {
    let Some(Opened { log, _data, .. }) = open(Adapter::Sqlite).await else { return };
    let mark = |partition, key| Record { kind: kind::MARK.to_owned(), ..record(Topic::Posts, partition, key) };
    let event = |key| record(Topic::Posts, 0, key);
    log.append(vec![event("a"), mark(0, "old"), mark(1, "other"), event("b")]).await.unwrap();
    log.append(vec![mark(0, "older")]).await.unwrap();
    log.append(vec![event("c"), mark(0, "new")]).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    let events = read(&mut *member, 5).await;
    assert_eq!(in_order(&events), ["a", "b", "c", "new", "other"]);
    assert!(member.next().now_or_never().is_none());
}
