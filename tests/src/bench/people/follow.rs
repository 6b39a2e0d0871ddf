//! Follows a second, by many clients at once: through a timeline pod's gRPC, and of the same transaction by pgbench.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use chassis::{Random, random};
use proto::freshet::user::v1::FollowRequest;
use tokio::{process::Command, task::JoinSet, time::Instant};

use super::{Bench, median, user};
use crate::tools::root;

pub(super) const CLIENTS: usize = 16;
/// Rounds of both in turn; the median counts.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(8);
/// Before them, and not counted: connections are opened, plans are made.
const WARM_UP: Duration = Duration::from_secs(2);
const SCRIPT: &str = "tests/src/bench/people/follow.sql";
/// Those whom the pod has follow each other, and those whom pgbench does: as many, and none of them twice.
const PEOPLE: i64 = 50_000;
/// How many each of them follows from the start.
const FOLLOWEES: i64 = 10;
const PODS_FIRST: i64 = 1;
const PEERS_FIRST: i64 = PODS_FIRST + PEOPLE;

/// Follows a second by the pod and by pgbench.
pub(super) async fn measure(bench: &Bench) -> (f64, f64) {
    bench.sign_up(PODS_FIRST..PEERS_FIRST + PEOPLE).await;
    for first in [PODS_FIRST, PEERS_FIRST] {
        befriend(bench, first).await;
    }
    bench.raw.batch_execute("VACUUM ANALYZE").await.expect("statistics");
    pace(bench, WARM_UP).await;
    peer_pace(bench, WARM_UP).await;
    let (mut paces, mut peers) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        peers.push(peer_pace(bench, ROUND).await);
        paces.push(pace(bench, ROUND).await);
    }
    (median(paces), median(peers))
}

/// Has each of them follow the next ones already. PostgreSQL keeps a plan for as long as nobody has looked at the table again:
/// one that was made for an empty table reads all of it, for a minute or two.
async fn befriend(bench: &Bench, first: i64) {
    let follows = "INSERT INTO follows (follower, followee, active, version) \
                   SELECT $1 + place, $1 + (place + step) % $2, TRUE, 1 \
                   FROM generate_series(0, $2::BIGINT - 1) AS place, generate_series(1, $3::BIGINT) AS step";
    bench.raw.execute(follows, &[&first, &PEOPLE, &FOLLOWEES]).await.expect("follows");
}

async fn pace(bench: &Bench, lasts: Duration) -> f64 {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let client = bench.client();
        clients.spawn(async move {
            let mut follows = 0;
            while begun.elapsed() < lasts {
                let [from, step] = [PEOPLE, PEOPLE - 1].map(below);
                let to = (from + 1 + step) % PEOPLE;
                let [follower_id, followee_id] = [from, to].map(|place| user(PODS_FIRST + place));
                client.follow(FollowRequest { follower_id, followee_id }).await.expect("a follow");
                follows += 1;
            }
            follows
        });
    }
    let follows: u32 = clients.join_all().await.into_iter().sum();
    f64::from(follows) / begun.elapsed().as_secs_f64()
}

fn below(limit: i64) -> i64 {
    let number = (&random::System as &dyn Random).number() >> 1;
    number.cast_signed() % limit
}

async fn peer_pace(bench: &Bench, lasts: Duration) -> f64 {
    let output = Command::new(pgbench())
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
        .arg(format!("--client={CLIENTS}"))
        .arg(format!("--time={}", lasts.as_secs()))
        .arg(format!("--define=first={PEERS_FIRST}"))
        .arg(format!("--define=people={PEOPLE}"))
        .arg("--file")
        .arg(root().join(SCRIPT))
        .arg(&bench.ledger_url)
        .output()
        .await
        .expect("pgbench runs");
    let told = String::from_utf8_lossy(&output.stdout);
    let pace = told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    pace.unwrap_or_else(|| panic!("pgbench: {told}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Comes with the server, which Debian keeps out of PATH.
fn pgbench() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debians = versions.map(|version| version.path().join("bin/pgbench")).filter(|path| path.exists()).max();
    debians.unwrap_or_else(|| Path::new("pgbench").to_owned())
}
