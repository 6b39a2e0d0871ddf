//! A whole Freshet in one process: several pods of each role on stores of its own, embedded or, with
//! `TEST_STORES=servers`, on the real servers. When it is dropped it checks itself: nothing is left in the outbox, no
//! task died, no unexpected error was logged.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chassis::{
    Clock, Pod, Random, clock,
    config::{Flag, Layers},
    drain::{Drained, drain},
    random,
    token::{CALL_TTL, Caller, Keyring},
};
use freshet::{assembly::Assembly, settings::Settings};
use futures_util::future::join_all;
use proto::UserId;
use store::{Stores, migrate::Mode};
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::{
    Person,
    grpc::Client,
    logs,
    servers::{self, SERVERS},
    sql::Sql,
    wait,
};

const GRACE: Duration = Duration::from_secs(10);

/// How many pods of each role.
#[derive(Clone, Copy, Debug)]
pub struct Pods {
    /// gRPC of people, posts and timelines.
    pub timeline: usize,
    /// Outbox to readers.
    pub relay: usize,
    /// Hot posts.
    pub ranking: usize,
    /// HTTP and event streams.
    pub edge: usize,
}

impl Pods {
    /// One of each.
    pub const ONE: Self = Self { timeline: 1, relay: 1, ranking: 1, edge: 1 };
    /// Two of each.
    pub const TWO: Self = Self { timeline: 2, relay: 2, ranking: 2, edge: 2 };
}

/// A whole Freshet.
pub struct Sandbox {
    assembly: Assembly,
    stores: Stores,
    foundation: Pod,
    keys: String,
    ledger_url: String,
    pods: Vec<Pod>,
    timelines: Vec<SocketAddr>,
    rankings: Vec<SocketAddr>,
    edges: Vec<SocketAddr>,
    turn: AtomicUsize,
    expected_errors: Mutex<Vec<&'static str>>,
    _data: TempDir,
}

impl Sandbox {
    /// One pod of each role.
    pub async fn start() -> Self {
        Self::with(Pods::ONE).await
    }

    /// So many pods of each role.
    pub async fn with(pods: Pods) -> Self {
        Self::with_settings(pods, &[]).await
    }

