//! A role's gRPC server: its services behind the border, health per service, reflection.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Request, Response};
use tokio::{net::TcpListener, sync::watch};
use tonic::{
    body::Body,
    server::NamedService,
    service::{Routes, RoutesBuilder},
    transport::server::TcpIncoming,
};
use tonic_health::{ServingStatus, server::HealthReporter};
use tower::Service;

use super::{
    border::{BorderLayer, Rules},
    pod,
};
use crate::{OnFailure, Pod, Stage, config::Keys, token::Keyring};

const HEADER_BYTES_MAX: u32 = 16 * 1024;
const STREAMS_PER_CONNECTION_MAX: u32 = 1024;
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// The limits of every gRPC server.
#[derive(Clone, Debug)]
pub struct Config {
    request_bytes_max: usize,
    deadline_max: Duration,
    reflection: bool,
}

impl Config {
    /// Reads the keys `grpc.*`.
    pub fn read(keys: &mut Keys) -> Self {
        let bytes = keys.number("grpc.request_bytes_max", 1 << 20, 1024..=64 << 20, "bytes of a request at the most");
        let range = Duration::from_millis(100)..=Duration::from_secs(300);
        let about = "how long a call may take; a caller's own deadline counts when it is shorter";
        Self {
            request_bytes_max: usize::try_from(bytes).unwrap_or(usize::MAX),
            deadline_max: keys.duration("grpc.deadline_max", Duration::from_secs(10), range, about),
            reflection: keys.flag("grpc.reflection", true, "whether tools may ask what services there are"),
        }
    }
}

/// A server that is being put together.
pub struct Server {
    routes: RoutesBuilder,
    names: Vec<&'static str>,
    reporter: HealthReporter,
}

impl Default for Server {
    fn default() -> Self {
        let (reporter, health) = tonic_health::server::health_reporter();
        let mut routes = Routes::builder();
        routes.add_service(health);
        Self { routes, names: Vec::new(), reporter }
    }
}

impl Server {
    /// Adds a service.
    #[must_use]
    pub fn with<S>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
    {
        self.routes.add_service(service);
        self.names.push(S::NAME);
        self
    }

    /// Serves on the listener until the pod drains.
    pub fn spawn(self, pod: &Pod, config: &Config, keyring: Keyring, listener: TcpListener) -> Result<(), String> {
        let mut this = self.with(pod::service(pod));
        if config.reflection {
            this.add_reflection().map_err(|cause| format!("cannot offer reflection: {cause}"))?;
        }
        let rules = Rules {
            pod: pod.clone(),
            keyring,
            request_bytes_max: config.request_bytes_max,
            deadline_max: config.deadline_max,
        };
        let router = tonic::transport::Server::builder()
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
            .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
            .layer(BorderLayer(Arc::new(rules)))
            .add_routes(this.routes.routes());
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        pod.tasks.once("grpc server", Stage::Servers, OnFailure::StopPod, move |stop| {
            router.serve_with_incoming_shutdown(incoming, async move { stop.cancelled().await })
        });
        let (reporter, names, ready) = (this.reporter, this.names, pod.health.watch());
        pod.tasks.errand("grpc health", Stage::Foundations, move |stop| async move {
            tokio::select! { () = stop.cancelled() => {}, () = report_health(reporter, names, ready) => {} }
        });
        Ok(())
    }

    fn add_reflection(&mut self) -> Result<(), tonic_reflection::server::Error> {
        let mut builder = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            // The details of errors, so that tools can show them.
            .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
            .with_service_name("grpc.health.v1.Health");
        for name in &self.names {
            builder = builder.with_service_name(*name);
        }
        self.routes.add_service(builder.build_v1()?);
        Ok(())
    }
}

/// Tells every service's health, and the whole server's under the empty name, as the pod's changes.
async fn report_health(reporter: HealthReporter, names: Vec<&'static str>, mut ready: watch::Receiver<bool>) {
    loop {
        let status = if *ready.borrow_and_update() { ServingStatus::Serving } else { ServingStatus::NotServing };
        for name in names.iter().copied().chain([""]) {
            reporter.set_service_status(name, status).await;
        }
        if ready.changed().await.is_err() {
            return;
        }
    }
}
