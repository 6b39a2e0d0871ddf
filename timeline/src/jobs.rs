//! Jobs: work that a change leaves to be done, chunk by chunk. Timeline pods do them, because a chunk writes the ledger and
//! needs ids. After each chunk the job is given back and the one that waits longest is taken: a long one holds up nobody.

mod clean_up;
mod modes;

use std::{sync::Arc, time::Duration};

use chassis::{Clock, Error, OnFailure, Pod, Stage, Stop, failpoint, health::Health, id::Minter};
use clean_up::CleanUp;
use modes::Crossings;
use store::{
    Stores,
    ledger::{self, FollowLimits, Job, JobKind},
};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

/// Far longer than a chunk takes. Nobody waits for it but the job of a pod that died.
const LEASE_TTL: Duration = Duration::from_secs(30);
/// How often it is looked for jobs of other pods, which nobody here was told of.
const POLL_EVERY: Duration = Duration::from_secs(3);
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// The part of the pod that health speaks of.
const PART: &str = "jobs";

/// What is to become of a job after a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// It goes on from this step.
    Step(i64),
    /// It is through, or nobody wants it any more.
    Through,
    /// It ended with its last chunk.
    Ended,
}

/// Does jobs for as long as its pod runs.
pub(crate) struct Jobs {
    ledger: Arc<dyn ledger::Jobs>,
    clean_up: CleanUp,
    crossings: Crossings,
    health: Health,
    owner: String,
}

impl Jobs {
    pub(crate) fn start(pod: &Pod, stores: &Stores, ids: Arc<Minter>, clock: Arc<dyn Clock>, limits: FollowLimits) {
        let jobs = Arc::new(Self {
            ledger: stores.ledger.jobs.clone(),
            clean_up: CleanUp::new(stores, ids.clone(), limits),
            crossings: Crossings::new(stores, ids, clock),
            health: pod.health.clone(),
            owner: pod.name().to_owned(),
        });
        pod.tasks.spawn("jobs", Stage::Loops, OnFailure::Restart, move |stop| {
            let jobs = jobs.clone();
            async move {
                jobs.run(stop).await;
                Ok::<(), std::convert::Infallible>(())
            }
        });
    }

    async fn run(&self, stop: Stop) {
        let mut made = self.ledger.made();
        let mut backoff = BACKOFF_MIN;
        while !stop.is_cancelled() {
            // Seen before it is looked: what is made meanwhile wakes once more.
            made.mark_unchanged();
            match self.turn(backoff).await {
                Ok(found) => {
                    self.recovered();
                    backoff = BACKOFF_MIN;
                    if !found {
                        tokio::select! { () = stop.cancelled() => {}, _ = timeout(POLL_EVERY, made.changed()) => {} }
                    }
                }
                Err(cause) => {
                    self.troubled(&cause);
                    tokio::select! { () = stop.cancelled() => {}, () = sleep(backoff) => {} }
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                }
            }
        }
    }

    /// Does a chunk of the job that waits longest. False when none waits. One that fails is put off, so that others are done
    /// meanwhile.
    async fn turn(&self, put_off: Duration) -> Result<bool, Error> {
        let Some(job) = self.ledger.claim(&self.owner, LEASE_TTL).await? else { return Ok(false) };
        match self.chunk(&job).await {
            Ok(next) => {
                failpoint::reach(&format!("jobs.{}.{}", job.kind.name(), job.step)).await;
                self.settle(&job, next).await?;
                Ok(true)
            }
            Err(cause) => {
                // Where the ledger is what fails, the lease runs out.
                if let Err(also) = self.ledger.postpone(&job, put_off).await {
                    debug!("{job} is not put off: {also}");
                }
                Err(cause)
            }
        }
    }

    /// A chunk may have been done before, by one who died before it wrote that down: done again it changes nothing.
    async fn chunk(&self, job: &Job) -> Result<Next, Error> {
        match job.kind {
            JobKind::CleanUp => self.clean_up.chunk(job).await,
            JobKind::MarkPull | JobKind::MergePulled => self.crossings.chunk(job).await,
        }
    }

    async fn settle(&self, job: &Job, next: Next) -> Result<(), Error> {
        let kept = match next {
            Next::Step(step) => self.ledger.advance(job, step).await?,
            Next::Through => self.ledger.finish(job).await?,
            Next::Ended => true,
        };
        match next {
            _ if !kept => warn!("{job} took too long, and is another pod's"),
            Next::Through | Next::Ended => info!("{job} is through"),
            Next::Step(_) => {}
        }
        Ok(())
    }

    fn troubled(&self, cause: &Error) {
        // Once for each time: whoever uses the same store complains too.
        if self.health.degrade(PART, cause.to_string()) {
            warn!("jobs wait, and are tried again: {cause}");
        }
    }

    fn recovered(&self) {
        if self.health.recover(PART) {
            info!("jobs go on");
        }
    }
}
