//! The real servers that `tests/services` started, and stores on them that are a test's own.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use chassis::{
    Clock, Pod, Random, clock,
    config::{Flag, Keys, Layers},
    random,
};
use store::{Config, Parts};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::Command,
};

use crate::tools::{root, skip};

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

/// The real servers, one for each store.
pub const SERVERS: [Adapter; 4] = [Adapter::Postgres, Adapter::Redis, Adapter::Kafka, Adapter::Cassandra];

impl Adapter {
    /// The variable in which `tests/services` tells where the server is.
    const fn variable(self) -> Option<&'static str> {
        match self {
            Self::Sqlite | Self::Memory => None,
            Self::Postgres => Some("TEST_POSTGRES"),
            Self::Redis => Some("TEST_REDIS"),
            Self::RedisTls => Some("TEST_REDIS_TLS"),
            Self::RedisCluster => Some("TEST_REDIS_CLUSTER"),
            Self::Kafka => Some("TEST_KAFKA"),
            Self::Cassandra => Some("TEST_CASSANDRA"),
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

/// Whether servers can be started here: where they are running, they can. If not, the test is skipped, loudly.
#[must_use]
pub fn can_be_had() -> bool {
    SERVERS.into_iter().all(|server| address(server).is_some())
}

/// Where a proxy in front of Kafka must listen, and where Kafka is behind it: a broker tells its clients where to go.
#[must_use]
pub fn kafka_behind_a_proxy() -> (SocketAddr, SocketAddr) {
    ["TEST_KAFKA_PROXY", "TEST_KAFKA_BEHIND_PROXY"]
        .map(|variable| std::env::var(variable).ok().and_then(|address| address.parse().ok()).expect(variable))
        .into()
}

/// Takes everything out of Redis, as a failover to an empty replica would.
pub async fn flush_redis() {
    let url = std::env::var("TEST_REDIS").expect("Redis");
    let address = url.trim_start_matches("redis://").split('/').next().unwrap_or_default();
    let mut redis = TcpStream::connect(address).await.expect("Redis");
    redis.write_all(b"FLUSHALL\r\n").await.expect("a command");
    let mut answer = [0; 5];
    redis.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"+OK\r\n");
}

/// The folder of the servers that this run has to itself: it may stop them.
pub struct ServicesFolder(PathBuf);

impl ServicesFolder {
    /// The folder, where `tests/run` gave one. `None`: the test is skipped, loudly.
    #[must_use]
    pub fn of_this_run() -> Option<Self> {
        let found = std::env::var_os("TEST_SERVICES").map(|folder| Self(folder.into()));
        if found.is_none() {
            skip("it needs servers of its own (TEST_SERVICES is not set): run tests/faults");
        }
        found
    }

    /// Stops a server.
    pub async fn stop(&self, server: &str) {
        self.services("stop", server).await;
    }

    /// Kills a server, as `kill -9` does.
    pub async fn kill(&self, server: &str) {
        self.services("kill", server).await;
    }

    /// Starts a server again where it was.
    pub async fn start(&self, server: &str) {
        self.services("start", server).await;
    }

    async fn services(&self, command: &str, server: &str) {
        let mut services = Command::new(root().join("tests/services"));
        let output = services.arg(command).arg(&self.0).arg(server).output().await.expect("tests/services runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
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
            settings.push(("stores.sets_ca", std::env::var("TEST_REDIS_CA").unwrap_or_default()));
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
