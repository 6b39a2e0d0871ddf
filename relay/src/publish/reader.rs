//! Reads the outbox for all lanes of a pod in one request: at load there are a few new rows in most shards at any moment, and
//! to ask for each shard alone would cost more than the rows.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chassis::Stop;
use store::{
    Error, Shard,
    ledger::{Lease, Outbox, OutboxRow},
};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::sleep,
};
use tracing::warn;

use super::{RETRY_MAX, RETRY_MIN, held::Held, under_way::UnderWay};

/// How many rows one request brings at the most, whatever the number of shards.
const READ_ROWS_MAX: usize = 4000;
/// The least time between two requests: what comes meanwhile comes with the next one.
const READ_PAUSE: Duration = Duration::from_micros(500);

/// Rows of one shard, in order, and the lease under which they were read.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) lease: Lease,
    pub(super) rows: Vec<OutboxRow>,
}

/// Where the rows of each shard go.
pub(super) type Queues = BTreeMap<Shard, mpsc::Sender<Batch>>;

/// Reads for all lanes.
pub(super) struct Reader {
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) held: watch::Receiver<Held>,
    pub(super) queues: watch::Receiver<Queues>,
    pub(super) under_way: Arc<UnderWay>,
    pub(super) bell: Arc<Notify>,
    pub(super) stop: Stop,
}

impl Reader {
    /// Reads whenever the bell rings, until nothing is left that a lane takes; ends when asked to stop.
    pub(super) async fn run(self) {
        let mut wait = RETRY_MIN;
        loop {
            tokio::select! { () = self.stop.cancelled() => return, () = self.bell.notified() => {} }
            let pause = match self.read().await {
                Ok(()) => {
                    wait = RETRY_MIN;
                    READ_PAUSE
                }
                Err(cause) => {
                    warn!("cannot read the outbox, trying again in {wait:?}: {cause}");
                    self.bell.notify_one();
                    let pause = wait;
                    wait = (wait * 2).min(RETRY_MAX);
                    pause
                }
            };
            tokio::select! { () = self.stop.cancelled() => return, () = sleep(pause) => {} }
        }
    }

    async fn read(&self) -> Result<(), Error> {
        // In the order of shards, as the rows come.
        let leases = self.open_leases();
        let shards: Vec<_> = leases.iter().map(|lease| lease.shard).collect();
        let limit = (READ_ROWS_MAX / shards.len().max(1)).max(1);
        let (from, had) = self.under_way.read_on(&shards);
        let read = self.outbox.read(&from, u32::try_from(limit).unwrap_or(u32::MAX), &had).await?;
        let mut rows = read.rows.into_iter().peekable();
        for lease in leases {
            let mut batch = Vec::new();
            while let Some(row) = rows.next_if(|row| row.shard == lease.shard) {
                batch.push(row);
            }
            let all_to = match batch.last() {
                Some(last) if batch.len() == limit => {
                    // There may be more.
                    self.bell.notify_one();
                    last.id.min(read.decided)
                }
                _ => read.decided,
            };
            self.hand_over(Batch { lease, rows: batch }, all_to);
        }
        Ok(())
    }

    /// The leases of the shards that something may be begun in, and whose lanes take more.
    fn open_leases(&self) -> Vec<Lease> {
        let is_open = |lease: &&Lease| self.under_way.has_room(lease.shard);
        let mut leases: Vec<_> = self.held.borrow().usable().iter().filter(is_open).cloned().collect();
        leases.sort_unstable_by_key(|lease| lease.shard);
        leases
    }

    fn hand_over(&self, batch: Batch, all_to: i64) {
        let shard = batch.lease.shard;
        let ids: Vec<_> = batch.rows.iter().map(|row| row.id).collect();
        if !self.under_way.take(shard, &ids, all_to) || ids.is_empty() {
            return;
        }
        // It has a place for each row that may be under way: it is full never, and closed when the lane has ended.
        let sent = self.queues.borrow().get(&shard).is_some_and(|queue| queue.try_send(batch).is_ok());
        if !sent {
            self.under_way.give_back(shard, &ids);
        }
    }
}
