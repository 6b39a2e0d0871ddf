//! The HTTP server: HTTP/1.1 and h2c on one port.

use std::{convert::Infallible, net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use chassis::{Error, OnFailure, Reason, Stage, Stop, tasks::panic_text};
use futures_util::FutureExt as _;
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::net::{TcpListener, TcpStream};
use tracing::{debug, error, warn};

use crate::{
    Edge, http,
    limits::{HEADER_BYTES_MAX, HEADER_TIME_MAX},
};

/// Serves on the listener until the pod drains.
pub(crate) fn spawn(edge: Arc<Edge>, listener: TcpListener) {
    let pod = edge.pod.clone();
    pod.tasks.once("http server", Stage::Servers, OnFailure::StopPod, move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok::<(), Infallible>(()),
                accepted = listener.accept() => match accepted {
                    Ok((socket, peer)) => accept(edge.clone(), socket, peer.ip()),
                    // Too many open files, or a peer that was gone already: the next one may do better.
                    Err(cause) => warn!("cannot accept a connection: {cause}"),
                },
            }
        }
    });
}

fn accept(edge: Arc<Edge>, socket: TcpStream, peer: IpAddr) {
    let tasks = edge.pod.tasks.clone();
    tasks.errand("http connection", Stage::Servers, move |stop| async move {
        if let Err(cause) = serve(edge, socket, peer, stop).await {
            // The peer's doing, mostly: it went away in the middle.
            debug!("a connection ended: {cause}");
        }
    });
}

async fn serve(
    edge: Arc<Edge>,
    socket: TcpStream,
    peer: IpAddr,
    stop: Stop,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    socket.set_nodelay(true)?;
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIME_MAX).max_buf_size(HEADER_BYTES_MAX);
    builder.http2().timer(TokioTimer::new()).max_header_list_size(HEADER_BYTES_MAX as u32);
    let service = service_fn(move |request| {
        let edge = edge.clone();
        async move {
            let answered = AssertUnwindSafe(http::answer(&edge, request, peer)).catch_unwind().await;
            Ok::<_, Infallible>(answered.unwrap_or_else(|panic| {
                edge.pod.metrics.handler_panicked("http");
                error!("an HTTP handler panicked: {}", panic_text(&*panic));
                http::refusal(&Error::new(Reason::Internal, "a fault of the server; its log has more"))
            }))
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(socket), service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
