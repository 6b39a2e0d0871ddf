//! A timeline pod on stores of its own, with people in them; and pgbench beside it, on the same PostgreSQL.

use std::{
    net::SocketAddr,
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use chassis::{Random, random, token::Caller};
use freshet::assembly::Assembly;
use futures_util::future::BoxFuture;
use proto::UserId;
use store::{Stores, migrate::Mode};
use tokio::{process::Command, task::JoinSet, time::Instant};
use tokio_postgres::Client as Sql;

use super::{connect, median};
use crate::{
    grpc::Client,
    sandbox::{assemble, listen},
    servers::{self, SERVERS},
    tools::root,
};

/// As many for the pod as for pgbench.
pub(super) const CLIENTS: usize = 16;
/// Rounds of both in turn; the median counts.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(8);
/// Before them, and not counted: connections are opened, plans are made.
const WARM_UP: Duration = Duration::from_secs(2);

/// A timeline pod, and a connection beside it.
pub(super) struct Timeline {
    assembly: Assembly,
    address: SocketAddr,
    pub(super) ledger_url: String,
    pub(super) raw: Sql,
}

/// Calls a second by the pod, and transactions a second by pgbench.
pub(super) struct Paces {
    pub(super) pod: f64,
    pub(super) pgbench: f64,
}

impl Timeline {
    pub(super) async fn open() -> Self {
        let unused = Path::new("unused");
        let mut settings = servers::settings(&SERVERS, unused).await.expect("servers");
        // As many shards as an installation has that says nothing.
        settings.retain(|(key, _)| *key != "stores.shards");
        let ledger_url = settings.iter().find(|(key, _)| *key == "stores.ledger").expect("a ledger").1.clone();
        let assembly = assemble(&format!("bench:{}", (&random::System as &dyn Random).secret()), settings);
        assembly.settings.stores.migrate(Mode::Apply).await.expect("prepared stores");
        let pod = assembly.pod("timeline");
        let stores = Stores::open(&assembly.settings.stores, &assembly.store_parts(&pod)).await.expect("stores");
        let (listener, address) = listen().await;
        assembly.timeline(&pod, stores, listener).await.expect("a timeline pod");
        let raw = connect(&ledger_url).await;
        Self { assembly, address, ledger_url, raw }
    }

    /// A client with a connection of its own, which may act for anyone.
    pub(super) fn client(&self) -> Client {
        Client::new(self.address, self.assembly.keyring.clone(), Caller::Service("bench".to_owned()))
    }

    /// Has people with these ids sign up.
    pub(super) async fn sign_up(&self, ids: Range<i64>) {
        let accounts = "INSERT INTO accounts (id, handle, display_name, created_at_ms, version) \
                        SELECT id, 'p' || id, 'somebody', 0, 1 FROM generate_series($1::BIGINT, $2) AS id";
        let (first, last) = (ids.start, ids.end - 1);
        self.raw.execute(accounts, &[&first, &last]).await.expect("accounts");
        let counters = "INSERT INTO user_counters (user_id) SELECT generate_series($1::BIGINT, $2)";
        self.raw.execute(counters, &[&first, &last]).await.expect("counters");
    }

    /// As after a while of use: PostgreSQL knows its tables, and has no work left over.
    pub(super) async fn tidy_up(&self) {
        for tidying in ["VACUUM ANALYZE", "CHECKPOINT"] {
            self.raw.batch_execute(tidying).await.expect(tidying);
        }
    }

    /// Has a call made over and over by each client, and beside it pgbench run a script, in turn. The script knows its people
    /// by `first` and `people`.
    pub(super) async fn paces(
        &self,
        call: impl Fn(Client) -> BoxFuture<'static, ()> + Copy + Send + 'static,
        script: &str,
        people: Range<i64>,
    ) -> Paces {
        self.pace(call, WARM_UP).await;
        self.pgbench(script, &people, WARM_UP).await;
        let (mut pod, mut pgbench) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            pgbench.push(self.pgbench(script, &people, ROUND).await);
            pod.push(self.pace(call, ROUND).await);
        }
        Paces { pod: median(pod), pgbench: median(pgbench) }
    }

    async fn pace(
        &self,
        call: impl Fn(Client) -> BoxFuture<'static, ()> + Copy + Send + 'static,
        lasts: Duration,
    ) -> f64 {
        let begun = Instant::now();
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            let client = self.client();
            clients.spawn(async move {
                let mut calls = 0;
                while begun.elapsed() < lasts {
                    call(client.clone()).await;
                    calls += 1;
                }
                calls
            });
        }
        let calls: u32 = clients.join_all().await.into_iter().sum();
        f64::from(calls) / begun.elapsed().as_secs_f64()
    }

    async fn pgbench(&self, script: &str, people: &Range<i64>, lasts: Duration) -> f64 {
        let output = Command::new(pgbench())
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
            .arg(format!("--client={CLIENTS}"))
            .arg(format!("--time={}", lasts.as_secs()))
            .arg(format!("--define=first={}", people.start))
            .arg(format!("--define=people={}", people.end - people.start))
            .arg("--file")
            .arg(root().join(script))
            .arg(&self.ledger_url)
            .output()
            .await
            .expect("pgbench runs");
        let told = String::from_utf8_lossy(&output.stdout);
        let pace = told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
        pace.unwrap_or_else(|| panic!("pgbench: {told}{}", String::from_utf8_lossy(&output.stderr)))
    }
}

/// Comes with the server, which Debian keeps out of PATH.
fn pgbench() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debians = versions.map(|version| version.path().join("bin/pgbench")).filter(|path| path.exists()).max();
    debians.unwrap_or_else(|| Path::new("pgbench").to_owned())
}

/// Someone's id, as callers say it.
pub(super) fn user(id: i64) -> String {
    UserId::new(id).expect("an id of a person").to_string()
}

/// One of a range, by chance.
pub(super) fn any_of(range: Range<i64>) -> i64 {
    let number = ((&random::System as &dyn Random).number() >> 1).cast_signed();
    range.start + number % (range.end - range.start)
}
