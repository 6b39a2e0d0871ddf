//! What the pods of this process log: errors by pod, so that each sandbox can check its own.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{LazyLock, Mutex, PoisonError},
};

use chassis::telemetry;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

static ERRORS: LazyLock<Mutex<BTreeMap<String, Vec<String>>>> = LazyLock::new(Mutex::default);
static CAPTURE: LazyLock<()> = LazyLock::new(|| {
    // Traces are passed on from call to call, as in a real process, and kept nowhere.
    let Ok(provider) = telemetry::provider("") else { panic!("cannot make a source of traces") };
    tracing_subscriber::registry().with(Capture).with(telemetry::traces(&provider)).init();
});

/// Begins to listen, once for the whole process.
pub fn capture() {
    LazyLock::force(&CAPTURE);
}

/// The errors that a pod has logged.
#[must_use]
pub fn errors_of(pod: &str) -> Vec<String> {
    ERRORS.lock().unwrap_or_else(PoisonError::into_inner).get(pod).cloned().unwrap_or_default()
}

struct Capture;

struct PodName(String);

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Capture {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if attributes.metadata().name() == "pod"
            && let Some(span) = context.span(id)
        {
            let mut name = Text("pod", String::new());
            attributes.record(&mut name);
            span.extensions_mut().insert(PodName(name.1));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if *event.metadata().level() != Level::ERROR {
            return;
        }
        let pod = context
            .event_scope(event)
            .into_iter()
            .flatten()
            .find_map(|span| span.extensions().get::<PodName>().map(|name| name.0.clone()));
        let mut message = Text("message", String::new());
        event.record(&mut message);
        let mut errors = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
        errors.entry(pod.unwrap_or_default()).or_default().push(message.1);
    }
}

/// The text of one field.
struct Text(&'static str, String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == self.0 {
            self.1 = format!("{value:?}");
        }
    }
}
