//! A cluster of real processes on the real servers: pods of each role that a test can kill, freeze and start again, and a
//! proxy in front of each server.

use std::{net::SocketAddr, sync::Arc};

use chassis::{
    Random, clock, failpoint,
    random::System,
    token::{Caller, Keyring},
};
use store::event_log::EventLog;
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    Pods, Process,
    grpc::Client,
    proxy::Proxy,
    servers::{self, Adapter, SERVERS},
};

/// A pod, as a process.
pub struct Member {
    /// What it does.
    pub role: &'static str,
    /// What it calls itself, in leases and at the servers.
    pub name: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// The process.
    pub process: Process,
}

/// The proxies, one in front of each server.
pub struct Proxies {
    /// In front of PostgreSQL.
    pub postgres: Proxy,
    /// In front of Redis.
    pub redis: Proxy,
    /// In front of Kafka.
    pub kafka: Proxy,
    /// In front of Cassandra.
    pub cassandra: Proxy,
}

/// A cluster.
pub struct Cluster {
    /// In front of the servers.
    pub proxies: Proxies,
    /// The pods.
    pub members: Vec<Member>,
    binary: &'static str,
    settings: Vec<(&'static str, String)>,
    database: String,
    keyring: Keyring,
    data: TempDir,
}

impl Cluster {
    /// Prepares the stores and starts the pods. `None`: a server is missing, and the test is skipped.
    pub async fn start(binary: &'static str, pods: Pods, failpoints: &str) -> Option<Self> {
        let data = tempfile::tempdir().expect("a folder");
        let mut settings = servers::settings(&SERVERS, data.path()).await?;
        let database = setting(&settings, "stores.ledger");
        let proxies = Proxies::in_front_of(&settings).await;
        for (key, proxy) in proxies.by_key() {
            let (_, url) = settings.iter_mut().find(|(name, _)| *name == key).expect("a store");
            *url = url.replace(&host_and_port(url).to_string(), &proxy.address().to_string());
        }
        let secret = format!("test:{}", (&System as &dyn Random).secret());
        let keyring = Keyring::parse(&secret, Arc::new(clock::System)).expect("a key");
        // Passwords are hashed cheaply: no fault is about how long that takes.
        settings.extend([("auth.keys", secret), ("people.argon2_memory_kib", "64".to_owned())]);
        let mut cluster = Self { proxies, members: Vec::new(), binary, settings, database, keyring, data };
        cluster.migrate().await;
        for (role, count) in [("timeline", pods.timeline), ("relay", pods.relay), ("ranking", pods.ranking)] {
            for _ in 0..count {
                cluster.add(role, failpoints).await;
            }
        }
        for _ in 0..pods.edge {
            cluster.add("edge", failpoints).await;
        }
        Some(cluster)
    }

    /// Prepares the stores, or what was lost of them.
    pub async fn migrate(&self) {
        self.run_command(&["migrate"]).await;
    }

