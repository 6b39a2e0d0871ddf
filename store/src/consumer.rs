//! How a role consumes the event log: each batch is applied, its lanes side by side, then committed. What may pass is tried again for as long as it
//! takes; what never will is buried, and holds up nobody.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use chassis::{Pod, Stop, failpoint, trace};
use futures_util::future::join_all;
use prost::Message as _;
use proto::{event::Topic, freshet::event::v1::Envelope};
use tokio::time::Instant;
use tracing::{Instrument as _, error, info_span, warn};

use crate::{
    Error,
    event_log::{Consumer, EventLog, Received},
};

const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// How long after its fetch an event may be applied.
const APPLY_WITHIN: Duration = Duration::from_secs(60);

/// Why an event was not applied.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It may pass: a store is down.
    #[error("{0}")]
    Passing(#[from] Error),
    /// It never will: the event breaks a rule.
    #[error("{0}")]
    Final(String),
}

/// Applies events. Applying one twice, or late, must change nothing.
#[async_trait]
pub trait Apply: Send + Sync {
    /// Applies one event. What it writes must be refused after `not_after`: who was frozen until then has lost its place to
    /// another member, and what is deleted meanwhile must not come back.
    async fn apply(&self, event: &Envelope, not_after: Instant) -> Result<(), Failure>;
}

/// Why a member leaves what it was given.
#[derive(Clone, Copy)]
enum End {
    /// Something was fetched too long ago: it must be fetched again, by whoever's it is then.
    Stale,
    /// The pod drains.
    Draining,
}

/// What became of the events of a lane.
#[derive(Default)]
struct LaneDone<'a> {
    /// The last one that was applied or never will be: all before it are done too.
    last: Option<&'a Received>,
    /// Those that never will be, each with the reason.
    refused: Vec<(&'a Received, String)>,
    /// Why the rest is not done, where there is a rest.
    end: Option<End>,
}

/// What became of one event.
enum Settled {
    /// It was applied.
    Applied,
    /// It never will be.
    Refused(String),
    /// It is not done.
    Ended(End),
}

/// Consumes topics as a member of a group until the pod drains.
pub async fn run(
    pod: &Pod,
    log: &dyn EventLog,
    group: &'static str,
    topics: &[Topic],
    apply: Arc<dyn Apply>,
    stop: Stop,
) -> Result<(), Error> {
    loop {
        let mut consumer = log.join(group, topics).await?;
        match consume(pod, &mut *consumer, group, &*apply, &stop).await? {
            End::Draining => return Ok(()),
            End::Stale => warn!("{group} fetches again what it could not apply in time"),
        }
    }
}

/// Applies and commits batch after batch, until the pod drains or a batch gets too old.
async fn consume(
    pod: &Pod,
    consumer: &mut dyn Consumer,
    group: &'static str,
    apply: &dyn Apply,
    stop: &Stop,
) -> Result<End, Error> {
    loop {
        let events = tokio::select! {
            () = stop.cancelled() => return Ok(End::Draining),
            events = consumer.next() => events?,
        };
        let not_after = Instant::now() + APPLY_WITHIN;
        // The fault that the harness must notice: what is committed before it is done is lost when the process dies.
        let commits_first = failpoint::is_on("consumer.commits_first");
        if commits_first {
            consumer.commit().await?;
        }
        let work = lanes(&events).into_iter().map(|lane| settle_lane(pod, group, apply, lane, not_after, stop));
        let lanes = join_all(work).await;
        for (event, cause) in lanes.iter().flat_map(|lane| &lane.refused) {
            consumer.bury(event, cause).await?;
        }
        if let Some(end) = lanes.iter().find_map(|lane| lane.end) {
            let done: Vec<_> = lanes.iter().filter_map(|lane| lane.last).collect();
            consumer.commit_only(&done).await?;
            return Ok(end);
        }
        failpoint::reach("consumer.before_commit").await;
        if !commits_first {
            consumer.commit().await?;
        }
    }
}

/// A batch by its lanes. Order is kept within one; the lanes wait for nobody.
fn lanes(events: &[Received]) -> Vec<Vec<&Received>> {
    let mut lanes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for event in events {
        lanes.entry((event.record.topic, event.record.partition)).or_default().push(event);
    }
    lanes.into_values().collect()
}

/// Applies the events of a lane, one after the other.
async fn settle_lane<'a>(
    pod: &Pod,
    group: &'static str,
    apply: &dyn Apply,
    lane: Vec<&'a Received>,
    not_after: Instant,
    stop: &Stop,
) -> LaneDone<'a> {
    let mut done = LaneDone::default();
    for event in lane {
        failpoint::reach("consumer.before_apply").await;
        let span =
            info_span!(parent: pod.span(), "consume", otel.name = %format_args!("{group} {}", event.record.kind));
        trace::adopt(&span, &event.record.traceparent);
        match settle(apply, event, not_after, stop).instrument(span).await {
            Settled::Applied => {}
            Settled::Refused(cause) => done.refused.push((event, cause)),
            Settled::Ended(end) => {
                done.end = Some(end);
                return done;
            }
        }
        done.last = Some(event);
    }
    done
}

/// Applies an event, trying again for as long as it may pass.
async fn settle(apply: &dyn Apply, event: &Received, not_after: Instant, stop: &Stop) -> Settled {
    let mut wait = RETRY_MIN;
    while Instant::now() < not_after {
        let failure = match Envelope::decode(event.record.payload.clone()) {
            Ok(envelope) => match apply.apply(&envelope, not_after).await {
                Ok(()) => return Settled::Applied,
                Err(failure) => failure,
            },
            Err(cause) => Failure::Final(format!("it cannot be decoded: {cause}")),
        };
        let kind = &event.record.kind;
        match failure {
            Failure::Final(cause) => {
                error!(position = event.position, "a {kind} event is put aside: {cause}");
                return Settled::Refused(cause);
            }
            Failure::Passing(cause) => {
                warn!(position = event.position, "a {kind} event waits {wait:?} for another try: {cause}");
                tokio::select! {
                    () = stop.cancelled() => return Settled::Ended(End::Draining),
                    () = tokio::time::sleep(wait) => wait = (wait * 2).min(RETRY_MAX),
                }
            }
        }
    }
    Settled::Ended(End::Stale)
}
