//! A lane a shard: reads its oldest rows, appends them, takes away what was acknowledged. Each is a loop of its own, so that
//! a shard that is slow or cannot be published holds up no other; and the only one of its shard in this pod.

use std::{collections::BTreeMap, panic::resume_unwind, sync::Arc};

use chassis::{Stop, failpoint};
use store::{
    Error, Shard,
    event_log::{AppendError, EventLog, Received, Record},
    ledger::{
        Lease, Outbox, OutboxRow,
        dead_letters::{Cause, NewLetter},
    },
};
use tokio::{
    sync::{Notify, watch},
    task::{JoinError, JoinSet},
    time::sleep,
};
use tracing::{Instrument as _, Span, error, warn};

use super::{RETRY_MAX, RETRY_MIN, held::Held, marks::Marks};

/// How many rows are under way at once in a shard.
const BATCH_ROWS: u32 = 1000;

/// The lanes of a pod: one for each shard that it has ever held.
pub(super) struct Lanes {
    outbox: Arc<dyn Outbox>,
    log: Arc<dyn EventLog>,
    held: watch::Receiver<Held>,
    stop: Stop,
    bells: BTreeMap<Shard, Arc<Notify>>,
    running: JoinSet<()>,
}

impl Lanes {
    /// No lanes yet, but the marks that go down each of them.
    pub(super) fn new(
        outbox: Arc<dyn Outbox>,
        log: Arc<dyn EventLog>,
        held: watch::Receiver<Held>,
        stop: Stop,
    ) -> Self {
        let mut running = JoinSet::new();
        let marks = Marks { outbox: outbox.clone(), log: log.clone(), held: held.clone(), stop: stop.clone() };
        running.spawn(async move { marks.run().await }.instrument(Span::current()));
        Self { outbox, log, held, stop, bells: BTreeMap::new(), running }
    }

    /// Opens the lanes of shards that have none yet. A lane stays when its shard goes to another relay: it finds that it has
    /// no lease, and waits until there is one again. So no shard ever has two lanes.
    pub(super) fn open(&mut self, shards: impl Iterator<Item = Shard>) {
        for shard in shards {
            let (outbox, log) = (self.outbox.clone(), self.log.clone());
            let (held, stop, running) = (self.held.clone(), self.stop.clone(), &mut self.running);
            self.bells.entry(shard).or_insert_with(|| {
                let bell = Arc::new(Notify::new());
                let lane = Lane { shard, outbox, log, held, stop, bell: bell.clone() };
                running.spawn(async move { lane.run().await }.instrument(Span::current()));
                bell
            });
        }
    }

    /// Tells the lanes of these shards that rows wait. One that is at work looks again when it is done.
    pub(super) fn wake(&self, shards: &[Shard]) {
        shards.iter().filter_map(|shard| self.bells.get(shard)).for_each(|bell| bell.notify_one());
    }

    /// Never ends, but by the panic of a lane: that is the whole publisher's.
    pub(super) async fn one_panicked(&mut self) {
        while let Some(ended) = self.running.join_next().await {
            pass_on(ended);
        }
        std::future::pending().await
    }

    /// Waits until each lane has ended what it had begun.
    pub(super) async fn finish(mut self) {
        while let Some(ended) = self.running.join_next().await {
            pass_on(ended);
        }
    }
}

fn pass_on(ended: Result<(), JoinError>) {
    if let Err(cause) = ended
        && let Ok(panic) = cause.try_into_panic()
    {
        resume_unwind(panic);
    }
}

/// What a batch leaves behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    /// There may be more rows.
    More,
    /// Nothing that is this pod's to do.
    Nothing,
}

struct Lane {
    shard: Shard,
    outbox: Arc<dyn Outbox>,
    log: Arc<dyn EventLog>,
    held: watch::Receiver<Held>,
    stop: Stop,
    bell: Arc<Notify>,
}

