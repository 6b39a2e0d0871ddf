//! The outbox.

use std::time::Duration;

use store::{
    Shard,
    ledger::{Lease, OutboxRow, Read, ReadFrom, Share},
};
use tests::{sql::Sql, wait};

use super::{SHARDS, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    rows_wait_in_order_until_they_are_removed,
    many_shards_are_read_at_once_without_what_the_reader_has,
    nothing_is_decided_that_could_still_come_or_come_back,
    a_lease_that_ran_out_removes_nothing,
    a_lease_of_an_earlier_epoch_removes_nothing,
    a_refused_row_becomes_a_dead_letter_under_the_lease,
    a_key_has_one_shard,
    a_commit_wakes_and_no_change_does_not,
});

const LONG: Duration = Duration::from_secs(60);

async fn lease(world: &World, owner: &str, ttl: Duration, shard: Shard) -> Lease {
    let leases = world.ledger.shard_leases.claim(owner, ttl, Share::ALL).await.unwrap();
    leases.into_iter().find(|lease| lease.shard == shard).expect("the shard")
}

async fn rows_wait_in_order_until_they_are_removed(world: World) {
    let outbox = &world.ledger.outbox;
    assert_eq!((outbox.backlog().await.unwrap(), world.waiting().await), (0, vec![]));
    let ada = world.people(1).await[0];
    for number in 0..5 {
        world.post(ada, &format!("post {number}")).await.unwrap();
    }
    // All have the key of the author, and so one shard.
    let waiting = world.waiting().await;
    assert_eq!((outbox.backlog().await.unwrap(), waiting.len()), (6, 1));
    let shard = waiting[0];
    let rows = outbox.oldest(shard, 100).await.unwrap();
    let kinds: Vec<_> = rows.iter().map(|row| row.kind.as_str()).collect();
    assert_eq!(kinds, [&["user.created"][..], &["post.created"; 5]].concat());
    assert!(rows.is_sorted_by_key(|row| row.id));
    assert_eq!(outbox.oldest(shard, 2).await.unwrap(), rows[..2]);

    let lease = lease(&world, "relay", LONG, shard).await;
    let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
    assert!(outbox.remove(&lease, &ids[..4]).await.unwrap());
    assert_eq!(outbox.oldest(shard, 100).await.unwrap(), rows[4..]);
    // What is gone already is no obstacle, nor is nothing.
    assert!(outbox.remove(&lease, &ids).await.unwrap());
    assert!(outbox.remove(&lease, &[]).await.unwrap());
    assert_eq!((outbox.backlog().await.unwrap(), world.waiting().await), (0, vec![]));
}

async fn many_shards_are_read_at_once_without_what_the_reader_has(world: World) {
    world.people(20).await;
    let (outbox, shards, all) = (&world.ledger.outbox, world.waiting().await, world.rows().await);
    assert!(shards.len() > 1 && all.len() == 20, "{shards:?}");
    assert!(all.is_sorted_by_key(|row| (row.shard, row.id)));
    let of = |shard: Shard| all.iter().filter(move |row| row.shard == shard);

    // So many of each, and of those only that are asked for.
    let read = async |from: &[ReadFrom], limit, had: &[i64]| outbox.read(from, limit, had).await.unwrap().rows;
    let begin: Vec<_> = shards.iter().map(|shard| ReadFrom::the_first(*shard)).collect();
    let first: Vec<_> = shards.iter().flat_map(|shard| of(*shard).next().cloned()).collect();
    assert_eq!(read(&begin, 1, &[]).await, first);
    assert_eq!(read(&begin[1..2], 1, &[]).await, first[1..2]);
    assert_eq!(read(&[], 1, &[]).await, []);

    let rest: Vec<_> = shards.iter().flat_map(|shard| of(*shard).skip(1)).cloned().collect();
    let had: Vec<_> = first.iter().map(|row| row.id).collect();
    assert_eq!(read(&begin, 100, &had).await, rest);
    let behind = |row: &OutboxRow| ReadFrom { shard: row.shard, after: row.id, kept: Some(row.id) };
    assert_eq!(read(&first.iter().map(behind).collect::<Vec<_>>(), 100, &[]).await, rest);
    // What the reader gives back is there again.
    assert_eq!(read(&begin, 100, &[]).await, all);
}

