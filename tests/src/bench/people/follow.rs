//! Follows a second, by many clients at once.

use std::ops::Range;

use futures_util::future::BoxFuture;
use proto::freshet::user::v1::FollowRequest;

use super::super::timeline::{Paces, Timeline, any_of, user};
use crate::grpc::Client;

const SCRIPT: &str = "tests/src/bench/people/follow.sql";
/// Those whom the pod has follow each other, and those whom pgbench does: as many, and none of them twice.
const PODS: Range<i64> = 1..50_001;
const PGBENCHS: Range<i64> = 50_001..100_001;
/// How many each of them follows from the start.
const FOLLOWEES: i64 = 10;

pub(super) async fn measure(timeline: &Timeline) -> Paces {
    timeline.sign_up(PODS.start..PGBENCHS.end).await;
    for people in [PODS, PGBENCHS] {
        befriend(timeline, people).await;
    }
    timeline.tidy_up().await;
    let follow = |client: Client| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let from = any_of(PODS);
            let to = Some(any_of(PODS)).filter(|to| *to != from).unwrap_or(PODS.start + from % (PODS.end - PODS.start));
            let [follower_id, followee_id] = [from, to].map(user);
            client.follow(FollowRequest { follower_id, followee_id }).await.expect("a follow");
        })
    };
    timeline.paces(follow, SCRIPT, PGBENCHS).await
}

/// Has each of them follow the next ones already. PostgreSQL keeps a plan for as long as nobody has looked at the table again:
/// one that was made for an empty table reads all of it, for a minute or two.
async fn befriend(timeline: &Timeline, people: Range<i64>) {
    let follows = "INSERT INTO follows (follower, followee, active, version) \
                   SELECT $1 + place, $1 + (place + step) % $2, TRUE, 1 \
                   FROM generate_series(0, $2::BIGINT - 1) AS place, generate_series(1, $3::BIGINT) AS step";
    let number = people.end - people.start;
    timeline.raw.execute(follows, &[&people.start, &number, &FOLLOWEES]).await.expect("follows");
}
