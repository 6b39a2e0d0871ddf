//! What is done with a lane, one job at a time: beginning it, applying a batch, driving dead letters again, noting how far it
//! is. A job has the lane to itself, so dead letters that are driven again never race the lane's new events.

mod batch;

use std::{collections::HashSet, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use batch::Batch;
use chassis::{Pod, Stop, failpoint};
use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::time::Instant;
use tracing::{error, info};

use super::{
    Consumption, Group,
    handlers::{Event, Failure, Handler, Verdict},
    retry::{End, Patience},
};
use crate::{
    Error,
    event_log::{EventLog, Lane, Received, Turn},
    ledger::{
        DeadLetters,
        dead_letters::{Cause, DeadLetter, NewLetter, PARKED_KEYS_MAX},
    },
};

/// How long after its fetch an event may be applied, and how long other jobs may take.
pub(super) const APPLY_WITHIN: Duration = Duration::from_secs(60);
/// Dead letters that are read at once to be driven again.
const REDRIVE_LETTERS: u32 = 100;

/// The keys of a lane that have dead letters.
pub(super) type Parked = HashSet<String>;

/// What there is to do with a lane.
pub(super) enum Job {
    /// It is new here.
    Begin,
    /// Events came by it.
    Apply(Vec<Fetched>, Parked),
    /// Dead letters of it are to be driven again.
    Redrive,
    /// It is time to note how far it is, as far as that is known.
    Note(Option<i64>),
    /// It went back to where the sets are.
    Accept,
}

/// An event, and until when it may be applied.
pub(super) struct Fetched {
    pub(super) event: Received,
    pub(super) not_after: Instant,
}

/// What became of a job.
pub(super) struct Worked {
    pub(super) lane: Lane,
    pub(super) turn: Turn,
    /// The last event that was applied or put aside: all before it are too.
    pub(super) done: Option<i64>,
    /// The keys with dead letters, where the job knows.
    pub(super) parked: Option<Parked>,
    pub(super) then: Then,
}

/// How a lane goes on after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    GoOn,
    Ended(End),
    /// What came after this position must be applied again.
    BackTo(i64),
}

/// Does jobs.
pub(super) struct Worker {
    pub(super) pod: Pod,
    pub(super) log: Arc<dyn EventLog>,
    pub(super) letters: Arc<dyn DeadLetters>,
    pub(super) group: Arc<Group>,
    pub(super) stop: Stop,
}

impl Worker {
    pub(super) fn new(consumption: &Consumption, stop: Stop) -> Self {
        let Consumption { pod, log, letters, group } = consumption.clone();
        Self { pod, log, letters, group, stop }
    }

    /// Does a job on a lane.
    pub(super) async fn work(&self, lane: Lane, turn: Turn, job: Job) -> Worked {
        let mut worked = Worked { lane, turn, done: None, parked: None, then: Then::GoOn };
        let outcome = match job {
            Job::Begin => self.begin(lane, &mut worked).await,
            Job::Apply(events, parked) => Batch::new(self, lane, parked).apply(events, &mut worked).await,
            Job::Redrive => self.redrive(lane, &mut worked).await,
            Job::Accept => self.accept(lane).await,
            Job::Note(position) => self.note(lane, position, &mut worked).await,
        };
        if let Err(end) = outcome {
            worked.then = Then::Ended(end);
        }
        worked
    }

