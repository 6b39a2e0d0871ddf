//! How far shards are settled.

use std::time::Duration;

use chassis::{Clock as _, clock};
use proto::{
    EventId,
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::{
    Error, Shard,
    ledger::{Event, Lease, NewPost, Share, Viewer, Written},
};
use tests::{servers::Adapter, sql::Sql, wait};

use super::{SHARDS, World, open, postgres::connect};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    an_idle_shard_is_settled_up_to_ten_seconds_ago,
    a_row_that_waits_holds_back_its_own_shard,
    only_leases_that_stand_are_marked,
    an_event_with_an_old_id_is_refused,
});

const LONG: Duration = Duration::from_secs(60);
/// How old an id may be when its change begins; and how long a change may live.
const AGE_MS: i64 = 7_000;
const LIFE_MS: i64 = 5_000;

async fn leases(world: &World) -> Vec<Lease> {
    world.ledger.shard_leases.claim("relay", LONG, Share::ALL).await.unwrap()
}

async fn an_idle_shard_is_settled_up_to_ten_seconds_ago(world: World) {
    let leases = leases(&world).await;
    let before = clock::System.unix_ms();
    let marks = world.ledger.outbox.marks(&leases).await.unwrap();
    let after = clock::System.unix_ms();
    assert_eq!(marks.iter().map(|(shard, _)| shard.0).collect::<Vec<_>>(), (0..SHARDS).collect::<Vec<_>>());
    assert!(marks.iter().all(|(_, ms)| (before - 10_000..=after - 10_000).contains(ms)), "{marks:?} at {before}");
}

async fn a_row_that_waits_holds_back_its_own_shard(world: World) {
    let leases = leases(&world).await;
    let old = clock::System.unix_ms() - 60_000;
    let bytes = if world.url.starts_with("postgres") { "BYTEA" } else { "BLOB" };
    let row = |at| format!("(2, 'posts', 'k', 'post.created', CAST('' AS {bytes}), '', {at})");
    let insert = "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms)";
    Sql::connect(&world.url).await.run(&format!("{insert} VALUES {}, {}", row(old), row(old + 30_000))).await;
    let marks = world.ledger.outbox.marks(&leases).await.unwrap();
    assert_eq!(marks[2], (Shard(2), old - LIFE_MS - AGE_MS - 1));
    assert!([0, 1, 3].iter().all(|shard| marks[*shard].1 > old + 40_000), "{marks:?}");

    let rows = world.ledger.outbox.oldest(Shard(2), 1).await.unwrap();
    assert!(world.ledger.outbox.remove(&leases[2], &[rows[0].id]).await.unwrap());
    let marks = world.ledger.outbox.marks(&leases).await.unwrap();
    assert_eq!(marks[2], (Shard(2), old + 30_000 - LIFE_MS - AGE_MS - 1));
}

async fn only_leases_that_stand_are_marked(world: World) {
    let outbox = &world.ledger.outbox;
    let old = leases(&world).await;
    assert_eq!(outbox.marks(&old[1..2]).await.unwrap().len(), 1);
    assert_eq!(outbox.marks(&[]).await.unwrap(), []);
    world.ledger.shard_leases.release("relay").await.unwrap();
    assert_eq!(outbox.marks(&old).await.unwrap(), []);
    let new = leases(&world).await;
    let stranger = Lease { owner: "another".into(), ..new[0].clone() };
    assert_eq!(outbox.marks(&[old, vec![stranger]].concat()).await.unwrap(), []);
    assert_eq!(outbox.marks(&new).await.unwrap().len(), usize::from(SHARDS));
}

async fn an_event_with_an_old_id_is_refused(world: World) {
    let ada = world.people(1).await[0];
    let compose = |_: &Written| unreachable!("no event is written");
    let minted = |ago_ms| {
        let ms = clock::System.unix_ms() - ago_ms - EPOCH_UNIX_MS;
        EventId::new(ms << (WRITER_BITS + SEQUENCE_BITS)).unwrap()
    };
    let new = NewPost::of_text(world.id(), ada, "late");
    let late = world.ledger.posts.create(new.clone(), Event { id: minted(AGE_MS + 1), compose: &compose }).await;
    assert!(matches!(late, Err(Error::Unavailable { .. })), "{late:?}");
    assert_eq!(world.ledger.posts.batch(Viewer::Person(ada), &[new.id]).await.unwrap(), []);
    assert_eq!(world.rows().await.len(), 1);
    let compose = |_: &Written| proto::freshet::event::v1::envelope::Payload::PostCreated(Default::default());
    world.ledger.posts.create(new, Event { id: minted(AGE_MS - 2_000), compose: &compose }).await.unwrap();
}

/// A session of this name beside the ledger's own.
async fn session(world: &World, name: &str) -> tokio_postgres::Client {
    let client = connect(&world.url).await;
    client.execute("SELECT set_config('application_name', $1, false)", &[&name]).await.unwrap();
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_of_ours_holds_back_every_shard() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let leases = leases(&world).await;
    let (ours, theirs) = (session(&world, "freshet test").await, session(&world, "another").await);
    theirs.batch_execute("BEGIN; SELECT 1").await.unwrap();
    ours.batch_execute("BEGIN").await.unwrap();
    let began = "SELECT CAST(floor(extract(epoch FROM now()) * 1000) AS BIGINT)";
    let began: i64 = ours.query_one(began, &[]).await.unwrap().get(0);
    let marks = async || world.ledger.outbox.marks(&leases).await.unwrap();
    // Until it is older than what a moment's changes are allowed.
    wait::until("the open transaction to count", async || {
        (clock::System.unix_ms() > began + 10_000 - AGE_MS + 500).then_some(())
    })
    .await;
    assert!(marks().await.iter().all(|(_, ms)| *ms == began - AGE_MS - 1), "{:?} at {began}", marks().await);
    ours.batch_execute("COMMIT").await.unwrap();
    assert!(marks().await.iter().all(|(_, ms)| *ms > began - AGE_MS), "{:?} at {began}", marks().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_ours_that_hides_its_transactions_settles_nothing() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let leases = leases(&world).await;
    let hidden = session(&world, "freshet test").await;
    hidden.batch_execute("SET track_activities = off; SELECT 1").await.unwrap();
    let told = world.ledger.outbox.marks(&leases).await.unwrap_err();
    assert!(matches!(&told, Error::Unavailable { cause, .. } if cause.contains("hide")), "{told}");
    hidden.batch_execute("SET track_activities = on; SELECT 1").await.unwrap();
    world.ledger.outbox.marks(&leases).await.unwrap();
}
