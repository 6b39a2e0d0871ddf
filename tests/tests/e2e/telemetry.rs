//! Traces: one call can be followed from the caller through ledger, outbox and event log to the reader. Logs: JSON where
//! nobody watches.

use chassis::{token::Caller, trace};
use proto::freshet::{
    post::v1::CreatePostRequest,
    user::v1::{FollowRequest, SignUpRequest},
};
use serde_json::Value;
use tests::{
    Dev, Stream,
    collector::{Collector, hex},
    grpc::Client,
    logs,
    person::PASSWORD,
    stream::sign_in,
    wait,
};
use tracing::{Instrument as _, info_span};

use crate::BINARY;

async fn sign_up(client: &Client, handle: &str) -> String {
    let request = SignUpRequest { handle: handle.into(), password: PASSWORD.into(), ..SignUpRequest::default() };
    client.sign_up(request).await.expect("an account").user.expect("a user").id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_one_trace_from_the_call_to_the_readers_stream() {
    logs::capture();
    let (folder, collector) = (tempfile::tempdir().expect("a folder"), Collector::start().await);
    let endpoint = format!("trace.otlp_endpoint={}", collector.url());
    let mut process = Dev::start(BINARY, folder.path(), &["--set", &endpoint], "");
    let address = process.address("timeline").await;
    let calls = Client::new(address, process.keyring(), Caller::Service("tests".into()));
    let (ada, lin) = (sign_up(&calls, "ada").await, sign_up(&calls, "lin").await);
    calls.follow(FollowRequest { follower_id: ada, followee_id: lin.clone() }).await.expect("a follow");
    let edge = process.address("edge").await;
    let cookie = sign_in(edge, "ada", PASSWORD).await.expect("a session");
    let mut stream = Stream::open(edge, &cookie).await.expect("a stream");

    let caller = info_span!("the caller");
    let traceparent = caller.in_scope(trace::current);
    let request = CreatePostRequest { author_id: lin, text: "followed".into(), ..CreatePostRequest::default() };
    let post = calls.create_post(request).instrument(caller).await.expect("a post").post.expect("a post");
    stream.shows_next(&post).await;
    assert_eq!(process.terminate().await, Some(0));

    // Version, trace, span, flags.
    let [_, trace_id, caller_id, _] = traceparent.split('-').collect::<Vec<_>>()[..] else { panic!("{traceparent}") };
    let steps = ["/freshet.post.v1.PostService/CreatePost", "relay post.created", "edge deliver"];
    let spans = wait::until("every step of the trace", async || {
        let spans = collector.spans_of(trace_id);
        steps.iter().all(|step| spans.iter().any(|span| span.name == *step)).then_some(spans)
    })
    .await;
    let mut parent = caller_id.to_owned();
    for step in steps {
        let span = spans.iter().find(|span| span.name == step).expect("a span");
        assert_eq!(hex(&span.parent_span_id), parent, "{step} follows from another step");
        parent = hex(&span.span_id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_watches_is_json_and_names_the_pod() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Dev::start(BINARY, folder.path(), &[], "");
    process.prints("is up after").await;
    assert_eq!(process.terminate().await, Some(0));
    let line: Value = serde_json::from_str(&process.prints("edge-").await).expect("JSON");
    assert_eq!(line["level"], "INFO");
    assert!(line["pod"].as_str().is_some_and(|pod| pod.starts_with("edge-")), "{line}");
    assert!(line["timestamp"].is_string() && line["message"].is_string(), "{line}");
}
