//! A real cluster, broken under load: every post is counted. These tests stop, flush and starve servers, so they run one at a
//! time and with nothing else beside them (`tests/run` and `tests/faults` see to that).

mod events;

use std::{sync::atomic::Ordering, time::Duration};

use tests::{
    Pods,
    cluster::Cluster,
    cql::Cql,
    crowd::Crowd,
    oracle::{Truth, Verdict, judge, scroll},
    proxy::Weather,
    servers::{self, Adapter, ServicesFolder},
    wait,
};
use tokio::time::sleep;

use crate::BINARY;

const PEOPLE: usize = 12;
const WATCHERS: usize = 6;
/// Enough for a few hundred deeds before, during and after a fault.
const LOAD: Duration = Duration::from_secs(3);
/// How long a cluster may take to come right again. Far more than is needed: a busy machine is no bug.
const HEAL_WITHIN: Duration = Duration::from_secs(180);
/// Long enough for what is only late to arrive.
const LATE_WITHIN: Duration = Duration::from_secs(45);
const KAFKA_AWAY: Duration = Duration::from_secs(30);
/// How often relays come and go in a storm, and how long each stays: a minute in all.
const STORM_ROUNDS: u32 = 20;
const STORM_STAY: Duration = Duration::from_secs(3);
/// How often PostgreSQL's answers are lost, and for how long each time.
const LOST_ANSWERS: usize = 10;
const BURST: Duration = Duration::from_millis(300);
/// How often Redis is killed after it had forgotten everything.
const FORGOTTEN: usize = 2;
/// What a stream is told of after that: its connection was forgotten, and so was what its pod was told.
const GAPS_OF_A_FLUSH: usize = 2;
/// Enough for new posts, and less than it takes until it is noted that they are applied.
const TOLD_AGAIN: Duration = Duration::from_secs(1);
/// Longer than the leases of shards and writer numbers, and than a consumer's session.
const PAST_EVERY_LEASE: Duration = Duration::from_secs(12);

/// A cluster at work, and the people who use it.
struct Run {
    name: &'static str,
    services: ServicesFolder,
    cluster: Cluster,
    crowd: Crowd,
}

impl Run {
    /// Two pods of each role, and people who are already at it. `None`: skipped.
    async fn under_load(name: &'static str, failpoints: &str) -> Option<Self> {
        let services = ServicesFolder::of_this_run()?;
        let cluster = Cluster::start(BINARY, Pods::TWO, failpoints).await?;
        Truth::of(cluster.database()).await.install_witness().await;
        let mut crowd = Crowd::gather(&cluster, PEOPLE).await;
        crowd.watch(WATCHERS, &cluster.addresses("edge")).await;
        crowd.begin();
        sleep(LOAD).await;
        Some(Self { name, services, cluster, crowd })
    }

    /// Waits until every reader has read again after a flush.
    async fn everybody_reads_again(&self) {
        let gaps = || self.crowd.watchers.iter().map(|watcher| watcher.seen().gaps);
        let before: Vec<_> = gaps().collect();
        wait::until("every reader to read again", async || {
            gaps().zip(&before).all(|(now, before)| now >= before + GAPS_OF_A_FLUSH).then_some(())
        })
        .await;
    }

    /// Kills Redis and starts it again, and lets people use it for a while.
    async fn restart_redis(&self) {
        self.services.kill("redis-single").await;
        self.services.start("redis-single").await;
        sleep(LOAD).await;
    }

    /// People go on for a while after the fault, then stop; and everything is counted.
    async fn verdict(&mut self) -> Verdict {
        self.verdict_within(HEAL_WITHIN).await
    }

