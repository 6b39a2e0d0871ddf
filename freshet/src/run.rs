//! What `freshet dev` and `freshet ROLE` share: how a process begins, waits and ends.

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use chassis::{Pod, drain::drain, telemetry::Telemetry};
use futures_util::future::{join_all, select_all};
use store::OpenError;
use tokio::net::TcpListener;

use crate::token_key::KeyError;

/// Why a process does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("cannot listen on {address} ({key}): {cause}; choose another with --set {key}=127.0.0.1:PORT")]
    Listen { key: &'static str, address: SocketAddr, cause: io::Error },
    #[error("cannot use the data folder {}: {cause}", folder.display())]
    Folder { folder: PathBuf, cause: io::Error },
    #[error("a role that runs alone needs stores that others can reach: set {}", .0.join(", "))]
    Embedded(Vec<&'static str>),
    #[error("a role that runs alone needs the keys of internal tokens: set auth.keys, the same for every pod")]
    NoKeys,
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("{0}")]
    Start(#[from] chassis::Error),
    #[error("{0}")]
    Telemetry(String),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error("a part that the process cannot stand without has failed; the log says which")]
    Failed,
}

/// Takes a port, or tells which key names it.
pub(crate) async fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, RunError> {
    TcpListener::bind(address).await.map_err(|cause| RunError::Listen { key, address, cause })
}

/// Where a port really is: port 0 took a free one.
pub(crate) fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0)))
}

/// Waits until a signal asks to stop or a pod cannot go on, then drains: the pods together, after them what they stand on.
pub(crate) async fn until_stopped(
    stop: impl Future<Output = ()>,
    pods: &[Pod],
    foundation: Option<&Pod>,
    grace: Duration,
    telemetry: Telemetry,
) -> Result<(), RunError> {
    let failed = select_all(pods.iter().chain(foundation).map(|pod| Box::pin(pod.tasks.failed())));
    let outcome = tokio::select! { () = stop => Ok(()), _ = failed => Err(RunError::Failed) };
    join_all(pods.iter().map(|pod| drain(pod, grace))).await;
    if let Some(pod) = foundation {
        drain(pod, grace).await;
    }
    telemetry.flush();
    outcome
}
