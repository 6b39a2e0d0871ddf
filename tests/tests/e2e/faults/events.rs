//! Events that come again, out of order, or make no sense.

use prost::Message as _;
use proto::{
    event::{Topic, kind},
    freshet::{event::v1::Envelope, ranking::v1::ListHotPostsRequest},
};
use store::{Shard, event_log::Record};
use tests::{cluster::Cluster, oracle::Truth, wait};
use tokio::time::{Instant, sleep};

use super::{LATE_WITHIN, LOAD, Run};

#[tokio::test(flavor = "multi_thread")]
async fn r10_every_event_is_told_again_and_backwards() {
    let Some(mut run) = Run::under_load("R10", "").await else { return };
    run.crowd.end().await;
    tell_everything_backwards(&run.cluster).await;
    run.verdict().await.must_be_clean(&run.cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_harness_notices_an_old_version_that_undoes_a_newer_one() {
    let faulty = "likes.ignore_versions=on";
    let Some(mut run) = Run::under_load("the build that looks at no version", faulty).await else { return };
    run.crowd.end().await;
    tell_everything_backwards(&run.cluster).await;
    let verdict = run.verdict_within(LATE_WITHIN).await;
    assert!(verdict.faults.stuck > 0, "a build that lets old news win passed: {verdict}");
}

/// Appends all that the log has once more, the last first.
async fn tell_everything_backwards(cluster: &Cluster) {
    let truth = Truth::of(cluster.database()).await;
    wait::until("an empty outbox", async || (truth.outbox_rows().await == 0).then_some(())).await;
    // A list that nobody has read is not there yet, and would be filled from the ledger.
    let hot = cluster.clients("ranking")[0].list_hot_posts(ListHotPostsRequest::default()).await.expect("hot posts");
    assert!(hot.posts.iter().any(|post| post.score > 3), "nobody likes what another one likes: {hot:?}");
    let log = cluster.event_log().await;
    let mut member = log.join("backwards", &[Topic::Posts, Topic::Graph, Topic::Likes]).await.expect("a member");
    let (mut records, mut last) = (Vec::new(), Instant::now());
    // Marks go on to come, and are no events: told again, one would stand before what it speaks of.
    while records.is_empty() || last.elapsed() < LOAD {
        let events = wait::within("marks, at least", member.next()).await.expect("events");
        let events: Vec<_> =
            events.into_iter().map(|event| event.record).filter(|record| record.kind != kind::MARK).collect();
        if !events.is_empty() {
            last = Instant::now();
        }
        records.extend(events);
    }
    assert!(records.len() > 100, "only {} events: that is no log", records.len());
    records.reverse();
    log.append(records).await.expect("an append");
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_bad_events_come_between_the_good_ones() {
    let Some(mut run) = Run::under_load("R11", "").await else { return };
    let log = run.cluster.event_log().await;
    let keys: Vec<_> = run.crowd.people.iter().take(3).map(ToString::to_string).collect();
    let bad = |key: &str, kind: &str, payload: Vec<u8>| Record {
        topic: Topic::Posts,
        partition: Shard::of(key, run.cluster.shards()),
        key: key.to_owned(),
        kind: kind.to_owned(),
        payload: payload.into(),
        traceparent: String::new(),
        epoch: 0,
    };
    let envelope = |kind: &str| Envelope { r#type: kind.to_owned(), ..Envelope::default() }.encode_to_vec();
    log.append(vec![
        bad(&keys[0], "post.created", vec![0xFF; 9]),
        bad(&keys[1], "post.foretold", envelope("post.foretold")),
        bad(&keys[2], "post.created", envelope("post.created")),
    ])
    .await
    .expect("an append");
    sleep(LOAD).await;
    run.crowd.end().await;
    wait::until("the bad events, and others behind them", async || {
        let list = listed(&run.cluster).await;
        let causes = ["undecodable", "unknown_type", "broken_rule", "parked"];
        causes.iter().all(|cause| list.contains(cause)).then_some(())
    })
    .await;
    for cause in ["undecodable", "unknown_type", "broken_rule"] {
        let told = run.cluster.run_command(&["deadletters", "discard", "--cause", cause, "--as", "the test"]).await;
        assert!(told.contains("discarded 1 letters"), "{told}");
    }
    run.verdict().await.must_be_clean(&run.cluster);
    wait::until("no letters", async || listed(&run.cluster).await.contains("0 of 0 letters").then_some(())).await;
}

async fn listed(cluster: &Cluster) -> String {
    cluster.run_command(&["deadletters", "list", "--limit", "10000"]).await
}
