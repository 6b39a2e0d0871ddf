//! A handler a type of event, found by the type.

use std::{collections::HashMap, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use chassis::{Pod, trace};
use prost::Message as _;
use proto::freshet::event::v1::Envelope;
use tokio::time::Instant;
use tracing::{Span, info_span};

use crate::{
    Error,
    event_log::{Lane, Received},
    ledger::dead_letters::Cause,
};

/// An event that is to be applied.
pub struct Event {
    /// What happened.
    pub envelope: Envelope,
    /// The same as the log carries it, with whatever a newer release put into it.
    pub bytes: Bytes,
    /// The lane that it came by.
    pub lane: Lane,
    /// Its place in that lane.
    pub position: i64,
    /// Under which its effects are logged and traced.
    pub span: Span,
}

/// Why an event was not applied.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It may pass: a store is down, or answers what it should not. That is never taken for the event's own fault.
    #[error("{0}")]
    Passing(#[from] Error),
    /// It never will: the event breaks a rule.
    #[error("{0}")]
    Final(String),
}

/// Applies events of a type. Applying one twice, late or out of order must change nothing.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Applies events of one lane, in their order. If it fails some may be applied: all are given again, one by one where
    /// one of them breaks a rule. What it writes must be refused after `not_after`: who was frozen until then has lost its
    /// place to another member, and what is deleted meanwhile must not come back.
    async fn apply(&self, events: &[Event], not_after: Instant) -> Result<(), Failure>;
}

/// The handlers of a group.
#[derive(Default)]
pub struct Handlers {
    by_type: HashMap<&'static str, Option<Arc<dyn Handler>>>,
}

/// What is to be done with an event.
pub(super) enum Verdict {
    /// It is for this handler.
    Apply(Arc<dyn Handler>, Box<Event>),
    /// It is none of this group's business.
    Skip,
    /// Nobody here can apply it.
    Never(Cause, String),
}

impl Handlers {
    /// With a handler for a type.
    #[must_use]
    pub fn on(mut self, kind: &'static str, handler: Arc<dyn Handler>) -> Self {
        self.by_type.insert(kind, Some(handler));
        self
    }

    /// With a type that is none of the group's business. A type that nobody has named is put aside instead.
    #[must_use]
    pub fn ignoring(mut self, kind: &'static str) -> Self {
        self.by_type.insert(kind, None);
        self
    }

    /// The types that are known here.
    pub(super) fn kinds(&self) -> Vec<&'static str> {
        self.by_type.keys().copied().collect()
    }

    pub(super) fn judge(&self, pod: &Pod, group: &str, received: &Received) -> Verdict {
        let record = &received.record;
        let envelope = match Envelope::decode(record.payload.clone()) {
            Ok(envelope) => envelope,
            Err(cause) => return Verdict::Never(Cause::Undecodable, format!("it cannot be decoded: {cause}")),
        };
        match self.by_type.get(envelope.r#type.as_str()) {
            Some(Some(handler)) => {
                let span =
                    info_span!(parent: pod.span(), "consume", otel.name = %format_args!("{group} {}", envelope.r#type));
                trace::adopt(&span, &record.traceparent);
                let (bytes, lane, position) = (record.payload.clone(), received.lane(), received.position);
                Verdict::Apply(handler.clone(), Box::new(Event { envelope, bytes, lane, position, span }))
            }
            Some(None) => Verdict::Skip,
            None => Verdict::Never(
                Cause::UnknownType,
                format!("this release of {group} does not know events of type {:?}", envelope.r#type),
            ),
        }
    }
}
