//! Posts a second, by many clients at once.

use std::ops::Range;

use futures_util::future::BoxFuture;
use proto::freshet::post::v1::CreatePostRequest;

use super::super::timeline::{Paces, Timeline, any_of, user};
use crate::grpc::Client;

const SCRIPT: &str = "tests/src/bench/posts/create.sql";
/// Those who write through the pod, and those for whom pgbench does.
const PODS: Range<i64> = 1..5_001;
const PGBENCHS: Range<i64> = 5_001..10_001;

pub(super) async fn measure(timeline: &Timeline) -> Paces {
    timeline.sign_up(PODS.start..PGBENCHS.end).await;
    timeline.tidy_up().await;
    let create = |client: Client| -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let text = "a post of middling length, as most of them are ".repeat(3);
            let request = CreatePostRequest { author_id: user(any_of(PODS)), text, ..CreatePostRequest::default() };
            client.create_post(request).await.expect("a post");
        })
    };
    timeline.paces(create, SCRIPT, PGBENCHS).await
}