    /// Runs an operator's command on the cluster's stores, and gives what it prints.
    pub async fn run_command(&self, arguments: &[&str]) -> String {
        let mut command = self.command(arguments[0]);
        let output = command.args(&arguments[1..]).output().await.expect("freshet runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts one more pod of a role, and waits until it is ready.
    pub async fn add(&mut self, role: &'static str, failpoints: &str) {
        let mut command = self.command(role);
        command.args(["--set", &format!("{role}.listen=127.0.0.1:0")]);
        if role == "edge" {
            let timelines = self.addresses("timeline");
            let timeline = timelines[self.addresses("edge").len() % timelines.len()];
            command.args(["--set", &format!("edge.timeline_url=http://{timeline}")]);
        }
        if !failpoints.is_empty() {
            command.env(failpoint::VARIABLE, failpoints);
        }
        let process = Process::spawn(command);
        let line = process.prints("is ready on").await;
        let address = line.rsplit(' ').next().and_then(|address| address.parse().ok()).expect("an address");
        let name = line.split(' ').next().unwrap_or_default().to_owned();
        self.members.push(Member { role, name, address, process });
    }

    /// Kills a pod of a role, as `kill -9` does, and gives up on it.
    pub async fn kill(&mut self, role: &str) {
        let place = self.members.iter().position(|member| member.role == role).expect("a pod of that role");
        self.members.remove(place).process.kill_now().await;
    }

    /// Asks a pod of a role to stop, and waits until it has.
    pub async fn stop(&mut self, role: &str) {
        let place = self.members.iter().position(|member| member.role == role).expect("a pod of that role");
        self.members.remove(place).process.terminate().await;
    }

    /// Where the pods of a role listen.
    #[must_use]
    pub fn addresses(&self, role: &str) -> Vec<SocketAddr> {
        self.members.iter().filter(|member| member.role == role).map(|member| member.address).collect()
    }

    /// A client of every pod of a role, calling as a service.
    #[must_use]
    pub fn clients(&self, role: &str) -> Vec<Client> {
        let caller = Caller::Service("tests".into());
        let client = |address| Client::new(address, self.keyring.clone(), caller.clone());
        self.addresses(role).into_iter().map(client).collect()
    }

    /// The ledger's own address, past the proxy: for the oracle.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// What the cluster's topics, keys and keyspace begin with.
    #[must_use]
    pub fn namespace(&self) -> String {
        setting(&self.settings, "stores.namespace")
    }

    /// Into how many shards its outbox is divided.
    #[must_use]
    pub fn shards(&self) -> u16 {
        setting(&self.settings, "stores.shards").parse().expect("a number")
    }

    /// Its event log, beside the pods.
    pub async fn event_log(&self) -> Arc<dyn EventLog> {
        let stores = self.settings.iter().filter(|(key, _)| key.starts_with("stores.")).cloned();
        let config = servers::config(&stores.collect::<Vec<_>>());
        let parts = servers::parts();
        let ledger = config.open_ledger(&parts).await.expect("a ledger");
        config.open_event_log(&parts, &ledger).await.expect("an event log")
    }

    /// A folder of the cluster's own.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.data.path()
    }

    /// What the pods complained of: the last warnings and errors of each.
    #[must_use]
    pub fn complaints(&self) -> String {
        let of = |member: &Member| {
            let lines = member.process.printed();
            let loud = lines.iter().filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\""));
            let loud: Vec<_> = loud.rev().take(8).map(String::as_str).collect();
            format!("{}:\n{}\n", member.role, loud.join("\n"))
        };
        self.members.iter().map(of).collect()
    }

    fn command(&self, command: &str) -> Command {
        let mut process = Command::new(self.binary);
        process.arg(command).current_dir(self.data.path());
        for (key, value) in &self.settings {
            process.env(format!("FRESHET_{}", key.to_uppercase().replace('.', "_")), value);
        }
        process
    }
}

impl Proxies {
    async fn in_front_of(settings: &[(&'static str, String)]) -> Self {
        let server = |key| host_and_port(&setting(settings, key));
        // Kafka tells its clients where to go: to the address that its second listener names as its own.
        let (listens, behind) = servers::kafka_behind_a_proxy();
        Self {
            postgres: Proxy::in_front_of(server("stores.ledger")).await,
            redis: Proxy::in_front_of(server("stores.sets")).await,
            kafka: Proxy::on(listens, behind).await,
            cassandra: Proxy::in_front_of(server("stores.archive")).await,
        }
    }

    fn by_key(&self) -> [(&'static str, &Proxy); 4] {
        [
            ("stores.ledger", &self.postgres),
            ("stores.sets", &self.redis),
            ("stores.events", &self.kafka),
            ("stores.archive", &self.cassandra),
        ]
    }

    /// The proxy in front of a server.
    #[must_use]
    pub fn of(&self, adapter: Adapter) -> &Proxy {
        match adapter {
            Adapter::Postgres => &self.postgres,
            Adapter::Kafka => &self.kafka,
            Adapter::Cassandra => &self.cassandra,
            _ => &self.redis,
        }
    }
}

fn setting(settings: &[(&'static str, String)], key: &str) -> String {
    settings.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone()).expect("a setting")
}

/// The address in a URL.
fn host_and_port(url: &str) -> SocketAddr {
    let (_, rest) = url.split_once("://").expect("a URL");
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let address = authority.rsplit('@').next().unwrap_or_default();
    address.parse().unwrap_or_else(|_| panic!("no address in {url}"))
}
