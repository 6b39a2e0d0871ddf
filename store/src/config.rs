//! Which stores, chosen by the schemes of their URLs.

use std::path::{Path, PathBuf};

use chassis::config::Keys;

use crate::shard::{SHARDS_DEFAULT, SHARDS_MAX};

const NAMESPACE_CHARACTERS_MAX: usize = 32;
const LEDGER_ALLOWED: &str = "sqlite:// and a path, such as sqlite:///var/lib/freshet/freshet.db, or \
                              postgres://USER:PASSWORD@HOST:PORT/DATABASE";
const SETS_ALLOWED: &str = "memory:// (in the process), redis://[:PASSWORD@]HOST:PORT, rediss://… (TLS), or \
                            redis-cluster://HOST:PORT,HOST:PORT";
const EVENTS_ALLOWED: &str = "ledger:// (a table of an SQLite ledger) or kafka://HOST:PORT,HOST:PORT";
const ARCHIVE_ALLOWED: &str = "ledger:// (the ledger's own tables) or scylla://[USER:PASSWORD@]HOST:PORT,HOST:PORT";
const NAMESPACE_ALLOWED: &str = "empty, or a letter and up to 31 more characters of a-z, 0-9 and _";

/// Where data lives.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) ledger: LedgerUrl,
    pub(crate) ledger_connections_max: u32,
    pub(crate) sets: SetsUrl,
    pub(crate) sets_ca: Option<PathBuf>,
    pub(crate) events: EventsUrl,
    pub(crate) archive: ArchiveUrl,
    pub(crate) archive_fallback_reads_max: usize,
    pub(crate) namespace: Namespace,
    pub(crate) shards: u16,
    pub(crate) replication: u16,
}

/// Which ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LedgerUrl {
    /// `sqlite://PATH`: the file at this path, taken as it stands.
    Sqlite(PathBuf),
    /// `postgres://…`, as the driver takes it.
    Postgres(String),
}

/// Which sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetsUrl {
    /// In the process: lost and rebuilt at each start.
    Memory,
    /// One server, `redis://` or `rediss://`, as the driver takes it.
    Redis(String),
    /// A Cluster: any of its nodes, each as a `redis://` URL.
    RedisCluster(Vec<String>),
}

/// Which event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EventsUrl {
    /// A table of the SQLite ledger.
    InLedger,
    /// Kafka's bootstrap servers, `HOST:PORT,HOST:PORT`.
    Kafka(String),
}

/// Which archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArchiveUrl {
    /// The ledger's own tables.
    InLedger,
    /// Any nodes of a ScyllaDB or Cassandra cluster.
    Scylla(ScyllaUrl),
}

/// Any nodes of a ScyllaDB or Cassandra cluster, and who asks.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ScyllaUrl {
    pub(crate) nodes: Vec<String>,
    pub(crate) credentials: Option<(String, String)>,
}

impl std::fmt::Debug for ScyllaUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.nodes).finish()
    }
}

/// What topics, keys and the keyspace begin with, so that several installations can share servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Namespace(String);

impl Namespace {
    fn parse(text: &str) -> Option<Self> {
        let fits = text.len() <= NAMESPACE_CHARACTERS_MAX
            && !text.starts_with(|first: char| !first.is_ascii_lowercase())
            && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        fits.then(|| Self(text.to_owned()))
    }

    /// The topic or group of this name.
    pub(crate) fn topic(&self, name: &str) -> String {
        if self.0.is_empty() { name.to_owned() } else { format!("{}.{name}", self.0) }
    }

    /// What every key of the sets begins with.
    pub(crate) fn key_prefix(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!("{}:", self.0) }
    }

    /// The archive's keyspace.
    pub(crate) fn keyspace(&self) -> &str {
        if self.0.is_empty() { "freshet" } else { &self.0 }
    }
}

