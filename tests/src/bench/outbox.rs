//! The outbox under a held snapshot: PostgreSQL cannot forget a deleted row while somebody might still see it. Whoever reads
//! the oldest rows must not walk over all those that were sent meanwhile.

use std::time::Duration;

use store::{
    Config,
    ledger::{Lease, Ledger, Share},
    migrate::Mode,
};
use tokio::time::Instant;
use tokio_postgres::Client;

use super::{Goal, Report, connect};
use crate::servers::{self, Adapter};

/// How many rows are sent while the snapshot is held.
const SENT_ROWS: u32 = 10_000_000;
/// How many are written at once, and then sent.
const ROUND_ROWS: u32 = 100_000;
/// How many rounds are measured at each end.
const MEASURED_ROUNDS: u32 = 10;
/// How many rows are read and removed at a time.
const BATCH_ROWS: u32 = 1000;
/// Longer than a round.
const LEASE_TTL: Duration = Duration::from_secs(60);

/// An outbox, and a connection beside it.
struct Bench {
    ledger: Ledger,
    raw: Client,
}

/// Reading and removing on a fresh outbox, and after ten million rows under one snapshot.
pub(super) async fn measure() -> Report {
    let settings = settings().await;
    let url = settings.iter().find(|(key, _)| *key == "stores.ledger").expect("a ledger").1.clone();
    let bench = Bench::on(&servers::config(&settings), &url).await;
    let fresh = bench.pace(MEASURED_ROUNDS).await;

    let reader = connect(&url).await;
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM accounts").await.expect("a snapshot");
    let meanwhile = bench.pace(SENT_ROWS / ROUND_ROWS).await;
    let after = bench.pace(MEASURED_ROUNDS).await;
    let megabytes = bench.bytes_on_disk().await / 1_000_000;
    reader.batch_execute("COMMIT").await.expect("the snapshot was held to the end");

    Report {
        goals: vec![Goal { name: "held-snapshot", ratio: after / fresh, least: 0.8 }],
        figures: vec![
            format!("fresh: {fresh:.0} rows/s"),
            format!("while {SENT_ROWS} rows are sent under a held snapshot: {meanwhile:.0} rows/s"),
            format!("after them, the snapshot still held: {after:.0} rows/s, and {megabytes} MB on disk"),
        ],
    }
}

/// A database of its own, with as many shards as an installation has that says nothing.
async fn settings() -> Vec<(&'static str, String)> {
    let unused = std::path::Path::new("unused");
    let mut settings = servers::settings(&[Adapter::Postgres], unused).await.expect("PostgreSQL");
    settings.retain(|(key, _)| *key != "stores.shards");
    // A config needs one; nobody talks to it.
    settings.push(("stores.events", "kafka://127.0.0.1:1".to_owned()));
    settings
}

impl Bench {
    async fn on(config: &Config, url: &str) -> Self {
        config.migrate_ledger(Mode::Apply).await.expect("a migration");
        let ledger = config.open_ledger(&servers::parts()).await.expect("a ledger");
        // As a relay does: whoever publishes wants to be woken.
        drop(ledger.outbox.wakeups());
        Self { ledger, raw: connect(url).await }
    }

    /// Rows a second that are read and removed, over so many rounds. The time to write them does not count.
    async fn pace(&self, rounds: u32) -> f64 {
        let mut taken = Duration::ZERO;
        for _ in 0..rounds {
            let leases = self.ledger.shard_leases.claim("bench", LEASE_TTL, Share::ALL).await.expect("the shards");
            self.write_rows(leases.len()).await;
            let begun = Instant::now();
            for lease in &leases {
                self.send_all(lease).await;
            }
            taken += begun.elapsed();
        }
        f64::from(rounds * ROUND_ROWS) / taken.as_secs_f64()
    }

    async fn write_rows(&self, shards: usize) {
        let shards = i64::try_from(shards).expect("a number of shards");
        let insert = "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
                      SELECT number % $1, 'posts', number::TEXT, 'post.created', convert_to(repeat('x', 200), 'UTF8'), \
                          repeat('t', 55), 0 FROM generate_series(1, $2::BIGINT) AS number";
        self.raw.execute(insert, &[&shards, &i64::from(ROUND_ROWS)]).await.expect("rows");
    }

    async fn send_all(&self, lease: &Lease) {
        let outbox = &self.ledger.outbox;
        loop {
            let rows = outbox.oldest(lease.shard, BATCH_ROWS).await.expect("the outbox");
            if rows.is_empty() {
                return;
            }
            let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
            assert!(outbox.remove(lease, &ids).await.expect("the outbox"), "lost shard {}", lease.shard);
        }
    }

    async fn bytes_on_disk(&self) -> i64 {
        let size = "SELECT sum(pg_total_relation_size(relid))::BIGINT FROM pg_partition_tree('outbox')";
        self.raw.query_one(size, &[]).await.expect("a size").get(0)
    }
}