impl Lane {
    /// Publishes whenever the bell rings, until nothing is left; ends when asked to stop, after the batch under way.
    async fn run(self) {
        let mut wait = RETRY_MIN;
        loop {
            tokio::select! { () = self.stop.cancelled() => return, () = self.bell.notified() => {} }
            while !self.stop.is_cancelled() {
                match self.publish_batch().await {
                    Ok(Left::More) => wait = RETRY_MIN,
                    Ok(Left::Nothing) => {
                        wait = RETRY_MIN;
                        break;
                    }
                    Err(cause) => {
                        let shard = self.shard;
                        warn!(%shard, "cannot publish shard {shard}, trying again in {wait:?}: {cause}");
                        tokio::select! { () = self.stop.cancelled() => {}, () = sleep(wait) => {} }
                        wait = (wait * 2).min(RETRY_MAX);
                    }
                }
            }
        }
    }

    async fn publish_batch(&self) -> Result<Left, Error> {
        let Some(lease) = self.usable_lease() else { return Ok(Left::Nothing) };
        let rows = self.outbox.oldest(self.shard, BATCH_ROWS).await?;
        // The read may have taken long: nothing is sent under a lease that ends, or that is another one by now.
        if rows.is_empty() || self.usable_lease().as_ref() != Some(&lease) {
            return Ok(Left::Nothing);
        }
        let left = if rows.len() < BATCH_ROWS as usize { Left::Nothing } else { Left::More };
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        let records = rows.into_iter().map(|row| record(row, &lease)).collect();
        failpoint::reach("relay.before_publish").await;
        let appended = self.log.append(records).await;
        failpoint::reach("relay.before_remove").await;
        let (acknowledged, failure) = match appended {
            Ok(()) => (ids.len(), None),
            Err(AppendError { acknowledged, cause }) => (acknowledged, Some(cause)),
        };
        if acknowledged > 0 && !self.outbox.remove(&lease, &ids[..acknowledged]).await? {
            return Ok(lost(&lease));
        }
        match failure {
            None => Ok(left),
            Some(Error::Refused { cause, .. }) => self.put_aside(&lease, ids[acknowledged], &cause).await,
            Some(cause) => Err(cause),
        }
    }

    /// A row that the log refuses for good becomes a dead letter and holds up nobody, the later rows of its key included:
    /// an event stands by itself and carries its version, so that whoever gets the next one without it is right about that
    /// one, and this one can be applied late.
    async fn put_aside(&self, lease: &Lease, id: i64, cause: &str) -> Result<Left, Error> {
        let shard = self.shard;
        // The log has taken the batch, and what it refuses is rare: it is read again rather than kept each time.
        let rows = self.outbox.oldest(shard, BATCH_ROWS).await?;
        let Some(row) = rows.into_iter().find(|row| row.id == id) else { return Ok(Left::More) };
        // The copy first: it may be there twice, but is never missing.
        self.copy(row, lease, cause).await?;
        if !self.outbox.bury(lease, id, cause).await? {
            return Ok(lost(lease));
        }
        error!(%shard, id, "event {id} of the outbox is put aside, the event log refuses it for good: {cause}");
        Ok(Left::More)
    }

    /// Copies a row that the log refuses to where other tools look for dead letters.
    async fn copy(&self, row: OutboxRow, lease: &Lease, cause: &str) -> Result<(), Error> {
        let (position, logged_at_ms) = (row.id, row.created_at_ms);
        let event = Received { record: record(row, lease), position, logged_at_ms };
        let error = cause.to_owned();
        let letter =
            NewLetter { group: "", event: &event, cause: Cause::Refused, error, attempts: 1, pod: &lease.owner };
        self.log.bury(&letter).await
    }

    fn usable_lease(&self) -> Option<Lease> {
        self.held.borrow().usable_on(self.shard).cloned()
    }
}

fn lost(lease: &Lease) -> Left {
    let (shard, epoch) = (lease.shard, lease.epoch);
    warn!(%shard, epoch, "lost the lease on shard {shard} while publishing; its next owner sends again");
    Left::Nothing
}

fn record(row: OutboxRow, lease: &Lease) -> Record {
    Record {
        topic: row.topic,
        partition: lease.shard,
        key: row.key,
        kind: row.kind,
        payload: row.payload,
        traceparent: row.traceparent,
        epoch: lease.epoch,
    }
}
