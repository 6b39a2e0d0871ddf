//! The real servers that `tests/services` started, and stores on them that are a test's own.

use std::{path::Path, sync::Arc};

use chassis::{
    Clock, Pod, Random, clock,
    config::{Flag, Keys, Layers},
    random,
};
use store::{Config, Parts};

use crate::tools::skip;

/// A kind of store that a test can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adapter {
    /// Ledger, event log and archive in one SQLite file.
    Sqlite,
    /// Sets in the process.
    Memory,
    /// Ledger.
    Postgres,
    /// Sets on one server.
    Redis,
    /// Sets on one server, by TLS.
    RedisTls,
    /// Sets on a Cluster.
    RedisCluster,
    /// Event log.
    Kafka,
    /// Archive.
    Cassandra,
}

impl Adapter {
    /// The variable in which `tests/services` tells where the server is.
    const fn variable(self) -> Option<&'static str> {
        match self {
            Self::Sqlite | Self::Memory => None,
            Self::Postgres => Some("FRESHET_TEST_POSTGRES"),
            Self::Redis => Some("FRESHET_TEST_REDIS"),
            Self::RedisTls => Some("FRESHET_TEST_REDIS_TLS"),
            Self::RedisCluster => Some("FRESHET_TEST_REDIS_CLUSTER"),
            Self::Kafka => Some("FRESHET_TEST_KAFKA"),
            Self::Cassandra => Some("FRESHET_TEST_CASSANDRA"),
        }
    }

    /// The key of the config that chooses it.
    const fn key(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => "stores.ledger",
            Self::Memory | Self::Redis | Self::RedisTls | Self::RedisCluster => "stores.sets",
            Self::Kafka => "stores.events",
            Self::Cassandra => "stores.archive",
        }
    }
}

/// A server's address; `None`: the test is skipped, loudly.
fn address(adapter: Adapter) -> Option<String> {
    let variable = adapter.variable()?;
    let found = std::env::var(variable).ok().filter(|address| !address.is_empty());
    if found.is_none() {
        skip(&format!("{adapter:?} is not running ({variable} is not set): start it by tests/services"));
    }
    found
}

/// A name that no other test of any run has: letters, digits and underscores, a letter first.
#[must_use]
pub fn unique_name() -> String {
    format!("t{:016x}", (&random::System as &dyn Random).number())
}

/// The settings of stores that are this test's own: a new database, new keys, topics and keyspace. What no adapter is named
/// for is embedded, in `data`. `None`: a server is missing, and the test is skipped.
pub async fn settings(adapters: &[Adapter], data: &Path) -> Option<Vec<(&'static str, String)>> {
    let name = unique_name();
    let mut settings = vec![
        ("stores.namespace", name.clone()),
        // Few, so that a broker can carry the topics of many tests.
        ("stores.shards", "4".to_owned()),
        ("stores.ledger", format!("sqlite://{}", data.join("freshet.db").display())),
    ];
    for adapter in adapters.iter().filter(|adapter| adapter.variable().is_some()) {
        let mut url = address(*adapter)?;
        if *adapter == Adapter::Postgres {
            url = new_database(&url, &name).await;
        }
        if *adapter == Adapter::RedisTls {
            settings.push(("stores.sets_ca", std::env::var("FRESHET_TEST_REDIS_CA").unwrap_or_default()));
        }
        settings.retain(|(key, _)| *key != adapter.key());
        settings.push((adapter.key(), url));
    }
    Some(settings)
}

/// Makes a database of this name, and gives its URL.
async fn new_database(url: &str, name: &str) -> String {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("PostgreSQL");
    #[expect(clippy::disallowed_methods, reason = "it ends with the client")]
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("a database");
    let (server, _) = url.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}

/// The config that these settings make.
#[must_use]
pub fn config(settings: &[(&'static str, String)]) -> Config {
    let flag = |(key, value): &(&str, String)| Flag {
        key: (*key).to_owned(),
        value: value.clone(),
        typed: "the test".to_owned(),
    };
    let mut keys = Keys::new(Layers::load(None, [], settings.iter().map(flag).collect()).expect("settings"));
    let config = Config::read(&mut keys, Path::new("unused.db"));
    keys.finish().expect("valid settings");
    config
}

/// What a test's stores run on.
#[must_use]
pub fn parts() -> Parts {
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    Parts { pod: Pod::new(unique_name()), clock, random: Arc::new(random::System) }
}