impl Config {
    /// Reads the keys `stores.*`. `ledger` is where the ledger is unless a key says otherwise.
    pub fn read(keys: &mut Keys, ledger: &Path) -> Self {
        let default = (LedgerUrl::Sqlite(ledger.into()), format!("sqlite://{}", ledger.display()));
        let about = "where the truth is: accounts, follows, posts, likes, the outbox";
        let ledger = keys.url("stores.ledger", default, LEDGER_ALLOWED, about, ledger_url);
        let about = "connections of a pod to a postgres:// ledger; it has one more to listen on where it publishes";
        let connections = keys.number("stores.ledger_connections_max", 16, 2..=1000, about);
        let ledger_connections_max = u32::try_from(connections).unwrap_or(16);
        let about = "timelines, sessions, connections, hot lists: made from the truth, can be lost";
        let sets = keys.url("stores.sets", (SetsUrl::Memory, "memory://".into()), SETS_ALLOWED, about, sets_url);
        let about = "a PEM file with the authority that signed the sets' certificate; empty: the public ones";
        let file = |text: &str| Some((!text.is_empty()).then(|| PathBuf::from(text)));
        let sets_ca = keys.value("stores.sets_ca", None, String::new(), "a file's path", about, file);
        let default = (EventsUrl::InLedger, "ledger://".into());
        let events = keys.url("stores.events", default, EVENTS_ALLOWED, "published events", events_url);
        let default = (ArchiveUrl::InLedger, "ledger://".into());
        let about = "posts and follows, for reading at scale: made from the truth, filled again when lost";
        let archive = keys.url("stores.archive", default, ARCHIVE_ALLOWED, about, archive_url);
        let about =
            "reads of a pod at a time that the ledger answers while a scylla:// archive does not; others are refused";
        let reads = keys.number("stores.archive_fallback_reads_max", 32, 1..=10_000, about);
        let archive_fallback_reads_max = usize::try_from(reads).unwrap_or(32);
        let about = "what topics, keys and the keyspace begin with, so that installations can share servers";
        let namespace = keys.value(
            "stores.namespace",
            Namespace::default(),
            String::new(),
            NAMESPACE_ALLOWED,
            about,
            Namespace::parse,
        );
        let about = "slices of the outbox and partitions of a topic; fixed when the ledger is made";
        let shards = keys.number("stores.shards", u64::from(SHARDS_DEFAULT), 1..=u64::from(SHARDS_MAX), about);
        let about = "copies of each topic and of each row of the archive, when migrate makes them";
        let replication = keys.number("stores.replication", 1, 1..=5, about);
        if matches!(ledger, LedgerUrl::Postgres(_)) && events == EventsUrl::InLedger {
            keys.refuse("stores.events = ledger:// needs an SQLite ledger: with postgres:// it must be kafka://…");
        }
        let [shards, replication] = [shards, replication].map(|number| u16::try_from(number).unwrap_or(1));
        Self {
            ledger,
            ledger_connections_max,
            sets,
            sets_ca,
            events,
            archive,
            archive_fallback_reads_max,
            namespace,
            shards,
            replication,
        }
    }

    /// Whether the archive is the ledger's own tables.
    #[must_use]
    pub fn archive_is_the_ledger(&self) -> bool {
        self.archive == ArchiveUrl::InLedger
    }

    /// Which of the stores live and die with one process: a role that runs alone cannot share them.
    #[must_use]
    pub fn embedded(&self) -> Vec<&'static str> {
        let ledger = matches!(self.ledger, LedgerUrl::Sqlite(_)).then_some("stores.ledger");
        let sets = (self.sets == SetsUrl::Memory).then_some("stores.sets");
        let events = (self.events == EventsUrl::InLedger).then_some("stores.events");
        [ledger, sets, events].into_iter().flatten().collect()
    }
}

fn ledger_url(text: &str) -> Option<LedgerUrl> {
    match text.split_once("://")? {
        ("sqlite", path) if !path.is_empty() => Some(LedgerUrl::Sqlite(path.into())),
        ("postgres" | "postgresql", rest) if !rest.is_empty() => Some(LedgerUrl::Postgres(text.to_owned())),
        _ => None,
    }
}

fn sets_url(text: &str) -> Option<SetsUrl> {
    match text.split_once("://")? {
        ("memory", "") => Some(SetsUrl::Memory),
        ("redis" | "rediss", rest) if !rest.is_empty() => Some(SetsUrl::Redis(text.to_owned())),
        ("redis-cluster", rest) => {
            let (credentials, nodes) = rest.rsplit_once('@').map_or(("", rest), |(before, nodes)| (before, nodes));
            let at = if credentials.is_empty() { String::new() } else { format!("{credentials}@") };
            let nodes = addresses(nodes)?;
            Some(SetsUrl::RedisCluster(nodes.into_iter().map(|node| format!("redis://{at}{node}")).collect()))
        }
        _ => None,
    }
}