/// A reader that goes on behind what it was told is decided misses nothing, and what it has not removed is not forgotten.
async fn nothing_is_decided_that_could_still_come_or_come_back(world: World) {
    let ada = world.people(1).await[0];
    let shard = world.waiting().await[0];
    let (outbox, lease) = (&world.ledger.outbox, lease(&world, "relay", LONG, shard).await);
    for number in 0..10 {
        world.post(ada, &format!("post {number}")).await.unwrap();
        let Read { rows, decided } = outbox.read(&[ReadFrom::the_first(shard)], 100, &[]).await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        let last = ids[ids.len() - 1];
        assert!(decided <= last, "{decided} is decided, {last} is the last row");
        // One row stays in hand, the others are removed.
        assert!(outbox.remove(&lease, &ids[1..]).await.unwrap());
        let on = ReadFrom { shard, after: decided, kept: Some(ids[0]).filter(|id| *id <= decided) };
        assert_eq!(outbox.read(&[on], 100, &ids).await.unwrap().rows, []);
        assert_eq!(outbox.oldest(shard, 100).await.unwrap(), rows[..1]);
    }
}

async fn a_lease_that_ran_out_removes_nothing(world: World) {
    world.people(1).await;
    let rows = world.rows().await;
    let shard = world.waiting().await[0];
    let lease = lease(&world, "relay", Duration::ZERO, shard).await;
    assert!(!world.ledger.outbox.remove(&lease, &[rows[0].id]).await.unwrap());
    assert_eq!(world.rows().await, rows);
}

async fn a_lease_of_an_earlier_epoch_removes_nothing(world: World) {
    world.people(1).await;
    let rows = world.rows().await;
    let shard = world.waiting().await[0];
    let old = lease(&world, "relay", LONG, shard).await;
    world.ledger.shard_leases.release("relay").await.unwrap();
    let new = lease(&world, "relay", LONG, shard).await;
    let stranger = Lease { owner: "another".into(), ..new.clone() };
    for lost in [&old, &stranger] {
        assert!(!world.ledger.outbox.remove(lost, &[rows[0].id]).await.unwrap());
        assert_eq!(world.rows().await, rows);
    }
    assert!(world.ledger.outbox.remove(&new, &[rows[0].id]).await.unwrap());
}

/// All dead letters, a line each, with the letters of their payloads counted.
async fn dead_letters(world: &World) -> Vec<String> {
    let mut sql = Sql::connect(&world.url).await;
    let columns = [
        "consumer_group",
        "topic",
        "shard",
        "position",
        "key",
        "type",
        "length(payload)",
        "traceparent",
        "epoch",
        "logged_at_ms",
        "cause",
        "error",
        "attempts",
        "pod",
        "release",
    ];
    let columns: Vec<_> = columns.iter().map(|column| format!("CAST({column} AS TEXT)")).collect();
    sql.texts(&format!("SELECT {} FROM dead_letters ORDER BY id", columns.join(" || '|' || "))).await
}

async fn a_refused_row_becomes_a_dead_letter_under_the_lease(world: World) {
    world.people(1).await;
    let (shard, rows) = (world.waiting().await[0], world.rows().await);
    let row = &rows[0];
    let old = lease(&world, "relay", LONG, shard).await;
    world.ledger.shard_leases.release("relay").await.unwrap();
    let now = lease(&world, "relay-2", LONG, shard).await;
    let created = "SELECT CAST(created_at_ms AS TEXT) FROM outbox";
    let created_at_ms = Sql::connect(&world.url).await.texts(created).await.remove(0);

    assert!(!world.ledger.outbox.bury(&old, row.id, "too large").await.unwrap());
    assert_eq!((world.rows().await, dead_letters(&world).await.len()), (rows.clone(), 0));

    // Again, because whoever does not hear the answer says it again.
    for _ in 0..2 {
        assert!(world.ledger.outbox.bury(&now, row.id, "too large").await.unwrap());
    }
    let (id, key, bytes, epoch) = (row.id, &row.key, row.payload.len(), now.epoch);
    let traceparent = &row.traceparent;
    let release = env!("CARGO_PKG_VERSION");
    assert_eq!(
        dead_letters(&world).await,
        [format!(
            "|users|{shard}|{id}|{key}|user.created|{bytes}|{traceparent}|{epoch}|{created_at_ms}|refused|too large|1|\
             relay-2|{release}"
        )]
    );
    assert_eq!(world.rows().await, []);
}

async fn a_key_has_one_shard(world: World) {
    world.people(20).await;
    for shard in world.waiting().await {
        for row in world.ledger.outbox.oldest(shard, 100).await.unwrap() {
            assert_eq!(Shard::of(&row.key, SHARDS), shard, "{row:?}");
        }
    }
    assert_eq!(world.rows().await.len(), 20);
}

async fn a_commit_wakes_and_no_change_does_not(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let mut wakeups = world.ledger.outbox.wakeups();
    if world.url.starts_with("postgres") {
        // The listening connection, once it stands, wakes for what it may have missed.
        wait::within("the listener", wakeups.changed()).await.unwrap();
    }
    world.follow(ada, lin).await.unwrap();
    assert!(wakeups.has_changed().unwrap());
    wakeups.mark_unchanged();
    world.follow(ada, lin).await.unwrap();
    assert!(!wakeups.has_changed().unwrap());
}
