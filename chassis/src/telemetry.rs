//! Logs and traces of a process: logs for people on a terminal and as JSON otherwise, traces by OTLP where an endpoint is
//! configured.

use std::io::IsTerminal as _;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::filter_fn, layer::SubscriberExt as _, registry::LookupSpan,
    util::SubscriberInitExt as _,
};

use crate::config::Keys;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people on a terminal, as JSON otherwise.
    Auto,
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// What to log and where to send traces.
#[derive(Clone, Debug)]
pub struct Config {
    format: Format,
    filter: String,
    otlp_endpoint: String,
}

impl Config {
    /// Reads the keys `log.*` and `trace.*`.
    pub fn read(keys: &mut Keys) -> Self {
        let format = |text: &str| match text {
            "auto" => Some(Format::Auto),
            "human" => Some(Format::Human),
            "json" => Some(Format::Json),
            _ => None,
        };
        let about = "how log lines are written; auto: human on a terminal, json otherwise";
        let filter = |text: &str| text.parse::<EnvFilter>().ok().map(|_| text.to_owned());
        let endpoint = |text: &str| {
            let fits = text.is_empty() || text.starts_with("http://") || text.starts_with("https://");
            fits.then(|| text.to_owned())
        };
        Self {
            format: keys.value("log.format", Format::Auto, "auto".into(), "auto, human or json", about, format),
            filter: keys.value(
                "log.filter",
                "info".to_owned(),
                "info".into(),
                "a filter such as info or relay=debug,info",
                "which lines are logged",
                filter,
            ),
            otlp_endpoint: keys.value(
                "trace.otlp_endpoint",
                String::new(),
                String::new(),
                "empty, or an http:// or https:// address such as http://127.0.0.1:4317",
                "where traces are sent by OTLP over gRPC; empty: nowhere",
                endpoint,
            ),
        }
    }
}

/// What must be flushed before a process ends.
#[derive(Debug)]
pub struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Starts logging and tracing for the whole process, within a Tokio runtime.
    pub fn start(config: &Config) -> Result<Self, String> {
        let provider = provider(&config.otlp_endpoint)?;
        let filter: EnvFilter = config.filter.parse().map_err(|cause| format!("log.filter: {cause}"))?;
        let json = match config.format {
            Format::Auto => !std::io::stderr().is_terminal(),
            Format::Human => false,
            Format::Json => true,
        };
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines: Box<dyn Layer<Registry> + Send + Sync> = if json {
            Box::new(lines.json().flatten_event(true).with_filter(filter))
        } else {
            Box::new(lines.with_target(false).with_filter(filter))
        };
        tracing_subscriber::registry()
            .with(lines)
            .with(traces(&provider))
            .try_init()
            .map_err(|cause| format!("cannot start logging: {cause}"))?;
        Ok(Self { provider })
    }

    /// Sends what is still here.
    pub fn flush(&self) {
        if let Err(cause) = self.provider.shutdown() {
            tracing::warn!("some traces were not sent: {cause}");
        }
    }
}

/// A layer that makes traces of spans. A pod's own span lasts as long as the pod: it names log lines and is no trace.
pub fn traces<S>(provider: &SdkTracerProvider) -> impl Layer<S> + Send + Sync + use<S>
where
    S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
{
    let ours = filter_fn(|metadata| {
        metadata.is_span() && metadata.name() != "pod" && *metadata.level() <= tracing::Level::INFO
    });
    tracing_opentelemetry::layer().with_tracer(provider.tracer("freshet")).with_filter(ours)
}

/// The source of traces; without an endpoint they are only passed on from call to call, and kept nowhere.
pub fn provider(otlp_endpoint: &str) -> Result<SdkTracerProvider, String> {
    let resource = Resource::builder().with_service_name("freshet").build();
    let builder = SdkTracerProvider::builder().with_resource(resource);
    if otlp_endpoint.is_empty() {
        return Ok(builder.build());
    }
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(otlp_endpoint)
        .build()
        .map_err(|cause| format!("trace.otlp_endpoint: {cause}"))?;
    Ok(builder.with_batch_exporter(exporter).build())
}
