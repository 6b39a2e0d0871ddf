//! The relay role: publishes what the outbox holds to the event log, and applies the log's events to the archive, the
//! sets, and the edge pods that hold connected readers. An archive that is new or was lost it fills from the ledger.

mod deliver;
mod fill;
mod publish;

use std::sync::Arc;

use chassis::{Clock, OnFailure, Pod, Stage, grpc, token::Keyring};
use proto::event::Topic;
pub use publish::Publisher;
use store::{
    Stores,
    consumer::{Consumption, Group},
};
use tokio::net::TcpListener;

const GROUP: &str = "relay";
static TOPICS: [Topic; 2] = [Topic::Posts, Topic::Graph];

/// What the role runs on.
pub struct Parts {
    /// Where it runs.
    pub pod: Pod,
    /// Where data lives.
    pub stores: Stores,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The keys of internal tokens.
    pub keyring: Keyring,
    /// The limits of the gRPC server.
    pub grpc: grpc::Config,
}

/// Starts the role; the listener serves its health. It runs until its pod drains.
pub fn start(parts: Parts, listener: TcpListener) -> Result<(), chassis::Error> {
    let Parts { pod, stores, clock, keyring, grpc } = parts;
    grpc::Server::default().spawn(&pod, &grpc, keyring, listener).map_err(chassis::Error::internal)?;

    let publisher = Arc::new(Publisher::new(pod.name(), &stores));
    pod.tasks.spawn("publisher", Stage::Loops, OnFailure::Restart, move |stop| {
        let publisher = publisher.clone();
        async move { publisher.run(stop).await }
    });

    if let Some(filling) = stores.archive.filling.clone() {
        let owner = pod.name().to_owned();
        pod.tasks.spawn("archive fill", Stage::Loops, OnFailure::Restart, move |stop| {
            fill::run(filling.clone(), owner.clone(), stop)
        });
    }

    let deliveries = deliveries(&pod, &stores, clock);
    pod.tasks.spawn("deliveries", Stage::Loops, OnFailure::Restart, move |stop| {
        let deliveries = deliveries.clone();
        async move { deliveries.run(stop).await }
    });
    pod.health.set_ready(true);
    Ok(())
}

/// How the role applies the log's events, many a batch and lane.
#[must_use]
pub fn deliveries(pod: &Pod, stores: &Stores, clock: Arc<dyn Clock>) -> Consumption {
    let group = Group::new(GROUP, &TOPICS, deliver::handlers(stores, clock)).noting(stores.sets.progress.clone());
    Consumption::on(pod, stores, group)
}
