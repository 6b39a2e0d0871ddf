//! A lane a shard: appends its rows, in order and many under way at once, and takes away what was acknowledged. Each is a loop
//! of its own, so that a shard that is slow or cannot be published holds up no other; and the only one of its shard in this pod.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use chassis::{Stop, failpoint};
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, OptionFuture},
    stream::FuturesOrdered,
};
use store::{
    Error, Shard,
    event_log::{AppendError, EventLog, Received, Record},
    ledger::{
        Lease, Outbox, OutboxRow,
        dead_letters::{Cause, NewLetter},
    },
};
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, sleep, sleep_until},
};
use tracing::{error, warn};

use super::{
    RETRY_MAX, RETRY_MIN,
    held::Held,
    reader::Batch,
    under_way::{SHARD_ROWS_MAX, UnderWay},
};

/// How long acknowledged rows wait for others to be removed with: nobody waits for that, and whoever takes over after a kill
/// sends so much again.
const REMOVE_AFTER: Duration = Duration::from_millis(20);
/// While the first of what is under way has waited longer for the log, nothing is sent behind it. So all of it was sent within
/// this time, and fails together when the log is away: else rows behind a failed one could come before it.
const APPENDS_SPREAD_MAX: Duration = Duration::from_millis(20);
/// So many are not kept waiting.
const REMOVE_ROWS: usize = SHARD_ROWS_MAX / 4;

/// The publishing of one shard.
pub(super) struct Lane {
    pub(super) shard: Shard,
    pub(super) outbox: Arc<dyn Outbox>,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) held: watch::Receiver<Held>,
    pub(super) under_way: Arc<UnderWay>,
    pub(super) bell: Arc<Notify>,
    pub(super) stop: Stop,
}

/// Rows that were sent, and how much of them the log has.
struct Sent {
    lease: Lease,
    ids: Vec<i64>,
    failure: Option<AppendError>,
}

impl Sent {
    fn acknowledged(&self) -> usize {
        self.failure.as_ref().map_or(self.ids.len(), |failure| failure.acknowledged)
    }
}

/// Rows that the log has, all read under one lease, since a while.
struct Acknowledged {
    lease: Lease,
    ids: Vec<i64>,
    due: Instant,
}

/// A removal that is over, and whether the lease stood.
struct Removal {
    ids: Vec<i64>,
    removed: Result<bool, Error>,
}

/// Why what is under way must be read and sent again.
enum Stumble {
    /// Another relay has the shard.
    LeaseLost,
    /// The log or the ledger does not do its part.
    Fails(Error),
    /// A row was put aside, and those after it are still to be sent.
    PutAside,
}

/// What a lane is at.
#[derive(Default)]
struct Work<'a> {
    appends: FuturesOrdered<BoxFuture<'a, Sent>>,
    /// When each of them began.
    began: VecDeque<Instant>,
    acknowledged: Option<Acknowledged>,
    removal: Option<BoxFuture<'a, Removal>>,
    /// How long to rest after the next failure.
    wait: Option<Duration>,
}

impl Work<'_> {
    fn may_append(&self) -> bool {
        self.began.front().is_none_or(|began| began.elapsed() < APPENDS_SPREAD_MAX)
    }

    async fn next_sent(&mut self) -> Option<Sent> {
        let sent = self.appends.next().await;
        self.began.pop_front();
        sent
    }
}

impl Lane {
    /// Publishes what it is given; ends when asked to stop, after what is under way.
    pub(super) async fn run(self, mut batches: mpsc::Receiver<Batch>) {
        let mut work = Work::default();
        loop {
            let due = work.acknowledged.as_ref().filter(|_| work.removal.is_none()).map(|ready| ready.due);
            tokio::select! {
                () = self.stop.cancelled() => break,
                Some(batch) = batches.recv(), if work.may_append() => self.append(&mut work, batch),
                Some(sent) = work.appends.next() => {
                    work.began.pop_front();
                    if let Err(stumble) = self.settle(&mut work, sent).await {
                        self.start_anew(&mut work, &mut batches, stumble).await;
                    }
                }
                Some(removal) = OptionFuture::from(work.removal.as_mut()) => {
                    work.removal = None;
                    if let Err(stumble) = self.removed(removal) {
                        self.start_anew(&mut work, &mut batches, stumble).await;
                    }
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.remove(&mut work),
            }
        }
        self.finish(work).await;
    }

    /// Sends rows, if the lease still stands under which they were read.
    fn append<'a>(&'a self, work: &mut Work<'a>, batch: Batch) {
        let Batch { lease, rows } = batch;
        let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
        if self.held.borrow().usable_on(self.shard) != Some(&lease) {
            self.give_back(&ids);
            return;
        }
        let records = rows.into_iter().map(|row| record(row, &lease)).collect();
        let sending = async move {
            failpoint::reach("relay.before_publish").await;
            let failure = self.log.append(records).await.err();
            failpoint::reach("relay.before_remove").await;
            Sent { lease, ids, failure }
        };
        work.appends.push_back(sending.boxed());
        work.began.push_back(Instant::now());
    }

    /// Notes what the log has, and sees to what it has not.
    async fn settle(&self, work: &mut Work<'_>, sent: Sent) -> Result<(), Stumble> {
        let acknowledged = sent.acknowledged();
        let Sent { lease, mut ids, failure } = sent;
        let rest = ids.split_off(acknowledged);
        self.note(work, &lease, ids);
        let Some(failure) = failure else {
            work.wait = None;
            return Ok(());
        };
        self.give_back(&rest);
        match failure.cause {
            Error::Refused { cause, .. } => self.put_aside(&lease, rest[0], &cause).await,
            cause => Err(Stumble::Fails(cause)),
        }
    }

