//! The streams that this pod holds open, by reader.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use chassis::{Pod, Stage, Stop};
use proto::{EventId, UserId};
use store::{
    Error,
    sets::{Connection, Connections},
};
use tokio::sync::mpsc;
use tracing::warn;

use crate::{
    events,
    limits::{REGISTER_EVERY, REGISTERED_MS, STREAM_QUEUE_EVENTS_MAX},
    told::{Told, Turn},
};

/// Renewals count from 0 on: none of them is the round that a stream joined in.
const ROUND_OF_JOINS: u64 = u64::MAX;

/// The pod's open streams.
pub(crate) struct Hub {
    pod: Pod,
    registry: Arc<dyn Connections>,
    held: Mutex<Held>,
    open: AtomicUsize,
    open_max: usize,
}

/// Under one lock, so that a stream that joins is either there when a post is told, or joins after it.
#[derive(Default)]
struct Held {
    streams: HashMap<UserId, Vec<Open>>,
    told: Told,
}

/// One stream, as the hub sees it.
struct Open {
    connection: Connection,
    /// Whether the registry has ever had it: only then can it have lost it.
    registered: bool,
    queue: mpsc::Sender<Bytes>,
    /// How many deliveries the pod had when the stream joined.
    joined: Turn,
}

/// One stream, as its reader's connection sees it. Dropping it leaves the hub and the registry.
pub(crate) struct Seat {
    hub: Arc<Hub>,
    connection: Connection,
    frames: mpsc::Receiver<Bytes>,
}

impl Hub {
    pub(crate) fn new(pod: Pod, registry: Arc<dyn Connections>, open_max: usize) -> Self {
        Self { pod, registry, held: Mutex::default(), open: AtomicUsize::new(0), open_max }
    }

    /// Takes a stream in: first here, then in the registry, so that whatever the relay sends from then on arrives. `None`
    /// when the pod is full or draining.
    pub(crate) async fn join(self: &Arc<Self>, user: UserId, id: String) -> Result<Option<Seat>, Error> {
        if self.open.fetch_add(1, Ordering::AcqRel) >= self.open_max || self.stopping() {
            self.open.fetch_sub(1, Ordering::AcqRel);
            return Ok(None);
        }
        let connection = Connection { id, pod: self.pod.name().to_owned(), user };
        let (queue, frames) = mpsc::channel(STREAM_QUEUE_EVENTS_MAX);
        {
            let mut held = self.held();
            let joined = held.told.turn();
            let stream = Open { connection: connection.clone(), registered: false, queue, joined };
            held.streams.entry(user).or_default().push(stream);
        }
        let seat = Seat { hub: self.clone(), connection, frames };
        // A drain that began meanwhile may have closed all streams before this one was there.
        if self.stopping() {
            return Ok(None);
        }
        self.registry.register(std::slice::from_ref(&seat.connection), REGISTERED_MS, ROUND_OF_JOINS).await?;
        for stream in self.held().streams.get_mut(&user).into_iter().flatten() {
            stream.registered |= stream.connection.id == seat.connection.id;
        }
        Ok(Some(seat))
    }

    /// Sends the frame of an event to the streams of these readers, once a stream. A stream that does not keep up is closed.
    pub(crate) fn send(&self, readers: &[UserId], event: EventId, frame: &Bytes) {
        let mut held = self.held();
        let first = held.told.again(event);
        for reader in readers {
            if let Some(open) = held.streams.get_mut(reader) {
                let has_had_it = |stream: &Open| first.is_some_and(|first| stream.joined < first);
                open.retain_mut(|stream| has_had_it(stream) || stream.put(frame.clone()));
            }
        }
    }

    /// Registers every stream again, in time, until asked to stop. A stream that the registry had lost was unknown to the
    /// relay meanwhile, and is told so.
    pub(crate) async fn keep_registered(&self, stop: Stop) {
        let mut round = 0;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REGISTER_EVERY) => {}
            }
            let held: Vec<_> = self
                .held()
                .streams
                .values()
                .flatten()
                .filter(|stream| stream.registered)
                .map(|stream| stream.connection.clone())
                .collect();
            match self.registry.register(&held, REGISTERED_MS, round).await {
                Ok(lost) => {
                    round += 1;
                    self.tell_the_lost(&lost);
                }
                // In the same round again: it may have been done, and only its answer lost.
                Err(cause) => warn!("cannot renew the connections, trying again: {cause}"),
            }
        }
    }

    fn tell_the_lost(&self, lost: &[Connection]) {
        if !lost.is_empty() {
            warn!("the registry had lost {} connections; their streams are told to read again", lost.len());
            let lost: HashSet<_> = lost.iter().map(|connection| connection.id.as_str()).collect();
            self.tell_of_a_gap(|connection| lost.contains(connection.id.as_str()));
        }
    }

    /// Tells every stream that events may have been missed.
    pub(crate) fn tell_all_of_a_gap(&self) {
        self.tell_of_a_gap(|_| true);
    }

    fn tell_of_a_gap(&self, whom: impl Fn(&Connection) -> bool) {
        for open in self.held().streams.values_mut() {
            open.retain_mut(|stream| !whom(&stream.connection) || stream.put(events::GAP));
        }
    }

    /// Closes every stream and takes it off the registry.
    pub(crate) async fn close_all(&self) {
        let closed: Vec<_> = self.held().streams.drain().flat_map(|(_, open)| open).collect();
        for stream in closed {
            self.forget(&stream.connection).await;
        }
    }

    fn stopping(&self) -> bool {
        self.pod.tasks.stop_of(Stage::Streams).is_cancelled()
    }

    async fn forget(&self, connection: &Connection) {
        if let Err(cause) = self.registry.forget(connection).await {
            // It runs out by itself.
            warn!(connection = connection.id, "cannot take a connection off the registry: {cause}");
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// False when the stream is gone or too slow, and is to be dropped.
    fn put(&mut self, frame: Bytes) -> bool {
        match self.queue.try_send(frame) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                let connection = &self.connection.id;
                tracing::info!(connection, "closed a stream that did not keep up");
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

impl Seat {
    /// The next frame; `None` when the stream is to close.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        self.frames.recv().await
    }

    pub(crate) fn connection_id(&self) -> &str {
        &self.connection.id
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hub.open.fetch_sub(1, Ordering::AcqRel);
        let mut held = self.hub.held();
        if let Some(open) = held.streams.get_mut(&self.connection.user) {
            open.retain(|stream| stream.connection.id != self.connection.id);
            if open.is_empty() {
                held.streams.remove(&self.connection.user);
            }
        }
        drop(held);
        let (hub, connection) = (self.hub.clone(), self.connection.clone());
        self.hub.pod.tasks.errand("leave", Stage::Streams, move |_| async move { hub.forget(&connection).await });
    }
}
