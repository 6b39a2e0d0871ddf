//! The outbox.

use std::time::Duration;

use store::{
    Shard,
    ledger::{Lease, Share},
};
use tests::wait;

use super::{SHARDS, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    rows_wait_in_order_until_they_are_removed,
    a_lease_that_ran_out_removes_nothing,
    a_lease_of_an_earlier_epoch_removes_nothing,
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
    assert_eq!((outbox.backlog().await.unwrap(), outbox.waiting().await.unwrap()), (0, vec![]));
    let ada = world.people(1).await[0];
    for number in 0..5 {
        world.post(ada, &format!("post {number}")).await.unwrap();
    }
    // All have the key of the author, and so one shard.
    let waiting = outbox.waiting().await.unwrap();
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
    assert_eq!((outbox.backlog().await.unwrap(), outbox.waiting().await.unwrap()), (0, vec![]));
}

async fn a_lease_that_ran_out_removes_nothing(world: World) {
    world.people(1).await;
    let rows = world.rows().await;
    let shard = world.ledger.outbox.waiting().await.unwrap()[0];
    let lease = lease(&world, "relay", Duration::ZERO, shard).await;
    assert!(!world.ledger.outbox.remove(&lease, &[rows[0].id]).await.unwrap());
    assert_eq!(world.rows().await, rows);
}

async fn a_lease_of_an_earlier_epoch_removes_nothing(world: World) {
    world.people(1).await;
    let rows = world.rows().await;
    let shard = world.ledger.outbox.waiting().await.unwrap()[0];
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

async fn a_key_has_one_shard(world: World) {
    world.people(20).await;
    for shard in world.ledger.outbox.waiting().await.unwrap() {
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