    fn patience(&self, lane: Lane, not_after: Instant) -> Patience<'_> {
        Patience::new(&self.pod, self.group.name, lane, not_after, &self.stop)
    }

    /// Asks the stores until they answer.
    async fn asked<'f, T>(
        &self,
        lane: Lane,
        ask: impl Fn() -> BoxFuture<'f, Result<T, Error>> + Send,
    ) -> Result<T, End> {
        let mut patience = self.patience(lane, Instant::now() + APPLY_WITHIN);
        loop {
            match ask().await {
                Ok(answer) => {
                    patience.passed();
                    return Ok(answer);
                }
                Err(cause) => patience.wait(cause.to_string()).await?,
            }
        }
    }

    async fn begin(&self, lane: Lane, worked: &mut Worked) -> Result<(), End> {
        // An older release may have put aside what this one knows.
        let kinds = self.group.handlers.kinds();
        let known = self.asked(lane, || self.letters.redrive_known(self.group.name, lane, &kinds)).await?;
        if known > 0 {
            info!("{} drives {known} dead letters of {lane} again, whose types it knows", self.group.name);
        }
        worked.parked = Some(self.parked(lane).await?);
        self.note(lane, None, worked).await
    }

    async fn parked(&self, lane: Lane) -> Result<Parked, End> {
        let keys = self.asked(lane, || self.letters.parked_keys(self.group.name, lane)).await?;
        Ok(keys.into_iter().filter(|key| !key.is_empty()).collect())
    }

    async fn note(&self, lane: Lane, position: Option<i64>, worked: &mut Worked) -> Result<(), End> {
        let Some(progress) = &self.group.progress else { return Ok(()) };
        if let Some(applied) = self.asked(lane, || progress.note(lane, position)).await? {
            worked.then = Then::BackTo(applied);
        }
        Ok(())
    }

    async fn accept(&self, lane: Lane) -> Result<(), End> {
        let Some(progress) = &self.group.progress else { return Ok(()) };
        self.asked(lane, || progress.accept(lane)).await
    }

    /// Drives letters again, in order, until none is left. One that fails again holds its key up as before.
    async fn redrive(&self, lane: Lane, worked: &mut Worked) -> Result<(), End> {
        loop {
            let name = self.group.name;
            let letters = self.asked(lane, || self.letters.to_redrive(name, lane, REDRIVE_LETTERS)).await?;
            if letters.is_empty() {
                worked.parked = Some(self.parked(lane).await?);
                return Ok(());
            }
            // Letters behind one that fails are no longer ordered, whatever was read.
            let mut failed = HashSet::new();
            for letter in &letters {
                if !failed.contains(&letter.event.record.key) && !self.redrive_one(lane, letter).await? {
                    failed.insert(letter.event.record.key.clone());
                }
            }
        }
    }

    /// Whether it could be applied at last.
    async fn redrive_one(&self, lane: Lane, letter: &DeadLetter) -> Result<bool, End> {
        let mut patience = self.patience(lane, Instant::now() + APPLY_WITHIN);
        let refused = match self.group.handlers.judge(&self.pod, self.group.name, &letter.event) {
            Verdict::Skip => None,
            Verdict::Never(cause, error) => Some((cause, error)),
            Verdict::Apply(handler, event) => {
                let refusal = self.settle(&*handler, std::slice::from_ref(&*event), &mut patience).await?;
                refusal.map(|error| (Cause::BrokenRule, error))
            }
        };
        match &refused {
            None => self.asked(lane, || self.letters.resolve(letter.id)).await?,
            Some((cause, error)) => {
                let keep = || self.letters.keep(letter, *cause, error, self.pod.name());
                self.asked(lane, keep).await?;
            }
        }
        let (id, kind) = (letter.id, &letter.event.record.kind);
        match refused {
            None => info!(id, "a dead letter of {lane}, a {kind} event, was driven again and is applied"),
            Some((_, ref error)) => error!(id, "a dead letter of {lane}, a {kind} event, failed again: {error}"),
        }
        Ok(refused.is_none())
    }

    /// Applies events by one handler, trying again for as long as it may pass. Why they never can be, if so.
    async fn settle(
        &self,
        handler: &dyn Handler,
        events: &[Event],
        patience: &mut Patience<'_>,
    ) -> Result<Option<String>, End> {
        loop {
            patience.check()?;
            failpoint::reach("consumer.before_apply").await;
            // An event that makes a handler panic must not do so for ever.
            let applied = AssertUnwindSafe(handler.apply(events, patience.not_after())).catch_unwind().await;
            match applied {
                Ok(Ok(())) => {
                    patience.passed();
                    return Ok(None);
                }
                Ok(Err(Failure::Final(cause))) => return Ok(Some(cause)),
                Ok(Err(Failure::Passing(cause))) => patience.wait(cause.to_string()).await?,
                Err(_) => return Ok(Some("its handler panicked".to_owned())),
            }
        }
    }
}
