//! How a pod ends: in order, within a deadline.

use std::{future::Future, time::Duration};

use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tracing::{info, warn};

use crate::{Pod, Stage};

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everything came to its end.
    Cleanly,
    /// The deadline passed, and the rest was cut off.
    CutOff,
}

/// Ends a pod: it is no longer ready, loops release what they hold, streams close, servers finish the calls under way, and
/// last what these stood on. What is not done at the deadline is cut off.
pub async fn drain(pod: &Pod, grace: Duration) -> Drained {
    let deadline = Instant::now() + grace;
    pod.health.set_ready(false);
    let mut drained = Drained::Cleanly;
    for stage in Stage::IN_ORDER {
        if !pod.tasks.stop(stage, deadline).await {
            warn!(pod = pod.name(), "{} did not stop within {grace:?} ({stage:?}); the rest is cut off", pod.name());
            drained = Drained::CutOff;
        }
    }
    pod.tasks.abort().await;
    info!(pod = pod.name(), "{} has stopped", pod.name());
    drained
}

/// Resolves at SIGTERM or Ctrl-C. From then on, a second one ends the process at once.
pub fn requested() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        let mut next = async move || {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        };
        next().await;
        #[expect(clippy::disallowed_methods, reason = "it outlives every pod: it is how a drain that hangs is ended")]
        tokio::spawn(async move {
            next().await;
            warn!("asked a second time: ending at once");
            std::process::exit(130);
        });
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::OnFailure;

    #[tokio::test]
    async fn stages_stop_one_after_the_other() {
        let pod = Pod::new("drained");
        pod.health.set_ready(true);
        let order = Arc::new(Mutex::new(Vec::new()));
        for stage in Stage::IN_ORDER.into_iter().rev() {
            let (order, health) = (order.clone(), pod.health.clone());
            pod.tasks.errand("waits", stage, move |stop| async move {
                stop.cancelled().await;
                assert!(!health.is_ready());
                order.lock().unwrap().push(stage);
            });
        }
        assert_eq!(drain(&pod, Duration::from_secs(5)).await, Drained::Cleanly);
        assert_eq!(*order.lock().unwrap(), Stage::IN_ORDER);
        assert_eq!(pod.tasks.deaths(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_hangs_is_cut_off_at_the_deadline() {
        let pod = Pod::new("hung");
        pod.tasks.spawn("deaf", Stage::Streams, OnFailure::Log, |_| std::future::pending::<Result<(), String>>());
        let began = Instant::now();
        assert_eq!(drain(&pod, Duration::from_secs(3)).await, Drained::CutOff);
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}
