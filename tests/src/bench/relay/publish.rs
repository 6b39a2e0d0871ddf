//! The real publisher of one pod with all shards, from a filled outbox to an empty one.

use std::time::Duration;

use chassis::Stop;
use relay::Publisher;
use store::{Shard, event_log::Record, ledger::ReadFrom, shard::SHARDS_DEFAULT};
use tokio::time::Instant;

use super::{Bench, INSERT, insert};

const INSERT_ROWS: usize = 10_000;
const POLL: Duration = Duration::from_millis(5);

/// Events a second, from the publisher's start until the last row is acknowledged and removed.
pub(super) async fn pace(bench: &Bench, events: &[Record]) -> f64 {
    let prepared = bench.raw.prepare(INSERT).await.expect("a statement");
    for chunk in events.chunks(INSERT_ROWS) {
        insert(&bench.raw, &prepared, chunk).await;
    }
    let (stop, publisher) = (Stop::new(), Publisher::new("bench", &bench.stores));
    let (outbox, shards) = (
        &bench.stores.ledger.outbox,
        (0..SHARDS_DEFAULT).map(|shard| ReadFrom::the_first(Shard(shard))).collect::<Vec<_>>(),
    );
    let begun = Instant::now();
    let until_empty = async {
        while !outbox.read(&shards, 1, &[]).await.expect("the outbox").rows.is_empty() {
            tokio::time::sleep(POLL).await;
        }
        let taken = begun.elapsed();
        stop.cancel();
        taken
    };
    let (ended, taken) = tokio::join!(publisher.run(stop.clone()), until_empty);
    ended.expect("the publisher ends well");
    events.len() as f64 / taken.as_secs_f64()
}
