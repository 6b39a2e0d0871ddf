//! The ranking role: keeps each day's hot posts from the event log, and serves them over gRPC.

mod day;
mod grpc;
mod hot;

use std::sync::Arc;

use chassis::{Clock, OnFailure, Pod, Stage, config::Keys, token::Keyring};
use day::Calendar;
use proto::event::{Topic, kind};
use store::{
    consumer::{Consumption, Group, Handlers},
    event_log::EventLog,
    ledger::Ledger,
    sets::Sets,
};
use tokio::net::TcpListener;

const GROUP: &str = "ranking";
static TOPICS: [Topic; 1] = [Topic::Likes];

/// The role's own settings.
#[derive(Clone, Debug)]
pub struct Config {
    calendar: Calendar,
}

impl Config {
    /// Reads the keys `ranking.*`, apart from where it listens.
    pub fn read(keys: &mut Keys) -> Self {
        let allowed = "a time zone of the IANA database, such as UTC or Asia/Seoul";
        let about = "the time zone in which a day begins";
        Self {
            calendar: keys.value("ranking.time_zone", Calendar::utc(), "UTC".into(), allowed, about, Calendar::of_zone),
        }
    }
}

/// What the role runs on.
pub struct Parts {
    /// Where it runs.
    pub pod: Pod,
    /// The truth.
    pub ledger: Ledger,
    /// Where hot lists are kept.
    pub sets: Sets,
    /// Where events come from.
    pub event_log: Arc<dyn EventLog>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The keys of internal tokens.
    pub keyring: Keyring,
    /// The limits of the gRPC server.
    pub grpc: chassis::grpc::Config,
    /// The role's own settings.
    pub config: Config,
}

/// Starts the role on a listener. It runs until its pod drains.
pub fn start(parts: Parts, listener: TcpListener) -> Result<(), chassis::Error> {
    let Parts { pod, ledger, sets, event_log, clock, keyring, grpc, config } = parts;
    let hot = Arc::new(hot::HotPosts::new(&ledger, &sets, clock, config.calendar));
    chassis::grpc::Server::default()
        .with(grpc::service(hot.clone()))
        .spawn(&pod, &grpc, keyring, listener)
        .map_err(chassis::Error::internal)?;
    let handlers = Handlers::default().on(kind::LIKED, hot.clone()).on(kind::UNLIKED, hot);
    let likes = Consumption::new(&pod, event_log, &ledger, Group::new(GROUP, &TOPICS, handlers));
    pod.tasks.spawn("likes", Stage::Loops, OnFailure::Restart, move |stop| {
        let likes = likes.clone();
        async move { likes.run(stop).await }
    });
    pod.health.set_ready(true);
    Ok(())
}
