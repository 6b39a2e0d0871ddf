//! The outbox's slots: what is emptied, and what never is.

use store::{Shard, migrate::Mode};
use tests::{
    servers::{self, Adapter},
    wait,
};
use tokio_postgres::Client;

use super::{
    super::{World, configure, open},
    connect,
};

/// Enough that to walk over them could not be missed.
const MANY_ROWS: i64 = 20_000;
/// What a look at a few rows in four slots touches, with room to spare.
const FEW_BUFFERS: i64 = 100;
const FIRST_MIGRATION: &str = include_str!("../../../../../../store/migrations/postgres/0001_skeleton.sql");

/// A world whose pod publishes: only such a one empties slots.
async fn open_publishing() -> Option<(World, Client)> {
    let world = open(Adapter::Postgres).await?;
    drop(world.ledger.outbox.wakeups());
    let raw = connect(&world.url).await;
    Some((world, raw))
}

/// The slot whose turn has just ended: it may be emptied for 10 s at least.
async fn last_slot(raw: &Client) -> i64 {
    raw.query_one("SELECT (outbox_slot() + 3) % 4", &[]).await.unwrap().get(0)
}

/// Writes rows into a slot, all of shard 0.
async fn write(raw: &Client, slot: i64, rows: i64) {
    let insert = "INSERT INTO outbox (slot, shard, topic, key, type, payload, traceparent, created_at_ms) \
                  SELECT $1, 0, 'posts', number::TEXT, 'post.created', '', '', 0 FROM generate_series(1, $2::BIGINT) AS number";
    assert_eq!(raw.execute(insert, &[&slot, &rows]).await.unwrap(), u64::try_from(rows).unwrap());
}

async fn size(raw: &Client, slot: i64) -> i64 {
    let size = "SELECT pg_relation_size('outbox_' || $1::BIGINT)";
    raw.query_one(size, &[&slot]).await.unwrap().get(0)
}

async fn is_emptied(raw: &Client, slot: i64) {
    let look = async || (size(raw, slot).await == 0).then_some(());
    // Its turn may come meanwhile, and it is left alone until that is over: 20 s, as long as one wait.
    if wait::try_until(look).await.is_none() {
        wait::until("the slot to be emptied", look).await;
    }
}

