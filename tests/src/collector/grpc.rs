//! The collector's side of OTLP.

use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
    trace_service_server::{TraceService, TraceServiceServer},
};
pub use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status, transport::server::TcpIncoming};

struct Keep(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Keep {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans;
        let spans = resources.into_iter().flat_map(|one| one.scope_spans).flat_map(|scope| scope.spans);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

pub(super) async fn serve(listener: TcpListener, spans: Arc<Mutex<Vec<Span>>>) {
    let service = TraceServiceServer::new(Keep(spans));
    let incoming = TcpIncoming::from(listener);
    tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming).await.expect("a collector");
}
