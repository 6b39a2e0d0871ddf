//! Wake-ups of those who publish the outbox. What this process commits wakes it at once; other processes are told by NOTIFY,
//! outside the transactions and one for many: a NOTIFY inside would make commits wait for each other. It is a hint: what it
//! misses is found by the next poll.

use std::{convert::Infallible, time::Duration};

use chassis::{OnFailure, Stage, Stop};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgListener},
};
use tokio::{sync::watch, time::timeout};
use tracing::warn;

use super::connect;
use crate::Parts;

/// Channels are a database's own, so installations that share a server do not hear each other.
const CHANNEL: &str = "freshet_outbox";
/// The least time between two NOTIFYs of a pod: half of it is what an event waits for at load.
const TELL_EVERY: Duration = Duration::from_millis(1);
/// How long a NOTIFY, or a look whether the listening connection lives, may take.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// When nothing was heard for so long, the listening connection is asked whether it lives.
const CHECK_EVERY: Duration = Duration::from_secs(10);
const RECONNECT_MIN: Duration = Duration::from_millis(50);
const RECONNECT_MAX: Duration = Duration::from_secs(5);

/// What wakes those who publish.
pub(super) struct Wakeups {
    /// Rises with every commit that is known of, here or elsewhere.
    heard: watch::Sender<u64>,
    /// Rises with every commit of this process.
    committed: watch::Sender<u64>,
    /// Whether anyone here publishes: a pod that does not needs no connection to listen on.
    wanted: watch::Sender<bool>,
}

impl Wakeups {
    /// Starts telling other processes, and listening to them once somebody wants to know.
    pub(super) fn start(pool: &PgPool, options: &PgConnectOptions, parts: &Parts) -> Self {
        let this =
            Self { heard: watch::Sender::new(0), committed: watch::Sender::new(0), wanted: watch::Sender::new(false) };
        // By its name a process knows its own messages.
        let name = format!("{:016x}", parts.random.number());
        let teller = Teller { pool: pool.clone(), committed: this.committed.subscribe(), name: name.clone() };
        let listener =
            Listener { options: options.clone(), heard: this.heard.clone(), wanted: this.wanted.subscribe(), name };
        let tasks = &parts.pod.tasks;
        tasks.spawn("outbox teller", Stage::Foundations, OnFailure::Restart, move |stop| teller.clone().run(stop));
        tasks.spawn("outbox listener", Stage::Foundations, OnFailure::Restart, move |stop| listener.clone().run(stop));
        this
    }

    /// Rows were committed.
    pub(super) fn committed(&self) {
        self.heard.send_modify(|generation| *generation += 1);
        self.committed.send_modify(|generation| *generation += 1);
    }

    /// Changes whenever rows were committed, here or elsewhere.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.wanted.send_if_modified(|wanted| !std::mem::replace(wanted, true));
        self.heard.subscribe()
    }

    /// Becomes true, once and for all, when somebody here publishes.
    pub(super) fn wanted(&self) -> watch::Receiver<bool> {
        self.wanted.subscribe()
    }
}

#[derive(Clone)]
struct Teller {
    pool: PgPool,
    committed: watch::Receiver<u64>,
    name: String,
}

impl Teller {
    /// Tells of commits until the pod has drained, or the ledger is gone.
    async fn run(mut self, stop: Stop) -> Result<(), Infallible> {
        loop {
            let ended = tokio::select! {
                () = stop.cancelled() => true,
                changed = self.committed.changed() => changed.is_err(),
            };
            if ended && !self.committed.has_changed().unwrap_or(false) {
                return Ok(());
            }
            // Before the NOTIFY: what is committed while it is under way is told of by the next one.
            self.committed.mark_unchanged();
            self.tell().await;
            tokio::time::sleep(TELL_EVERY).await;
        }
    }

    async fn tell(&self) {
        let query = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(&self.name).execute(&self.pool);
        match timeout(ANSWER_MAX, query).await {
            Ok(Ok(_)) => {}
            Ok(Err(cause)) => warn!("cannot tell other pods of new events, which they will find by polling: {cause}"),
            Err(_) => {
                warn!("cannot tell other pods of new events within {ANSWER_MAX:?}; they will find them by polling")
            }
        }
    }
}

#[derive(Clone)]
struct Listener {
    options: PgConnectOptions,
    heard: watch::Sender<u64>,
    wanted: watch::Receiver<bool>,
    name: String,
}

impl Listener {
    /// Listens from when somebody wants to know until the pod has drained, or the ledger is gone.
    async fn run(mut self, stop: Stop) -> Result<(), Infallible> {
        let mut wanted = self.wanted.clone();
        let ended = async {
            if wanted.wait_for(|wanted| *wanted).await.is_ok() {
                self.keep_listening().await;
            }
        };
        tokio::select! { () = stop.cancelled() => {}, () = ended => {} }
        Ok(())
    }

    async fn keep_listening(&mut self) {
        let mut wait = RECONNECT_MIN;
        loop {
            let before = *self.heard.borrow();
            let cause = tokio::select! {
                // It only ever becomes true: a change now means that nobody holds the other end.
                _ = self.wanted.wait_for(|wanted| !wanted) => return,
                cause = listen(&self.options, &self.heard, &self.name) => cause,
            };
            warn!(
                "the connection that tells of other pods' events is lost; they are found by polling meanwhile: {cause}"
            );
            if *self.heard.borrow() != before {
                wait = RECONNECT_MIN;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(RECONNECT_MAX);
        }
    }
}

/// Listens for as long as the connection lives, and says why it does not any more.
async fn listen(options: &PgConnectOptions, heard: &watch::Sender<u64>, name: &str) -> sqlx::Error {
    let listening = async {
        let mut listener = PgListener::connect_with(&connect::listening_pool(options)).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(listener)
    };
    let mut listener = match timeout(ANSWER_MAX, listening).await {
        Ok(Ok(listener)) => listener,
        Ok(Err(cause)) => return cause,
        Err(_) => return std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
    };
    // What was committed before has not been heard of.
    heard.send_modify(|generation| *generation += 1);
    loop {
        match timeout(CHECK_EVERY, listener.try_recv()).await {
            Ok(Ok(Some(message))) if message.payload() == name => {}
            Ok(Ok(Some(_))) => heard.send_modify(|generation| *generation += 1),
            Ok(Ok(None)) => return std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into(),
            Ok(Err(cause)) => return cause,
            Err(_) => match timeout(ANSWER_MAX, sqlx::query("SELECT 1").execute(&mut listener)).await {
                Ok(Ok(_)) => {}
                Ok(Err(cause)) => return cause,
                Err(_) => return std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
            },
        }
    }
}
