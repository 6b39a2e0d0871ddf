//! People: how many follows a second a timeline pod makes, beside what pgbench does of the same transaction; and what a page of
//! followers costs, whatever their number.

mod follow;
mod list;

use std::{net::SocketAddr, ops::Range};

use chassis::{Random, random, token::Caller};
use freshet::assembly::Assembly;
use proto::UserId;
use store::{Stores, migrate::Mode};
use tokio_postgres::Client as Sql;

use super::{Goal, Report, connect, median};
use crate::{
    grpc::Client,
    sandbox::{assemble, listen},
    servers::{self, SERVERS},
};

const FOLLOW_PART_LEAST: f64 = 0.6;
/// A page of a million may take so much of the time of a page of a hundred.
const LIST_GROWTH_MOST: f64 = 1.5;

/// A timeline pod on stores of its own, and a connection beside them.
struct Bench {
    assembly: Assembly,
    timeline: SocketAddr,
    ledger_url: String,
    raw: Sql,
}

/// Follows in rounds, then lists.
pub(super) async fn measure() -> Report {
    let bench = Bench::open().await;
    let (pace, peer) = follow::measure(&bench).await;
    let pages = list::measure(&bench).await;
    let growth = pages.of_many.as_secs_f64() / pages.of_few.as_secs_f64();
    Report {
        goals: vec![
            Goal { name: "follow", ratio: pace / peer, least: FOLLOW_PART_LEAST },
            Goal { name: "list", ratio: LIST_GROWTH_MOST / growth, least: 1.0 },
        ],
        figures: vec![
            format!("follow: {pace:.0} calls/s by {} clients", follow::CLIENTS),
            format!("pgbench: {peer:.0} transactions/s by as many"),
            format!("list: {:.2?} a page of 50, of {} followers", pages.of_few, list::FEW),
            format!("list: {:.2?} a page of 50, of {} followers, {growth:.2} times as long", pages.of_many, list::MANY),
        ],
    }
}

impl Bench {
    async fn open() -> Self {
        let unused = std::path::Path::new("unused");
        let mut settings = servers::settings(&SERVERS, unused).await.expect("servers");
        // As many shards as an installation has that says nothing.
        settings.retain(|(key, _)| *key != "stores.shards");
        let ledger_url = settings.iter().find(|(key, _)| *key == "stores.ledger").expect("a ledger").1.clone();
        let assembly = assemble(&format!("bench:{}", (&random::System as &dyn Random).secret()), settings);
        assembly.settings.stores.migrate(Mode::Apply).await.expect("prepared stores");
        let pod = assembly.pod("timeline");
        let stores = Stores::open(&assembly.settings.stores, &assembly.store_parts(&pod)).await.expect("stores");
        let (listener, timeline) = listen().await;
        assembly.timeline(&pod, stores, listener).await.expect("a timeline pod");
        let raw = connect(&ledger_url).await;
        Self { assembly, timeline, ledger_url, raw }
    }

    /// A client with a connection of its own, which may act for anyone.
    fn client(&self) -> Client {
        Client::new(self.timeline, self.assembly.keyring.clone(), Caller::Service("bench".to_owned()))
    }

    /// Has people with these ids sign up.
    async fn sign_up(&self, ids: Range<i64>) {
        let accounts = "WITH made AS (INSERT INTO accounts (id, handle, display_name, created_at_ms, version) \
                            SELECT id, 'p' || id, 'somebody', 0, 1 FROM generate_series($1::BIGINT, $2) AS id \
                            RETURNING id) \
                        SELECT count(id) FROM made";
        let (first, last) = (ids.start, ids.end - 1);
        self.raw.query(accounts, &[&first, &last]).await.expect("accounts");
        let counters = "INSERT INTO user_counters (user_id) SELECT generate_series($1::BIGINT, $2)";
        self.raw.execute(counters, &[&first, &last]).await.expect("counters");
    }
}

fn user(id: i64) -> String {
    UserId::new(id).expect("an id of a person").to_string()
}
