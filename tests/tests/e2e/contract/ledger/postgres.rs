//! What only a ledger of many pods has: transactions that stay open, pods that hear of each other, locks that are held.

mod slots;

use futures_util::future::join_all;
use std::{collections::HashSet, time::Duration};
use store::{
    Error, Shard,
    ledger::{Lease, Ledger, Share, Viewer, WriterTerms},
};
use tests::{
    servers::{self, Adapter},
    wait,
};
use tokio_postgres::{Client, NoTls};

use super::{World, open};

/// A connection beside the ledger's own.
pub(in crate::contract) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("PostgreSQL");
    #[expect(clippy::disallowed_methods, reason = "it ends with the client")]
    tokio::spawn(connection);
    client
}

/// Another pod's ledger on the same database.
async fn another(world: &World) -> Ledger {
    world.config.open_ledger(&servers::parts()).await.expect("a ledger")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_surfaces_late_is_not_lost() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let ada = world.people(1).await[0];
    let shard = Shard::of(&ada.to_string(), super::SHARDS);
    let raw = connect(&world.url).await;
    raw.batch_execute("BEGIN").await.unwrap();
    let insert = "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
                  VALUES ($1, 'posts', 'late', 'post.created', '', '', 0) RETURNING id";
    let late: i64 = raw.query_one(insert, &[&i64::from(shard.0)]).await.unwrap().get(0);
    world.post(ada, "early").await.unwrap();

    let outbox = &world.ledger.outbox;
    let leases = world.ledger.shard_leases.claim("relay", Duration::from_secs(60), Share::ALL).await.unwrap();
    let lease = &leases[usize::from(shard.0)];
    let early: Vec<_> = outbox.oldest(shard, 10).await.unwrap().iter().map(|row| row.id).collect();
    assert!(!early.contains(&late) && early.iter().any(|id| *id > late), "{early:?} beside {late}");
    assert!(outbox.remove(lease, &early).await.unwrap());
    // However much is sent meanwhile, nobody takes it for certain that no lower id can come up.
    for round in 0..5 {
        world.post(ada, &format!("meanwhile {round}")).await.unwrap();
        send_all(&world, lease).await;
    }
    raw.batch_execute("COMMIT").await.unwrap();
    assert_eq!(ids(&world, shard).await, [late]);
}

async fn ids(world: &World, shard: Shard) -> Vec<i64> {
    world.ledger.outbox.oldest(shard, 10).await.unwrap().iter().map(|row| row.id).collect()
}

