//! Tasks, each with a kind: what its failure means. They stop in stages, so that what others stand on stops last.

use std::{
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument as _, Span, error, warn};

use crate::metrics::Metrics;

const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// A task that ran for so long had recovered: its next failure starts from the shortest wait again.
const RECOVERED_AFTER: Duration = Duration::from_secs(60);

/// What a task's failure (an error or a panic) means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// Somebody's errand: it is logged, and the pod goes on without it.
    Log,
    /// The pod's daily work: it is logged and started again, with backoff.
    Restart,
    /// The pod cannot stand without it: the pod drains and ends.
    StopPod,
}

/// When a task is asked to stop. Stages stop one after the other, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Loops that consume, publish and renew leases; they release what they hold.
    Loops,
    /// Long answers, such as open event streams.
    Streams,
    /// Servers: they finish the calls under way.
    Servers,
    /// What servers stand on, such as the right to mint ids.
    Foundations,
}

impl Stage {
    /// All of them, in the order in which they stop.
    pub const IN_ORDER: [Self; 4] = [Self::Loops, Self::Streams, Self::Servers, Self::Foundations];
}

/// Tells a task that it should come to an end.
pub type Stop = CancellationToken;

/// Spawns a pod's tasks, and knows what became of them.
#[derive(Clone)]
pub struct Tasks(Arc<Inner>);

struct Inner {
    span: Span,
    metrics: Metrics,
    stages: [(Stop, TaskTracker); Stage::IN_ORDER.len()],
    aborted: Stop,
    failed: Stop,
    deaths: Mutex<Vec<String>>,
}

impl Tasks {
    /// Tasks that log under this span.
    #[must_use]
    pub fn new(span: Span, metrics: Metrics) -> Self {
        Self(Arc::new(Inner {
            span,
            metrics,
            stages: std::array::from_fn(|_| (Stop::new(), TaskTracker::new())),
            aborted: Stop::new(),
            failed: Stop::new(),
            deaths: Mutex::default(),
        }))
    }

    /// Starts a task. `make` makes it anew at each start, and gets the token that asks it to stop.
    pub fn spawn<M, F, E>(&self, name: &'static str, stage: Stage, on_failure: OnFailure, mut make: M)
    where
        M: FnMut(Stop) -> F + Send + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        let (stop, tracker) = &self.0.stages[stage as usize];
        let (tasks, stop) = (self.clone(), stop.clone());
        let aborted = self.0.aborted.clone();
        let run = async move {
            let mut backoff = BACKOFF_MIN;
            loop {
                let started = Instant::now();
                let made = make(stop.clone());
                let Err(failure) = outcome(made).await else { return };
                tasks.died(name, on_failure, &failure);
                if on_failure != OnFailure::Restart || stop.is_cancelled() {
                    return;
                }
                if started.elapsed() > RECOVERED_AFTER {
                    backoff = BACKOFF_MIN;
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(backoff) => backoff = (backoff * 2).min(BACKOFF_MAX),
                }
            }
        };
        let run = async move {
            tokio::select! { () = aborted.cancelled() => {}, () = run => {} }
        };
        tracker.spawn(run.instrument(self.0.span.clone()));
    }