    async fn verdict_within(&mut self, heal_within: Duration) -> Verdict {
        sleep(LOAD).await;
        self.crowd.end().await;
        let verdict = judge(&self.cluster, &self.crowd, heal_within).await;
        println!("{} {verdict}", self.name);
        verdict
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r0_nothing_happens() {
    let Some(mut run) = Run::under_load("R0", "").await else { return };
    let verdict = run.verdict().await;
    assert!(verdict.ops > 300, "only {} deeds: that is no load", verdict.ops);
    assert_eq!(verdict.gaps, 0);
    verdict.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_a_relay_is_killed_and_another_one_comes() {
    let Some(mut run) = Run::under_load("R1", "").await else { return };
    run.cluster.kill("relay").await;
    sleep(LOAD).await;
    run.cluster.add("relay", "").await;
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_redis_is_flushed_and_restarted() {
    let Some(mut run) = Run::under_load("R2", "").await else { return };
    for _ in 0..FORGOTTEN {
        // It dies when every reader has read again and new posts come by the streams: what was not told in between is
        // applied and told once more, after them.
        servers::flush_redis().await;
        run.everybody_reads_again().await;
        sleep(TOLD_AGAIN).await;
        run.restart_redis().await;
    }
    // And before anybody has noticed.
    servers::flush_redis().await;
    run.restart_redis().await;
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_kafka_is_away_for_30_seconds() {
    let Some(mut run) = Run::under_load("R3", "").await else { return };
    run.services.stop("kafka").await;
    sleep(KAFKA_AWAY).await;
    run.services.start("kafka").await;
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_each_server_is_cut_off_slowed_down_and_loses_its_answers() {
    let Some(mut run) = Run::under_load("R4", "").await else { return };
    for weather in [Weather::Cut, Weather::Slow(Duration::from_millis(50)), Weather::AnswersLost] {
        for server in [Adapter::Postgres, Adapter::Redis, Adapter::Kafka, Adapter::Cassandra] {
            let proxy = run.cluster.proxies.of(server);
            proxy.set(weather);
            sleep(Duration::from_secs(2)).await;
            proxy.set(Weather::Clear);
        }
    }
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_a_pod_of_each_role_is_frozen_past_its_leases_and_goes_on() {
    let Some(mut run) = Run::under_load("R5", "").await else { return };
    for role in ["timeline", "relay", "ranking"] {
        let frozen = run.cluster.members.iter().find(|member| member.role == role).expect("a pod");
        frozen.process.freeze().await;
        sleep(PAST_EVERY_LEASE).await;
        frozen.process.thaw().await;
    }
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_a_relay_dies_at_each_place_where_it_hurts() {
    let Some(mut run) = Run::under_load("R6", "").await else { return };
    for place in [
        "relay.after_claim",
        "relay.before_publish",
        "relay.sent_before_ack",
        "relay.before_remove",
        "consumer.before_apply",
        "deliver.after_archive",
        "consumer.before_commit",
    ] {
        run.cluster.add("relay", &format!("{place}=kill")).await;
        // It gets its part of the work from the others, and dies of it.
        let mut armed = run.cluster.members.pop().expect("the relay that was added");
        armed.process.ends().await;
    }
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_postgres_commits_and_its_answers_are_lost_again_and_again() {
    let Some(mut run) = Run::under_load("R7", "").await else { return };
    let proxy = run.cluster.proxies.of(Adapter::Postgres);
    for _ in 0..LOST_ANSWERS {
        // Too short for anyone to give up on the server.
        proxy.set(Weather::AnswersLostAfter("COMMIT"));
        sleep(BURST).await;
        proxy.set(Weather::Clear);
        sleep(BURST).await;
    }
    let verdict = run.verdict().await;
    let asked_again = run.crowd.asked_again.load(Ordering::Relaxed);
    assert!(asked_again > 0, "nobody had to ask again: that was no fault");
    verdict.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_a_relay_is_frozen_before_it_removes_until_another_one_has_its_shards() {
    let Some(mut run) = Run::under_load("R8", "").await else { return };
    let truth = Truth::of(run.cluster.database()).await;
    let shards = truth.owners_of_shards().await.len();
    run.cluster.add("relay", "relay.before_remove=freeze").await;
    let frozen = run.cluster.members.last().expect("the relay that was added");
    wait::until("the relay to stand still", async || frozen.process.is_frozen().then_some(())).await;
    sleep(PAST_EVERY_LEASE).await;
    wait::until("others to have its shards", async || {
        let owners = truth.owners_of_shards().await;
        (owners.len() == shards && !owners.contains(&frozen.name)).then_some(())
    })
    .await;
    let told = "while publishing; its next owner sends again";
    wait::until("the relay to find that its shard is gone", async || {
        // It stands still before each of its removals.
        frozen.process.thaw().await;
        frozen.process.printed().iter().any(|line| line.contains(told)).then_some(())
    })
    .await;
    // It would stand still again.
    run.cluster.members.pop().expect("the relay that was added").process.kill_now().await;
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_relays_come_and_go_for_a_minute() {
    let Some(mut run) = Run::under_load("R12", "").await else { return };
    for round in 0..STORM_ROUNDS {
        run.cluster.add("relay", "").await;
        sleep(STORM_STAY).await;
        // Some leave, some die.
        if round % 2 == 0 {
            run.cluster.kill("relay").await;
        } else {
            run.cluster.stop("relay").await;
        }
    }
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_harness_notices_a_removal_without_a_lease() {
    let Some(mut run) = Run::under_load("the build that asks for no lease", "").await else { return };
    let truth = Truth::of(run.cluster.database()).await;
    run.cluster.add("relay", "relay.before_remove=freeze,outbox.removes_without_lease=on").await;
    let (faulty, others) = run.cluster.members.split_last().expect("the relay that was added");
    wait::until("the relay to stand still", async || faulty.process.is_frozen().then_some(())).await;
    // Others would take the rows away first, and nothing would be left to do wrong.
    let others: Vec<_> = others.iter().filter(|member| member.role == "relay").collect();
    for other in &others {
        other.process.freeze().await;
    }
    // Somebody who only takes its shards: it would have them back otherwise, sooner or later than it removes.
    wait::until("its leases to run out and be taken", async || {
        truth.takes_what_ran_out_for(&faulty.name).await.then_some(())
    })
    .await;
    wait::until("it to remove what is not its own", async || {
        faulty.process.thaw().await;
        (!truth.removals_without_lease().await.is_empty()).then_some(())
    })
    .await;
    for other in &others {
        other.process.thaw().await;
    }
    run.cluster.members.pop().expect("the relay that was added").process.kill_now().await;
    let verdict = run.verdict_within(LOAD).await;
    let seen = verdict.faults.examples().iter().any(|example| example.contains("removed without a lease"));
    assert!(seen && verdict.faults.stuck > 0, "a build that removes without a lease passed: {verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_harness_notices_an_offset_that_was_committed_before_its_effect() {
    // Slow enough to be in the middle of a batch whenever it is killed, quick enough to catch up.
    let faulty = "consumer.commits_first=on,consumer.before_apply=delay:20ms";
    let Some(mut run) = Run::under_load("the faulty build", faulty).await else { return };
    for _ in 0..2 {
        run.cluster.kill("relay").await;
        run.cluster.add("relay", faulty).await;
        sleep(LOAD).await;
    }
    let verdict = run.verdict_within(LATE_WITHIN).await;
    assert!(verdict.faults.lost > 0, "a build that loses events passed: {verdict}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r9_the_archive_is_dropped_and_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let gate = folder.path().join("gate");
    let held = format!("fill.before_chunk=hold:{}", gate.display());
    let Some(mut run) = Run::under_load("R9", &held).await else { return };
    let truth = Truth::of(run.cluster.database()).await;
    let mut homes = Vec::new();
    for reader in &run.crowd.people {
        homes.push((*reader, truth.home(*reader).await));
    }
    let (mut cql, keyspace) = (Cql::connect().await, run.cluster.namespace());
    cql.run(&format!("DROP KEYSPACE {keyspace}")).await;
    sleep(LOAD).await;

    // Every home is built again while the new archive has nothing of what was written before.
    std::fs::write(&gate, "").expect("the gate is shut");
    run.cluster.migrate().await;
    servers::flush_redis().await;
    let clients = run.cluster.clients("timeline");
    for (number, (reader, before)) in homes.iter().enumerate() {
        let client = &clients[number % clients.len()];
        let shown = wait::until("a home that can be read", async || scroll(client, *reader).await).await;
        let missing = before.iter().filter(|(post, _)| !shown.iter().any(|(shown, _)| shown == post)).count();
        assert_eq!(missing, 0, "of {} posts in {reader}'s home", before.len());
    }
    std::fs::remove_file(&gate).expect("the gate is open");
    run.verdict().await.must_be_clean(&run.cluster);

    let (posts, follows) = (truth.posts().await.len(), truth.follows().await.len());
    let expected = [posts, 2 * posts, follows, follows];
    wait::until("every row of the ledger in the archive", async || {
        let mut found = Vec::new();
        for table in ["posts_by_author", "public_posts", "following_by_user", "followers_by_user_bucket"] {
            found.push(cql.count(&format!("{keyspace}.{table}")).await);
        }
        (found == expected).then_some(())
    })
    .await;
    let fill = run.cluster.run_command(&["rebuild", "archive"]).await;
    assert!(fill.contains("is complete"), "{fill}");
}
