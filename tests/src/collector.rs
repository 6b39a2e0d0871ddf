//! A collector of traces, as an operator would run one: it takes OTLP over gRPC and keeps every span.

mod grpc;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

pub use grpc::Span;
use tokio::net::TcpListener;

/// A running collector. It ends with the test's runtime.
pub struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        #[expect(clippy::disallowed_methods, reason = "it lives as long as the test's runtime")]
        tokio::spawn(grpc::serve(listener, spans.clone()));
        Self { address, spans }
    }

    /// Where traces are sent.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The spans of a trace so far.
    #[must_use]
    pub fn spans_of(&self, trace_id: &str) -> Vec<Span> {
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.iter().filter(|span| hex(&span.trace_id) == trace_id).cloned().collect()
    }
}

/// Bytes as traceparents spell them.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