    /// So many pods of each role, with these settings.
    pub async fn with_settings(pods: Pods, settings: &[(&'static str, &str)]) -> Self {
        logs::capture();
        let data = tempfile::tempdir().expect("a folder for the data");
        let keys = format!("test:{}", (&random::System as &dyn Random).secret());
        let mut all = stores_of_this_run(&data).await;
        all.extend(settings.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let ledger = all.iter().find(|(key, _)| *key == "stores.ledger").map(|(_, url)| url.clone());
        let ledger_url = ledger.unwrap_or_else(|| format!("sqlite://{}/freshet.db", data.path().display()));
        let assembly = assemble(&keys, all);
        assembly.settings.stores.migrate(Mode::Apply).await.expect("prepared stores");
        let foundation = assembly.pod("stores");
        let parts = assembly.store_parts(&foundation);
        let mut world = Self {
            stores: Stores::open(&assembly.settings.stores, &parts).await.expect("stores"),
            foundation,
            assembly,
            keys,
            ledger_url,
            pods: Vec::new(),
            timelines: Vec::new(),
            rankings: Vec::new(),
            edges: Vec::new(),
            turn: AtomicUsize::new(0),
            expected_errors: Mutex::default(),
            _data: data,
        };
        for _ in 0..pods.timeline {
            let (listener, address) = listen().await;
            let pod = world.add_pod("timeline");
            world.timelines.push(address);
            world.assembly.timeline(&pod, world.stores.clone(), listener).await.expect("a timeline pod");
        }
        for _ in 0..pods.relay {
            world.add_relay().await;
        }
        for _ in 0..pods.ranking {
            let (listener, address) = listen().await;
            let pod = world.add_pod("ranking");
            world.rankings.push(address);
            let Stores { ledger, sets, event_log, .. } = world.stores.clone();
            world.assembly.ranking(&pod, (ledger, sets, event_log), listener).expect("a ranking pod");
        }
        for _ in 0..pods.edge {
            let (listener, address) = listen().await;
            let pod = world.add_pod("edge");
            world.edges.push(address);
            let timeline = format!("http://{}", world.timelines[world.edges.len() % world.timelines.len()]);
            world.assembly.edge(&pod, world.stores.sets.clone(), listener, timeline).expect("an edge pod");
        }
        world
    }

    /// Adds a relay pod.
    pub async fn add_relay(&mut self) {
        let (listener, _) = listen().await;
        let pod = self.add_pod("relay");
        self.assembly.relay(&pod, self.stores.clone(), listener).expect("a relay pod");
    }

    fn add_pod(&mut self, role: &str) -> Pod {
        let pod = self.assembly.pod(role);
        self.pods.push(pod.clone());
        pod
    }

    /// Stops every pod of a role, as a rolling upgrade would.
    pub async fn stop(&mut self, role: &str) {
        let (stopped, others) = self.pods.drain(..).partition(|pod| pod.name().starts_with(role));
        self.pods = others;
        self.finish(&stopped).await;
    }

    /// People who have just signed up, each served by the next pod in turn.
    pub async fn people<const N: usize>(&self, names: [&str; N]) -> [Person; N] {
        let people = join_all(names.map(|name| Person::sign_up(self, name))).await;
        people.try_into().unwrap_or_else(|_| unreachable!("one person a name"))
    }

    /// A client of the next timeline pod that calls as this caller.
    #[must_use]
    pub fn timeline(&self, caller: Caller) -> Client {
        self.client(&self.timelines, caller)
    }

    /// A client of the next ranking pod.
    #[must_use]
    pub fn ranking(&self, caller: Caller) -> Client {
        self.client(&self.rankings, caller)
    }

    /// The address of the next edge pod.
    #[must_use]
    pub fn edge(&self) -> SocketAddr {
        *self.next_of(&self.edges)
    }

    /// A token that this sandbox's pods accept.
    #[must_use]
    pub fn token(&self, caller: &Caller) -> String {
        self.assembly.keyring.sign(caller, CALL_TTL).expect("a token")
    }

    /// A token that was signed with this sandbox's key when the clock showed another time.
    #[must_use]
    pub fn token_at(&self, caller: &Caller, clock: &clock::Manual) -> String {
        let keyring = Keyring::parse(&self.keys, Arc::new(clock.clone())).expect("a key");
        keyring.sign(caller, CALL_TTL).expect("a token")
    }

    /// The stores under the pods: for what no user can see.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The ledger's database, past the ledger.
    pub async fn sql(&self) -> Sql {
        Sql::connect(&self.ledger_url).await
    }

    /// The timeline pods' addresses.
    #[must_use]
    pub fn timelines(&self) -> &[SocketAddr] {
        &self.timelines
    }

    /// The ranking pods' addresses.
    #[must_use]
    pub fn rankings(&self) -> &[SocketAddr] {
        &self.rankings
    }

    /// Says that an error with this text will be logged, and is no fault.
    pub fn expect_error(&self, text: &'static str) {
        self.expected_errors.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Waits until everything that is committed has been published.
    pub async fn outbox_is_empty(&self) {
        let outbox = &self.stores.ledger.outbox;
        wait::until("an empty outbox", async || (outbox.backlog().await.expect("the outbox") == 0).then_some(())).await;
    }

    /// Whether a person holds a registered stream.
    pub async fn is_connected(&self, user: UserId) -> bool {
        !self.stores.sets.connections.of_user(user).await.expect("the registry").is_empty()
    }

    fn client(&self, addresses: &[SocketAddr], caller: Caller) -> Client {
        Client::new(*self.next_of(addresses), self.assembly.keyring.clone(), caller)
    }

    fn next_of<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[self.turn.fetch_add(1, Ordering::Relaxed) % all.len()]
    }

    /// Drains pods and checks what became of them.
    async fn finish(&self, pods: &[Pod]) {
        let drained = join_all(pods.iter().map(|pod| drain(pod, GRACE))).await;
        assert!(drained.iter().all(|one| *one == Drained::Cleanly), "a pod did not stop in time: {drained:?}");
        let expected = self.expected_errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for pod in pods {
            assert_eq!(pod.tasks.deaths(), Vec::<String>::new(), "tasks of {} died", pod.name());
            let mut errors = logs::errors_of(pod.name());
            errors.retain(|error| !expected.iter().any(|text| error.contains(text)));
            assert_eq!(errors, Vec::<String>::new(), "{} logged errors", pod.name());
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let pods = std::mem::take(&mut self.pods);
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                self.outbox_is_empty().await;
                self.finish(&pods).await;
                self.finish(std::slice::from_ref(&self.foundation)).await;
            });
        });
    }
}

/// Port 0: a free one.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

/// Where the sandboxes of this run keep their data.
async fn stores_of_this_run(data: &TempDir) -> Vec<(&'static str, String)> {
    match std::env::var("TEST_STORES").as_deref() {
        Ok("servers") => servers::settings(&SERVERS, data.path()).await.expect("all servers"),
        Ok("embedded") | Err(_) => vec![("data", data.path().display().to_string())],
        Ok(other) => panic!("TEST_STORES = {other:?}: embedded or servers"),
    }
}

pub(crate) fn assemble(keys: &str, settings: Vec<(&'static str, String)>) -> Assembly {
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let random: Arc<dyn Random> = Arc::new(random::System);
    // Passwords are hashed cheaply: no test is about how long that takes.
    let cheap = [("people.argon2_memory_kib", "64"), ("people.argon2_iterations", "1")];
    let cheap = cheap.map(|(key, value)| (key, value.to_owned()));
    let flag = |(key, value): (&str, String)| Flag { key: key.to_owned(), value, typed: "the test".to_owned() };
    let layers = Layers::load(None, [], cheap.into_iter().chain(settings).map(flag).collect()).expect("settings");
    let (settings, _) = Settings::read(layers, &clock).expect("valid settings");
    let keyring = Keyring::parse(keys, clock.clone()).expect("a key");
    Assembly { settings, keyring, clock, random }
}
