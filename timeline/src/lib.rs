//! The timeline role: people, posts and timelines over gRPC. It writes the ledger, and reads the sets and the archive.

mod cursor;
mod home;
mod jobs;
mod people;
mod posts;
mod sight;

use std::sync::Arc;

use chassis::{Clock, Pod, Random, config::Keys, grpc, token::Keyring};
use store::Stores;
use tokio::net::TcpListener;

/// The role's own settings.
#[derive(Clone, Debug)]
pub struct Config {
    people: people::Config,
    posts: posts::Config,
}

impl Config {
    /// Reads the keys `people.*` and `posts.*`.
    pub fn read(keys: &mut Keys) -> Self {
        Self { people: people::Config::read(keys), posts: posts::Config::read(keys) }
    }
}

/// What the role runs on.
pub struct Parts {
    /// Where it runs.
    pub pod: Pod,
    /// Where data lives.
    pub stores: Stores,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
    /// The keys of internal tokens.
    pub keyring: Keyring,
    /// The limits of the gRPC server.
    pub grpc: grpc::Config,
    /// The role's own settings.
    pub config: Config,
}

/// Starts the role on a listener. It is ready when this returns, and runs until its pod drains.
pub async fn start(parts: Parts, listener: TcpListener) -> Result<(), chassis::Error> {
    let Parts { pod, stores, clock, random, keyring, grpc, config } = parts;
    let ids = store::writer::keep(&pod, stores.ledger.writer_numbers.clone(), clock.clone()).await?;
    let limits = config.people.follow_limits();
    let people = people::People::new(&stores, ids.clone(), clock.clone(), random, config.people)?;
    let posts = posts::Posts::new(&stores, ids.clone(), config.posts);
    posts.start_forgetting_keys(&pod);
    jobs::Jobs::start(&pod, &stores, ids, clock.clone(), limits);
    let homes = home::Homes::new(&stores, clock);
    grpc::Server::default()
        .with(people::grpc::service(people))
        .with(posts::grpc::service(posts))
        .with(home::grpc::service(homes))
        .spawn(&pod, &grpc, keyring, listener)
        .map_err(chassis::Error::internal)?;
    pod.health.set_ready(true);
    Ok(())
}
