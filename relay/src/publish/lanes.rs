//! The lanes of a pod: one for each shard that it has ever held, and the reader and the marks that serve all of them.

use std::{panic::resume_unwind, sync::Arc};

use chassis::Stop;
use store::{Shard, event_log::EventLog, ledger::Outbox};
use tokio::{
    sync::{Notify, mpsc, watch},
    task::{JoinError, JoinSet},
};
use tracing::{Instrument as _, Span};

use super::{
    held::Held,
    lane::Lane,
    marks::Marks,
    reader::{Queues, Reader},
    under_way::{SHARD_ROWS_MAX, UnderWay},
};

/// The lanes of a pod.
pub(super) struct Lanes {
    outbox: Arc<dyn Outbox>,
    log: Arc<dyn EventLog>,
    held: watch::Receiver<Held>,
    queues: watch::Sender<Queues>,
    under_way: Arc<UnderWay>,
    bell: Arc<Notify>,
    stop: Stop,
    running: JoinSet<()>,
}

impl Lanes {
    /// No lanes yet, but what serves them.
    pub(super) fn new(
        outbox: Arc<dyn Outbox>,
        log: Arc<dyn EventLog>,
        held: watch::Receiver<Held>,
        stop: Stop,
    ) -> Self {
        let (queues, under_way, bell) = (watch::Sender::default(), Arc::default(), Arc::default());
        let mut lanes = Self { outbox, log, held, queues, under_way, bell, stop, running: JoinSet::new() };
        let Self { outbox, log, held, queues, under_way, bell, stop, running } = &mut lanes;
        let marks = Marks { outbox: outbox.clone(), log: log.clone(), held: held.clone(), stop: stop.clone() };
        let reader = Reader {
            outbox: outbox.clone(),
            held: held.clone(),
            queues: queues.subscribe(),
            under_way: under_way.clone(),
            bell: bell.clone(),
            stop: stop.clone(),
        };
        running.spawn(async move { marks.run().await }.instrument(Span::current()));
        running.spawn(async move { reader.run().await }.instrument(Span::current()));
        lanes
    }

    /// Opens the lanes of shards that have none yet. A lane stays when its shard goes to another relay: nothing is read for it
    /// until there is a lease again. So no shard ever has two lanes.
    pub(super) fn open(&mut self, shards: impl Iterator<Item = Shard>) {
        for shard in shards.filter(|shard| !self.queues.borrow().contains_key(shard)).collect::<Vec<_>>() {
            let (queue, batches) = mpsc::channel(SHARD_ROWS_MAX);
            self.queues.send_modify(|queues| {
                queues.insert(shard, queue);
            });
            let lane = Lane {
                shard,
                outbox: self.outbox.clone(),
                log: self.log.clone(),
                held: self.held.clone(),
                under_way: self.under_way.clone(),
                bell: self.bell.clone(),
                stop: self.stop.clone(),
            };
            self.running.spawn(async move { lane.run(batches).await }.instrument(Span::current()));
        }
    }

    /// Rows may wait.
    pub(super) fn wake(&self) {
        self.bell.notify_one();
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