fn events_url(text: &str) -> Option<EventsUrl> {
    match text.split_once("://")? {
        ("ledger", "") => Some(EventsUrl::InLedger),
        ("kafka", brokers) => addresses(brokers).map(|brokers| EventsUrl::Kafka(brokers.join(","))),
        _ => None,
    }
}

fn archive_url(text: &str) -> Option<ArchiveUrl> {
    match text.split_once("://")? {
        ("ledger", "") => Some(ArchiveUrl::InLedger),
        ("scylla", rest) => {
            let (credentials, nodes) = match rest.rsplit_once('@') {
                Some((before, nodes)) => (Some(before.split_once(':')?), nodes),
                None => (None, rest),
            };
            let credentials = credentials.map(|(user, password)| (user.to_owned(), password.to_owned()));
            Some(ArchiveUrl::Scylla(ScyllaUrl { nodes: addresses(nodes)?, credentials }))
        }
        _ => None,
    }
}

/// `HOST:PORT,HOST:PORT`, one at least.
fn addresses(text: &str) -> Option<Vec<String>> {
    let fits = |address: &str| {
        address.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    };
    text.split(',').map(|address| fits(address).then(|| address.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use chassis::config::{Flag, Layers};

    use super::*;

    fn read(settings: &[(&str, &str)]) -> Result<Config, String> {
        let flag =
            |(key, value): &(&str, &str)| Flag { key: (*key).into(), value: (*value).into(), typed: "--set".into() };
        let mut keys = Keys::new(Layers::load(None, [], settings.iter().map(flag).collect()).unwrap());
        let config = Config::read(&mut keys, Path::new("here.db"));
        keys.finish().map(|_| config).map_err(|invalid| invalid.to_string())
    }

    #[test]
    fn a_store_is_chosen_by_the_scheme_of_its_url() {
        let embedded = read(&[]).unwrap();
        assert_eq!(embedded.ledger, LedgerUrl::Sqlite("here.db".into()));
        assert_eq!(embedded.embedded(), ["stores.ledger", "stores.sets", "stores.events"]);

        let served = read(&[
            ("stores.ledger", "postgres://ada:secret@db/freshet"),
            ("stores.sets", "redis-cluster://:secret@a:7000,b:7001"),
            ("stores.events", "kafka://a:9092,b:9092"),
            ("stores.archive", "scylla://ada:secret@c:9042"),
            ("stores.namespace", "blue"),
        ])
        .unwrap();
        assert_eq!(served.ledger, LedgerUrl::Postgres("postgres://ada:secret@db/freshet".into()));
        let nodes = ["redis://:secret@a:7000", "redis://:secret@b:7001"].map(str::to_owned);
        assert_eq!(served.sets, SetsUrl::RedisCluster(nodes.to_vec()));
        assert_eq!(served.events, EventsUrl::Kafka("a:9092,b:9092".into()));
        let credentials = Some(("ada".to_owned(), "secret".to_owned()));
        assert_eq!(served.archive, ArchiveUrl::Scylla(ScyllaUrl { nodes: vec!["c:9042".into()], credentials }));
        assert_eq!(served.embedded(), Vec::<&str>::new());
        assert_eq!(served.namespace.topic("posts"), "blue.posts");
        assert_eq!((served.namespace.key_prefix().as_str(), served.namespace.keyspace()), ("blue:", "blue"));
    }

    #[test]
    fn what_names_no_store_is_refused() {
        for (key, url) in [
            ("stores.ledger", "mysql://here"),
            ("stores.ledger", "sqlite://"),
            ("stores.sets", "memcached://here:1"),
            ("stores.sets", "redis-cluster://"),
            ("stores.events", "kafka://here"),
            ("stores.events", "kafka://here:9092,"),
            ("stores.archive", "scylla://here:port"),
            ("stores.archive", "scylla://ada@here:9042"),
            ("stores.namespace", "Blue"),
            ("stores.namespace", "9lives"),
            ("stores.ledger", "postgres://db/freshet"),
        ] {
            let told = read(&[(key, url)]).unwrap_err();
            assert!(told.contains("stores."), "{key} = {url}: {told}");
        }
    }
}