async fn send_all(world: &World, lease: &Lease) {
    let ids = ids(world, lease.shard).await;
    assert!(world.ledger.outbox.remove(lease, &ids).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_wakes_other_pods() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let other = another(&world).await;
    let mut wakeups = other.outbox.wakeups();
    wait::within("the listener", wakeups.changed()).await.unwrap();
    for round in 0..3 {
        assert!(!wakeups.has_changed().unwrap(), "round {round}");
        world.people(1).await;
        wait::within("the commit to be heard of", wakeups.changed()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_listener_comes_back_and_wakes_for_what_it_missed() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let other = another(&world).await;
    let mut wakeups = other.outbox.wakeups();
    wait::within("the listener", wakeups.changed()).await.unwrap();
    let raw = connect(&world.url).await;
    let listeners = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND query LIKE 'LISTEN%'";
    assert_eq!(raw.query(listeners, &[]).await.unwrap().len(), 1);
    wait::within("the listener to come back", wakeups.changed()).await.unwrap();
    world.people(1).await;
    wait::within("the commit to be heard of", wakeups.changed()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_claim_at_once_share_nothing() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let pods = join_all((0..5).map(|_| another(&world))).await;
    let terms = WriterTerms { ttl: Duration::from_secs(60), window: Duration::from_secs(60) };
    let claims = (0..50).map(|number| (format!("pod {number}"), &pods[number % pods.len()]));
    let claims: Vec<_> = claims.collect();
    let leases = join_all(claims.iter().map(|(owner, pod)| pod.writer_numbers.claim(owner, terms))).await;
    let numbers: HashSet<_> = leases.into_iter().map(|lease| lease.unwrap().grant.writer).collect();
    assert_eq!(numbers.len(), 50);
    let shards =
        join_all(claims.iter().map(|(owner, pod)| pod.shard_leases.claim(owner, Duration::from_secs(60), Share::ALL)))
            .await;
    let shards: Vec<_> = shards.into_iter().flat_map(Result::unwrap).map(|lease| lease.shard).collect();
    assert_eq!(shards.len(), usize::from(super::SHARDS), "{shards:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock_is_tried_again() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let ada = world.people(1).await[0];
    let post = world.post(ada, "hello").await.unwrap().id;
    let raw = connect(&world.url).await;
    // The ledger looks for a deadlock first, and so is the one that gives way.
    raw.batch_execute("SET deadlock_timeout = '20s'; BEGIN").await.unwrap();
    raw.query("SELECT 1 FROM posts WHERE id = $1 FOR UPDATE", &[&post.get()]).await.unwrap();
    let beside = async {
        let blocked =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let watcher = connect(&world.url).await;
        wait::until("the like to keep the person and wait for the post", async || {
            let waiting: i64 = watcher.query_one(blocked, &[]).await.unwrap().get(0);
            (waiting > 0).then_some(())
        })
        .await;
        raw.query("SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE", &[&ada.get()]).await.unwrap();
        raw.batch_execute("COMMIT").await.unwrap();
    };
    let (liked, ()) = tokio::join!(world.like(ada, post), beside);
    assert_eq!(liked.unwrap().count, 1);
    assert_eq!(world.events("post.liked").await.len(), 1);
    let victims = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    wait::until("the deadlock to be counted", async || {
        let deadlocks: i64 = raw.query_one(victims, &[]).await.unwrap().get(0);
        (deadlocks > 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_made_is_given_up_in_time() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let ada = world.people(1).await[0];
    let post = world.post(ada, "hello").await.unwrap().id;
    let raw = connect(&world.url).await;
    raw.batch_execute("BEGIN").await.unwrap();
    raw.query("SELECT 1 FROM posts WHERE id = $1 FOR UPDATE", &[&post.get()]).await.unwrap();
    let begun = tokio::time::Instant::now();
    let refused = world.like(ada, post).await;
    assert!(matches!(refused, Err(Error::Unavailable { .. })), "{refused:?}");
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    raw.batch_execute("COMMIT").await.unwrap();
    assert_eq!(world.like(ada, post).await.unwrap().count, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_the_server_ended_are_replaced() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let ada = world.people(1).await[0];
    let raw = connect(&world.url).await;
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                  WHERE datname = current_database() AND pid <> pg_backend_pid()";
    raw.query(others, &[]).await.unwrap();
    let post = wait::until("the ledger to answer again", async || match world.post(ada, "hello").await {
        Ok(post) => Some(post.id),
        Err(Error::Unavailable { .. }) => None,
        Err(other) => panic!("{other}"),
    })
    .await;
    assert_eq!(world.ledger.posts.batch(Viewer::Stranger, &[post]).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_again_has_a_higher_version_whatever_the_clock_says() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let post = world.post(lin, "hello").await.unwrap().id;
    world.follow(ada, lin).await.unwrap();
    world.like(ada, post).await.unwrap();
    let far = 4_000_000_000_000_000_i64;
    connect(&world.url)
        .await
        .batch_execute(&format!(
            "UPDATE follows SET active = FALSE, version = {far}; UPDATE likes SET active = FALSE, version = {far}; \
             UPDATE posts SET like_count = 0, like_version = {far}; DELETE FROM outbox"
        ))
        .await
        .unwrap();
    assert!(world.follow(ada, lin).await.unwrap());
    assert_eq!(world.like(ada, post).await.unwrap().version, far + 1);
    for kind in ["graph.followed", "post.liked"] {
        let versions: Vec<_> = world.events(kind).await.iter().map(|event| event.version).collect();
        assert_eq!(versions, [far + 1], "{kind}");
    }
}