/// How often somebody has looked whether there are rows in a slot.
async fn looks(raw: &Client, slot: i64) -> i64 {
    let scans = "SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables \
                 WHERE relname = 'outbox_' || $1::BIGINT";
    raw.query_one(scans, &[&slot]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_in_which_rows_wait_is_emptied_only_when_they_are_gone() {
    let Some((world, raw)) = open_publishing().await else { return };
    let slot = last_slot(&raw).await;
    write(&raw, slot, 100).await;
    raw.batch_execute("DELETE FROM outbox WHERE id < (SELECT max(id) FROM outbox)").await.unwrap();
    // Our own scans are counted first, so that every later one is somebody else's.
    raw.batch_execute("SELECT pg_stat_force_next_flush()").await.unwrap();
    let before = looks(&raw, slot).await;
    wait::until("the slot to be looked at twice", async || (looks(&raw, slot).await > before + 1).then_some(())).await;
    let waiting = world.ledger.outbox.oldest(Shard(0), 10).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].key.as_str()), (1, "100"));
    assert!(size(&raw, slot).await > 0);

    raw.batch_execute("DELETE FROM outbox").await.unwrap();
    is_emptied(&raw, slot).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_into_which_an_open_transaction_writes_is_not_emptied() {
    let Some((world, raw)) = open_publishing().await else { return };
    let slot = last_slot(&raw).await;
    // What somebody else has written and taken away: the slot looks empty, and is worth emptying.
    write(&raw, slot, 100).await;
    raw.batch_execute("DELETE FROM outbox").await.unwrap();
    let writer = connect(&world.url).await;
    writer.batch_execute("BEGIN").await.unwrap();
    write(&writer, slot, 1).await;
    let tries = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted \
                 AND relation = ('outbox_' || $1::BIGINT)::REGCLASS";
    wait::until("somebody to try", async || {
        let tries: i64 = raw.query_one(tries, &[&slot]).await.unwrap().get(0);
        (tries > 0).then_some(())
    })
    .await;
    writer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(world.ledger.outbox.oldest(Shard(0), 10).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_the_oldest_row_does_not_walk_over_sent_ones_under_a_held_snapshot() {
    let Some((world, raw)) = open_publishing().await else { return };
    let reader = connect(&world.url).await;
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM accounts").await.unwrap();
    let slot = last_slot(&raw).await;
    write(&raw, slot, MANY_ROWS).await;
    raw.batch_execute("DELETE FROM outbox").await.unwrap();
    let walked = buffers_to_read_the_oldest(&raw).await;
    assert!(walked > FEW_BUFFERS, "only {walked} buffers: too few rows to show anything");

    is_emptied(&raw, slot).await;
    write(&raw, slot, 1).await;
    let walked = buffers_to_read_the_oldest(&raw).await;
    assert!(walked < FEW_BUFFERS, "{walked} buffers for one row");
    reader.batch_execute("COMMIT").await.unwrap();
}

async fn buffers_to_read_the_oldest(raw: &Client) -> i64 {
    let explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) \
                   SELECT id, topic, key, type, payload, traceparent FROM outbox WHERE shard = 0 ORDER BY id LIMIT 1";
    let plan = raw.query(explain, &[]).await.unwrap();
    // The first line of this kind sums up all below it: "  Buffers: shared hit=12 read=3".
    let lines = plan.iter().map(|row| row.get::<_, String>(0));
    let sum = lines.into_iter().find(|line| line.contains("Buffers: shared")).expect("a count of buffers");
    let counts = sum.split_whitespace().filter_map(|word| word.split_once('='));
    counts.filter(|(what, _)| ["hit", "read"].contains(what)).map(|(_, count)| count.parse::<i64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_an_outbox_without_slots_keeps_its_ids_and_its_order() {
    let data = tempfile::tempdir().expect("a folder");
    let Some((config, url)) = configure(Adapter::Postgres, data.path(), &[]).await else { return };
    let raw = connect(&url).await;
    raw.batch_execute(FIRST_MIGRATION).await.unwrap();
    raw.batch_execute(
        "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
             installed_on TIMESTAMPTZ NOT NULL DEFAULT now(), success BOOLEAN NOT NULL, checksum BYTEA NOT NULL, \
             execution_time BIGINT NOT NULL)",
    )
    .await
    .unwrap();
    let first = "INSERT INTO _sqlx_migrations VALUES (1, 'skeleton', now(), TRUE, sha384($1), 0)";
    raw.execute(first, &[&FIRST_MIGRATION.as_bytes()]).await.unwrap();
    raw.batch_execute(
        "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
         SELECT number % 4, 'posts', number::TEXT, 'post.created', '\\x01', 'trace', number \
         FROM generate_series(1, 1000) AS number; DELETE FROM outbox WHERE id % 10 = 0 OR id > 990",
    )
    .await
    .unwrap();
    let rows = "SELECT id, shard, topic, key, type, payload, traceparent, created_at_ms FROM outbox ORDER BY id";
    let all = async || {
        let rows = raw.query(rows, &[]).await.unwrap();
        let text = |row: &tokio_postgres::Row| {
            let (numbers, payload) = ([0, 1, 7].map(|column| row.get::<_, i64>(column)), row.get::<_, Vec<u8>>(5));
            (numbers, [2, 3, 4, 6].map(|column| row.get::<_, String>(column)), payload)
        };
        rows.iter().map(text).collect::<Vec<_>>()
    };
    let before = all().await;

    config.migrate_ledger(Mode::Apply).await.expect("a migration");
    assert_eq!((before.len(), all().await), (891, before));
    let ledger = config.open_ledger(&servers::parts()).await.expect("a ledger");
    let oldest: Vec<_> = ledger.outbox.oldest(Shard(1), 3).await.unwrap().into_iter().map(|row| row.key).collect();
    assert_eq!(oldest, ["1", "5", "9"]);
    write(&raw, 0, 1).await;
    let newest: i64 = raw.query_one("SELECT max(id) FROM outbox", &[]).await.unwrap().get(0);
    assert!(newest > 1000, "id {newest} was given before");
}
