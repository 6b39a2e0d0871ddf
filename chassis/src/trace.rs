//! Trace context (W3C traceparent) on its way through gRPC metadata, outbox rows and event headers.

use std::collections::HashMap;

use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The header, column and metadata key.
pub const TRACEPARENT: &str = "traceparent";

/// The traceparent of what is going on here; empty when nothing is traced.
#[must_use]
pub fn current() -> String {
    of(&Span::current())
}

/// The traceparent of what goes on under a span; empty when it is not traced.
#[must_use]
pub fn of(span: &Span) -> String {
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut carrier);
    carrier.remove(TRACEPARENT).unwrap_or_default()
}

/// Makes a span the child of the call that a traceparent names. What is no traceparent is ignored: it comes from outside.
pub fn adopt(span: &Span, traceparent: &str) {
    if traceparent.is_empty() {
        return;
    }
    let carrier = HashMap::from([(TRACEPARENT.to_owned(), traceparent.to_owned())]);
    // It fails only where no traces are kept.
    _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
}
