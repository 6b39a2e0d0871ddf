//! The relay's consuming: how many posts a second it takes from Kafka into Cassandra and Redis, beside what the bare drivers
//! write of the same.

mod backlog;
mod check;
mod peer;
mod people;

use std::{sync::Arc, time::Duration};

use chassis::{Stop, clock};
use peer::Peer;
use people::People;
use store::{Shard, shard::SHARDS_DEFAULT};
use tokio::time::{Instant, sleep, timeout};

use super::{Bench, Goal, Report, median};
use crate::servers::SERVERS;
use backlog::{Backlog, Marks};

/// How many posts a round applies.
const POSTS: usize = 32_000;
/// Rounds of relay and drivers in turn; the median counts.
const ROUNDS: usize = 3;
/// Before them, and not counted: servers warm up, statements are prepared.
const WARM_UP_POSTS: usize = 5_000;
const PART_LEAST: f64 = 0.6;
const POLL: Duration = Duration::from_millis(2);
const DEADLINE: Duration = Duration::from_secs(120);

/// Applies posts in rounds, by the relay and by the bare drivers.
pub(in crate::bench) async fn measure() -> Report {
    let bench = Bench::open(&SERVERS).await;
    let people = Arc::new(People::settle(&bench).await);
    let peer = Arc::new(Peer::open(&bench, people.clone()).await);
    let mut posts = backlog::Posts::by(&people);
    for _ in 0..2 {
        peer.pace(posts.next(WARM_UP_POSTS)).await;
        pace(&bench, posts.next(WARM_UP_POSTS)).await;
    }
    let (mut paces, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(peer.pace(posts.next(POSTS)).await);
        paces.push(pace(&bench, posts.next(POSTS)).await);
    }
    check::all_is_there(&bench, &peer, &people, &posts).await;
    let (pace, bare) = (median(paces), median(bare));
    Report {
        goals: vec![Goal { name: "consume", ratio: pace / bare, least: PART_LEAST }],
        figures: vec![
            format!("consume: {pace:.0} posts/s from Kafka to archive, recents, homes and streams"),
            format!("bare drivers: {bare:.0} posts/s of the same writes"),
        ],
    }
}

/// Posts a second, from the first lane's beginning until the last lane's end, by the relay's own consumer.
async fn pace(bench: &Bench, backlog: Backlog) -> f64 {
    let (number, marks) = (backlog.number(), Marks::new());
    backlog.append(bench, marks).await;
    let deliveries = relay::deliveries(&bench.pod, &bench.stores, Arc::new(clock::System));
    let stop = Stop::new();
    let applied = async {
        // Joining the group does not count.
        passed(bench, |settled| settled.iter().any(|ms| *ms >= Some(marks.first))).await;
        let begun = Instant::now();
        passed(bench, |settled| settled.iter().all(|ms| *ms >= Some(marks.last))).await;
        let taken = begun.elapsed();
        stop.cancel();
        taken
    };
    let (ended, taken) = tokio::join!(deliveries.run(stop.clone()), timeout(DEADLINE, applied));
    ended.expect("the consumer ends well");
    number as f64 / taken.expect("all is applied in time").as_secs_f64()
}

/// Waits until the marks that were passed are as wanted.
async fn passed(bench: &Bench, are_wanted: impl Fn(&[Option<i64>]) -> bool) {
    while !are_wanted(&bench.stores.sets.settled.all(SHARDS_DEFAULT).await.expect("the marks")) {
        sleep(POLL).await;
    }
}

/// All lanes of a topic.
fn shards() -> impl Iterator<Item = Shard> {
    (0..SHARDS_DEFAULT).map(Shard)
}
