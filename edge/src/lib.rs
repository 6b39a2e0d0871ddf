//! The edge role: HTTP and Server-Sent Events for browsers. It signs people in, holds their streams open, and sends each
//! reader's events the moment the relay tells of them.

mod address;
mod deliveries;
mod events;
mod grpc;
mod http;
mod hub;
mod limits;
mod server;
mod sessions;
mod told;

use std::{convert::Infallible, sync::Arc};

use chassis::{Clock, OnFailure, Pod, Random, Stage, config::Keys, token::Keyring};
use hub::Hub;
use store::sets::{self, Sets};
use tokio::net::TcpListener;

/// The role's own settings.
#[derive(Clone, Debug)]
pub struct Config {
    cookie_secure: bool,
    connections_max: usize,
    heartbeat: std::time::Duration,
    proxies: usize,
}

impl Config {
    /// Reads the keys `edge.*`, apart from where it listens.
    pub fn read(keys: &mut Keys) -> Self {
        let about = "whether the session cookie is for https only; false only where people come by plain http";
        let cookie_secure = keys.flag("edge.cookie_secure", true, about);
        let connections =
            keys.number("edge.connections_max", 10_000, 1..=1_000_000, "open streams of a pod at the most");
        let about = "how many proxies people come through, each of which adds to x-forwarded-for";
        let proxies = keys.number("edge.proxies", 0, 0..=8, about);
        let second = std::time::Duration::from_secs(1);
        let about = "how often an idle stream gets a comment, so that proxies keep it open";
        Self {
            cookie_secure,
            connections_max: usize::try_from(connections).unwrap_or(usize::MAX),
            proxies: usize::try_from(proxies).unwrap_or_default(),
            heartbeat: keys.duration("edge.heartbeat", 15 * second, second..=300 * second, about),
        }
    }
}

/// What the role runs on.
pub struct Parts {
    /// Where it runs.
    pub pod: Pod,
    /// Sessions, connections, and what the relay tells.
    pub sets: Sets,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The keys of internal tokens.
    pub keyring: Keyring,
    /// Where the timeline role is, such as `http://127.0.0.1:7701`.
    pub timeline_url: String,
    /// The role's own settings.
    pub config: Config,
}

/// What every request is answered with.
struct Edge {
    pod: Pod,
    hub: Arc<Hub>,
    sessions: Arc<dyn sets::Sessions>,
    users: grpc::Users,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    config: Config,
}

/// Starts the role on a listener. It is ready when this returns, and runs until its pod drains.
pub fn start(parts: Parts, listener: TcpListener) -> Result<(), chassis::Error> {
    let Parts { pod, sets, clock, random, keyring, timeline_url, config } = parts;
    let hub = Arc::new(Hub::new(pod.clone(), sets.connections.clone(), config.connections_max));

    let (told, streams, name) = (hub.clone(), sets.pod_streams.clone(), pod.name().to_owned());
    // They fail by a panic only, and a pod that is deaf, or forgotten, must not look well.
    pod.tasks.once("deliveries", Stage::Loops, OnFailure::StopPod, move |stop| async move {
        deliveries::run(told, streams, name, stop).await;
        Ok::<(), Infallible>(())
    });
    let renewed = hub.clone();
    pod.tasks.once("registry", Stage::Loops, OnFailure::StopPod, move |stop| async move {
        renewed.keep_registered(stop).await;
        Ok::<(), Infallible>(())
    });
    let closed = hub.clone();
    pod.tasks.errand("streams", Stage::Streams, move |stop| async move {
        stop.cancelled().await;
        closed.close_all().await;
    });

    let users = grpc::Users::connect(&timeline_url, keyring)?;
    let edge = Edge { pod: pod.clone(), hub, sessions: sets.sessions, users, clock, random, config };
    server::spawn(Arc::new(edge), listener);
    pod.health.set_ready(true);
    Ok(())
}
