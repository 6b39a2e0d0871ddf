//! How a role consumes the event log: each batch is applied, then committed. What may pass is tried again for as long as it
//! takes; what never will is buried, and holds up nobody.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chassis::{Pod, Stop, trace};
use prost::Message as _;
use proto::{event::Topic, freshet::event::v1::Envelope};
use tracing::{Instrument as _, error, info_span, warn};

use crate::{
    Error,
    event_log::{Consumer, EventLog, Received},
};

const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

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
    /// Applies one event.
    async fn apply(&self, event: &Envelope) -> Result<(), Failure>;
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
    let mut consumer = log.join(group, topics).await?;
    loop {
        let events = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            events = consumer.next() => events?,
        };
        for event in &events {
            let span =
                info_span!(parent: pod.span(), "consume", otel.name = %format_args!("{group} {}", event.record.kind));
            trace::adopt(&span, &event.record.traceparent);
            let done = settle(&mut *consumer, &*apply, event, &stop).instrument(span).await?;
            if !done {
                return Ok(());
            }
        }
        chassis::failpoint::hold("consumer.before_commit").await;
        consumer.commit().await?;
    }
}

/// Applies an event or buries it. False when the pod drains before either was done.
async fn settle(consumer: &mut dyn Consumer, apply: &dyn Apply, event: &Received, stop: &Stop) -> Result<bool, Error> {
    let mut wait = RETRY_MIN;
    loop {
        let failure = match Envelope::decode(event.record.payload.clone()) {
            Ok(envelope) => match apply.apply(&envelope).await {
                Ok(()) => return Ok(true),
                Err(failure) => failure,
            },
            Err(cause) => Failure::Final(format!("it cannot be decoded: {cause}")),
        };
        let kind = &event.record.kind;
        match failure {
            Failure::Final(cause) => {
                error!(position = event.position, "a {kind} event is put aside: {cause}");
                consumer.bury(event, &cause).await?;
                return Ok(true);
            }
            Failure::Passing(cause) => {
                warn!(position = event.position, "a {kind} event waits {wait:?} for another try: {cause}");
                tokio::select! {
                    () = stop.cancelled() => return Ok(false),
                    () = tokio::time::sleep(wait) => wait = (wait * 2).min(RETRY_MAX),
                }
            }
        }
    }
}
