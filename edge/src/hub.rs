//! The streams that this pod holds open, by reader.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use chassis::{Pod, Stage, Stop};
use proto::{PostId, UserId};
use store::{
    Error,
    sets::{Connection, Connections},
};
use tokio::sync::mpsc;
use tracing::warn;

use crate::{
    events,
    limits::{REGISTER_EVERY, REGISTERED_MS, STREAM_QUEUE_EVENTS_MAX, STREAM_SEEN_POSTS_MAX},
};

/// The pod's open streams.
pub(crate) struct Hub {
    pod: Pod,
    registry: Arc<dyn Connections>,
    streams: Mutex<HashMap<UserId, Vec<Open>>>,
    open: AtomicUsize,
    open_max: usize,
}

/// One stream, as the hub sees it.
struct Open {
    connection: Connection,
    /// Whether the registry has ever had it: only then can it have lost it.
    registered: bool,
    queue: mpsc::Sender<Bytes>,
    seen: VecDeque<PostId>,
}

/// One stream, as its reader's connection sees it. Dropping it leaves the hub and the registry.
pub(crate) struct Seat {
    hub: Arc<Hub>,
    connection: Connection,
    frames: mpsc::Receiver<Bytes>,
}

impl Hub {
    pub(crate) fn new(pod: Pod, registry: Arc<dyn Connections>, open_max: usize) -> Self {
        Self { pod, registry, streams: Mutex::default(), open: AtomicUsize::new(0), open_max }
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
        self.streams().entry(user).or_default().push(Open {
            connection: connection.clone(),
            registered: false,
            queue,
            seen: VecDeque::new(),
        });
        let seat = Seat { hub: self.clone(), connection, frames };
        // A drain that began meanwhile may have closed all streams before this one was there.
        if self.stopping() {
            return Ok(None);
        }
        self.registry.register(std::slice::from_ref(&seat.connection), REGISTERED_MS).await?;
        for stream in self.streams().get_mut(&user).into_iter().flatten() {
            stream.registered |= stream.connection.id == seat.connection.id;
        }
        Ok(Some(seat))
    }

    /// Sends a frame about a post to the streams of these readers, once a stream. A stream that does not keep up is closed.
    pub(crate) fn send(&self, readers: &[UserId], post: PostId, frame: &Bytes) {
        let mut streams = self.streams();
        for reader in readers {
            if let Some(open) = streams.get_mut(reader) {
                open.retain_mut(|stream| stream.send(post, frame));
            }
        }
    }

    /// Registers every stream again, in time, until asked to stop. A stream that the registry had lost was unknown to the
    /// relay meanwhile, and is told so.
    pub(crate) async fn keep_registered(&self, stop: Stop) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(REGISTER_EVERY) => {}
            }
            let held: Vec<_> = self
                .streams()
                .values()
                .flatten()
                .filter(|stream| stream.registered)
                .map(|stream| stream.connection.clone())
                .collect();
            match self.registry.register(&held, REGISTERED_MS).await {
                Ok(lost) if lost.is_empty() => {}
                Ok(lost) => {
                    warn!("the registry had lost {} connections; their streams are told to read again", lost.len());
                    let lost: HashSet<_> = lost.iter().map(|connection| connection.id.as_str()).collect();
                    self.tell_of_a_gap(|connection| lost.contains(connection.id.as_str()));
                }
                Err(cause) => warn!("cannot renew the connections, trying again: {cause}"),
            }
        }
    }

    /// Tells every stream that events may have been missed.
    pub(crate) fn tell_all_of_a_gap(&self) {
        self.tell_of_a_gap(|_| true);
    }

    fn tell_of_a_gap(&self, whom: impl Fn(&Connection) -> bool) {
        for open in self.streams().values_mut() {
            open.retain_mut(|stream| !whom(&stream.connection) || stream.put(events::GAP));
        }
    }

    /// Closes every stream and takes it off the registry.
    pub(crate) async fn close_all(&self) {
        let closed: Vec<_> = self.streams().drain().flat_map(|(_, open)| open).collect();
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

    fn streams(&self) -> MutexGuard<'_, HashMap<UserId, Vec<Open>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// False when the stream is gone or too slow, and is to be dropped.
    fn send(&mut self, post: PostId, frame: &Bytes) -> bool {
        if self.seen.contains(&post) {
            return true;
        }
        if self.seen.len() == STREAM_SEEN_POSTS_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(post);
        self.put(frame.clone())
    }

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
        let mut streams = self.hub.streams();
        if let Some(open) = streams.get_mut(&self.connection.user) {
            open.retain(|stream| stream.connection.id != self.connection.id);
            if open.is_empty() {
                streams.remove(&self.connection.user);
            }
        }
        drop(streams);
        let (hub, connection) = (self.hub.clone(), self.connection.clone());
        self.hub.pod.tasks.errand("leave", Stage::Streams, move |_| async move { hub.forget(&connection).await });
    }
}