    /// Starts a task that can run only once: what it takes is gone when it ends.
    pub fn once<F, E>(
        &self,
        name: &'static str,
        stage: Stage,
        on_failure: OnFailure,
        make: impl FnOnce(Stop) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display,
    {
        debug_assert_ne!(on_failure, OnFailure::Restart, "{name} could not start a second time");
        let mut make = Some(make);
        self.spawn(name, stage, on_failure, move |stop| {
            let made = make.take().map(|make| make(stop));
            async move {
                match made {
                    Some(work) => work.await,
                    None => Ok(()),
                }
            }
        });
    }

    /// Starts an errand: it runs once and cannot fail but by a panic, which is only logged.
    pub fn errand<F>(&self, name: &'static str, stage: Stage, make: impl FnOnce(Stop) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.once(name, stage, OnFailure::Log, move |stop| {
            let work = make(stop);
            async move {
                work.await;
                Ok::<(), std::convert::Infallible>(())
            }
        });
    }

    /// Resolves when a task died that the pod cannot stand without.
    pub async fn failed(&self) {
        self.0.failed.cancelled().await;
    }

    /// The token that asks the tasks of a stage to stop.
    #[must_use]
    pub fn stop_of(&self, stage: Stage) -> Stop {
        self.0.stages[stage as usize].0.clone()
    }

    /// The tasks that ended by an error or a panic, with what they said.
    #[must_use]
    pub fn deaths(&self) -> Vec<String> {
        self.0.deaths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks the tasks of a stage to stop and waits for them until the deadline. False when some are still there.
    pub async fn stop(&self, stage: Stage, deadline: Instant) -> bool {
        let (stop, tracker) = &self.0.stages[stage as usize];
        stop.cancel();
        tracker.close();
        tokio::time::timeout_at(deadline, tracker.wait()).await.is_ok()
    }

    /// Ends whatever is left, at once.
    pub async fn abort(&self) {
        self.0.aborted.cancel();
        for (_, tracker) in &self.0.stages {
            tracker.close();
            tracker.wait().await;
        }
    }

    fn died(&self, name: &'static str, on_failure: OnFailure, failure: &str) {
        self.0.metrics.task_died(name);
        self.0.deaths.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{name}: {failure}"));
        match on_failure {
            OnFailure::Log => warn!(task = name, "task {name} failed: {failure}"),
            OnFailure::Restart => error!(task = name, "task {name} failed and is started again: {failure}"),
            OnFailure::StopPod => {
                error!(task = name, "task {name} failed; the pod cannot stand without it and stops: {failure}");
                self.0.failed.cancel();
            }
        }
    }
}

/// A task's end: its own error, or what it panicked with.
async fn outcome<E: fmt::Display>(task: impl Future<Output = Result<(), E>>) -> Result<(), String> {
    match AssertUnwindSafe(task).catch_unwind().await {
        Ok(ended) => ended.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("panicked: {}", panic_text(&*panic))),
    }
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn tasks() -> Tasks {
        Tasks::new(Span::none(), Metrics::default())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[tokio::test(start_paused = true)]
    async fn a_restarted_task_comes_back_after_an_error_and_after_a_panic() {
        let (tasks, runs) = (tasks(), Arc::new(AtomicU32::new(0)));
        let counted = runs.clone();
        let (sender, mut finished) = tokio::sync::mpsc::channel(1);
        tasks.spawn("flaky", Stage::Loops, OnFailure::Restart, move |_| {
            let (run, sender) = (counted.fetch_add(1, Ordering::SeqCst), sender.clone());
            async move {
                match run {
                    0 => Err("no luck"),
                    1 => panic!("worse luck"),
                    _ => sender.send(()).await.map_err(|_| "nobody waits"),
                }
            }
        });
        finished.recv().await.unwrap();
        assert_eq!(runs.load(Ordering::SeqCst), 3);
        assert_eq!(tasks.deaths(), ["flaky: no luck", "flaky: panicked: worse luck"]);
    }

    #[tokio::test]
    async fn a_vital_task_stops_the_pod_and_an_errand_does_not() {
        let tasks = tasks();
        tasks.spawn("errand", Stage::Loops, OnFailure::Log, |_| async { Err("lost its way") });
        assert!(tasks.stop(Stage::Loops, soon()).await);
        assert!(tasks.failed().now_or_never().is_none());
        tasks.spawn("server", Stage::Servers, OnFailure::StopPod, |_| async { Err("port gone") });
        tasks.failed().await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_stop_in_time_is_ended() {
        let tasks = tasks();
        tasks.spawn("deaf", Stage::Loops, OnFailure::Log, |_| std::future::pending::<Result<(), String>>());
        assert!(!tasks.stop(Stage::Loops, soon()).await);
        tasks.abort().await;
    }
}
