//! The edge as a browser sees it.

use http::{Method, StatusCode, header::SET_COOKIE};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tests::{
    Pods, Sandbox, Stream,
    person::PASSWORD,
    stream::{Refused, send, sign_in},
    wait,
};

#[track_caller]
fn is_refused<T: std::fmt::Debug>(answer: Result<T, Refused>, status: StatusCode, reason: &str) {
    let refused = answer.expect_err("refused");
    assert_eq!((refused.status, refused.body["error"]["reason"].as_str()), (status, Some(reason)), "{refused:?}");
}

async fn json_of(answer: http::Response<hyper::body::Incoming>) -> (StatusCode, Value) {
    let status = answer.status();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn signing_in_opens_a_stream_and_signing_out_closes_the_door() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let edge = world.edge();

    is_refused(sign_in(edge, "ada", "not her password").await, StatusCode::UNAUTHORIZED, "CREDENTIALS_WRONG");
    let cookie = sign_in(edge, "ada", PASSWORD).await.expect("a session");
    let stream = Stream::open(edge, &cookie).await.expect("a stream");
    assert!(world.is_connected(ada.id).await);
    drop(stream);
    wait::until("the registry to forget a closed stream", async || (!world.is_connected(ada.id).await).then_some(()))
        .await;

    let answer = send(edge, Method::DELETE, "/session", Some(&cookie), None).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers()[SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    is_refused(Stream::open(edge, &cookie).await, StatusCode::UNAUTHORIZED, "SESSION_MISSING");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_one_pod_is_good_at_another_and_a_forged_one_nowhere() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    let (here, there) = (world.edge(), world.edge());
    assert_ne!(here, there);
    let cookie = sign_in(here, "ada", PASSWORD).await.expect("a session");
    let mut stream = Stream::open(there, &cookie).await.expect("a stream");
    let post = lin.post("hello").await;
    stream.shows_next(&post).await;

    for forged in ["freshet_session=", "freshet_session=AAAA", "other=1", ""] {
        is_refused(Stream::open(there, forged).await, StatusCode::UNAUTHORIZED, "SESSION_MISSING");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_make_no_sense_are_told_why() {
    let world = Sandbox::start().await;
    let edge = world.edge();
    let post = async |body: &Value| json_of(send(edge, Method::POST, "/session", None, Some(body)).await).await;

    let (status, body) = post(&json!({"handle": "ada"})).await;
    assert_eq!((status, body["error"]["fields"][0]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("body")));
    assert!(body["error"]["message"].as_str().unwrap().contains("missing field `password`"), "{body}");
    let (status, _) = post(&json!({"handle": "ada", "password": PASSWORD, "admin": true})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let (status, body) = post(&json!({"handle": "x".repeat(20_000), "password": PASSWORD})).await;
    assert_eq!((status, body["error"]["reason"].as_str()), (StatusCode::PAYLOAD_TOO_LARGE, Some("REQUEST_TOO_LARGE")));

    let without_type = send(edge, Method::POST, "/session", None, None).await;
    assert_eq!(json_of(without_type).await.1["error"]["fields"][0]["field"], "content-type");
    assert_eq!(send(edge, Method::GET, "/nowhere", None, None).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(send(edge, Method::PUT, "/session", None, None).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(send(edge, Method::GET, "/healthz", None, None).await.status(), StatusCode::OK);
    assert_eq!(send(edge, Method::GET, "/readyz", None, None).await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pod_sends_browsers_away_and_says_when_to_come_back() {
    let world = Sandbox::with_settings(Pods::ONE, &[("edge.connections_max", "1")]).await;
    let [ada] = world.people(["ada"]).await;
    let _first = ada.stream().await;
    let cookie = sign_in(world.edge(), "ada", PASSWORD).await.expect("a session");
    let answer = send(world.edge(), Method::GET, "/events/timeline/home", Some(&cookie), None).await;
    // Not an error status: a native EventSource would give up for good.
    assert_eq!(answer.status(), StatusCode::OK);
    let body = answer.into_body().collect().await.expect("the stream ends").to_bytes();
    let text = std::str::from_utf8(&body).unwrap();
    let after_ms: u64 = text.strip_prefix("retry: ").and_then(|rest| rest.trim().parse().ok()).expect(text);
    assert!((2_000..8_000).contains(&after_ms));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_draining_edge_closes_its_streams() {
    let mut world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let mut stream = ada.stream().await;
    world.stop("edge").await;
    assert_eq!(stream.next().await, None);
    assert!(!world.is_connected(ada.id).await);
}