    fn note(&self, work: &mut Work<'_>, lease: &Lease, ids: Vec<i64>) {
        if ids.is_empty() {
            return;
        }
        match &mut work.acknowledged {
            Some(ready) if ready.lease == *lease => ready.ids.extend(ids),
            other => {
                let due = Instant::now() + REMOVE_AFTER;
                let before = other.replace(Acknowledged { lease: lease.clone(), ids, due });
                // Of an earlier lease, which is over: whoever had the shard in between has seen to them.
                before.into_iter().for_each(|before| self.give_back(&before.ids));
            }
        }
        if let Some(ready) = &mut work.acknowledged
            && ready.ids.len() >= REMOVE_ROWS
        {
            ready.due = Instant::now();
        }
    }

    /// Begins to take away what was acknowledged.
    fn remove<'a>(&'a self, work: &mut Work<'a>) {
        let Some(Acknowledged { lease, ids, .. }) = work.acknowledged.take() else { return };
        let removing = async move {
            let removed = self.outbox.remove(&lease, &ids).await;
            Removal { ids, removed }
        };
        work.removal = Some(removing.boxed());
    }

    /// What was not removed is sent again.
    fn removed(&self, removal: Removal) -> Result<(), Stumble> {
        let ids = &removal.ids;
        match removal.removed {
            Ok(true) => {
                if self.under_way.removed(self.shard, ids) {
                    self.bell.notify_one();
                }
                Ok(())
            }
            Ok(false) => {
                self.give_back(ids);
                Err(Stumble::LeaseLost)
            }
            Err(cause) => {
                self.give_back(ids);
                Err(Stumble::Fails(cause))
            }
        }
    }

    /// A row that the log refuses for good becomes a dead letter and holds up nobody, the later rows of its key included:
    /// an event stands by itself and carries its version, so that whoever gets the next one without it is right about that
    /// one, and this one can be applied late.
    async fn put_aside(&self, lease: &Lease, id: i64, cause: &str) -> Result<(), Stumble> {
        match self.try_put_aside(lease, id, cause).await {
            Ok(true) => Err(Stumble::PutAside),
            Ok(false) => Err(Stumble::LeaseLost),
            Err(cause) => Err(Stumble::Fails(cause)),
        }
    }

    async fn try_put_aside(&self, lease: &Lease, id: i64, cause: &str) -> Result<bool, Error> {
        let shard = self.shard;
        // The log has taken the row, and what it refuses is rare: it is read again rather than kept each time.
        let rows = self.outbox.oldest(shard, 2 * SHARD_ROWS_MAX as u32).await?;
        let Some(row) = rows.into_iter().find(|row| row.id == id) else { return Ok(true) };
        // The copy first: it may be there twice, but is never missing.
        self.copy(row, lease, cause).await?;
        let buried = self.outbox.bury(lease, id, cause).await?;
        if buried {
            error!(%shard, id, "event {id} of the outbox is put aside, the event log refuses it for good: {cause}");
        }
        Ok(buried)
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

    /// Ends what is under way and gives it back, to be read and sent again in order: also what the log has by now, because of
    /// the rows before it.
    async fn start_anew<'a>(&'a self, work: &mut Work<'a>, batches: &mut mpsc::Receiver<Batch>, stumble: Stumble) {
        let shard = self.shard;
        self.under_way.rest(shard, true);
        while let Some(sent) = work.next_sent().await {
            self.give_back(&sent.ids);
        }
        while let Ok(batch) = batches.try_recv() {
            self.give_back(&batch.rows.iter().map(|row| row.id).collect::<Vec<_>>());
        }
        self.remove_the_rest(work).await;
        match stumble {
            Stumble::LeaseLost => {
                warn!(%shard, "lost the lease on shard {shard} while publishing; its next owner sends again")
            }
            Stumble::Fails(cause) => {
                let wait = work.wait.unwrap_or(RETRY_MIN);
                warn!(%shard, "cannot publish shard {shard}, trying again in {wait:?}: {cause}");
                tokio::select! { () = self.stop.cancelled() => {}, () = sleep(wait) => {} }
                work.wait = Some((wait * 2).min(RETRY_MAX));
            }
            Stumble::PutAside => {}
        }
        self.under_way.rest(shard, false);
        self.bell.notify_one();
    }

    /// Ends what was begun.
    async fn finish<'a>(&'a self, mut work: Work<'a>) {
        while let Some(sent) = work.next_sent().await {
            let stumbled = self.settle(&mut work, sent).await.is_err();
            if stumbled {
                break;
            }
        }
        self.remove_the_rest(&mut work).await;
    }

    /// What cannot be removed any more is sent again.
    async fn remove_the_rest<'a>(&'a self, work: &mut Work<'a>) {
        for _ in 0..2 {
            if let Some(removal) = work.removal.take() {
                // Whatever it is, the caller has begun to read again or to stop.
                let _ = self.removed(removal.await);
            }
            self.remove(work);
        }
    }

    /// They are read again.
    fn give_back(&self, ids: &[i64]) {
        self.under_way.give_back(self.shard, ids);
    }
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
