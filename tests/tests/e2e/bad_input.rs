//! Bad input gets a clear code that names the field and the limit, and changes nothing.

use std::time::Duration;

use chassis::{
    Error, Reason, clock,
    token::{Caller, Keyring},
};
use proto::freshet::{
    post::v1::GetPostRequest,
    ranking::v1::ListHotPostsRequest,
    timeline::v1::GetHomeTimelineRequest,
    user::v1::{SignInRequest, SignUpRequest},
};
use tests::{Sandbox, grpc::call_raw, person::PASSWORD};

const UNKNOWN_ID: &str = "4611686018427387904";

#[track_caller]
fn names_field<T: std::fmt::Debug>(answer: Result<T, Error>, field: &str, limit: &str) {
    let error = answer.expect_err("refused");
    assert_eq!(error.reason(), Reason::InvalidArgument, "{error}");
    let [violation] = error.violations() else { panic!("one violation, not {:?}", error.violations()) };
    assert_eq!(violation.field, field);
    assert!(violation.rule.contains(limit), "{:?} does not say {limit:?}", violation.rule);
    assert!(error.message().contains(field), "{error}");
}

#[track_caller]
fn has_reason<T: std::fmt::Debug>(answer: Result<T, Error>, reason: Reason) {
    assert_eq!(answer.expect_err("refused").reason(), reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_has_1_to_300_characters_as_people_count_them() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    let family = "👨‍👩‍👧‍👦";

    names_field(lin.tries_to_post("").await, "text", "1 to 300");
    names_field(lin.tries_to_post(" \n ").await, "text", "1 to 300");
    names_field(lin.tries_to_post("a\0b").await, "text", "NUL");
    names_field(lin.tries_to_post(&"x".repeat(301)).await, "text", "300");
    names_field(lin.tries_to_post(&family.repeat(301)).await, "text", "300");
    let long = lin.post(&family.repeat(300)).await;

    assert_eq!(long.text, family.repeat(300));
    ada.home_shows(&[&long]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_has_1_to_64_visible_characters_and_stands_for_one_text() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    for key in ["", " ", "two words", "clé", "a\u{7f}", &"k".repeat(65)] {
        names_field(lin.posts_with_key("hello", Some(key)).await, "idempotency_key", "1 to 64 visible ASCII");
    }
    let longest = "k".repeat(64);
    let post = lin.posts_with_key("hello", Some(&longest)).await.expect("a post");
    has_reason(lin.posts_with_key("something else", Some(&longest)).await, Reason::IdempotencyKeyTaken);
    ada.home_shows(&[&post]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_1_to_200_entries() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let ranking = world.ranking(Caller::User(ada.id));
    for limit in [0, 201, -1] {
        names_field(ada.tries_to_read(Some(limit), None).await, "limit", "from 1 to 200");
        let request = ListHotPostsRequest { day: None, limit: Some(limit) };
        names_field(ranking.list_hot_posts(request).await, "limit", "from 1 to 200");
    }
    for limit in [Some(1), Some(200), None] {
        assert!(ada.tries_to_read(limit, None).await.is_ok());
    }
    for (day, rule) in [("yesterday", "YYYY-MM-DD"), ("2024-01-01", "6 days before"), ("2999-01-01", "6 days before")] {
        let request = ListHotPostsRequest { day: Some(day.into()), limit: None };
        names_field(ranking.list_hot_posts(request).await, "day", rule);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_id_is_told_by_its_field_and_what_is_unknown_by_its_kind() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));

    for id in ["", "0", "-1", "ada", "9223372036854775808"] {
        names_field(ada.tries_to_follow(id).await, "followee_id", "is not an id");
        names_field(ada.tries_to_like(id).await, "post_id", "is not an id");
        names_field(service.get_post(GetPostRequest { post_id: id.into() }).await, "post_id", "is not an id");
        names_field(ada.tries_to_read(None, Some(id.into())).await, "max_id", "is not an id");
        let request = GetHomeTimelineRequest { reader_id: id.into(), ..Default::default() };
        names_field(service.get_home_timeline(request).await, "reader_id", "is not an id");
    }
    has_reason(ada.tries_to_follow(UNKNOWN_ID).await, Reason::UserNotFound);
    has_reason(ada.tries_to_like(UNKNOWN_ID).await, Reason::PostNotFound);
    has_reason(service.get_post(GetPostRequest { post_id: UNKNOWN_ID.into() }).await, Reason::PostNotFound);
    let request = GetHomeTimelineRequest { reader_id: UNKNOWN_ID.into(), ..Default::default() };
    has_reason(service.get_home_timeline(request).await, Reason::UserNotFound);
    names_field(ada.tries_to_follow(&ada.id.to_string()).await, "followee_id", "somebody else");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_needs_a_free_handle_and_a_long_password() {
    let world = Sandbox::start().await;
    let [_ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let sign_up = async |handle: &str, display_name: &str, password: &str| {
        let [handle, display_name, password] = [handle, display_name, password].map(str::to_owned);
        service.sign_up(SignUpRequest { handle, display_name, password }).await
    };

    for handle in ["", "ab", "a b c", "ada!", &"a".repeat(31)] {
        names_field(sign_up(handle, "", PASSWORD).await, "handle", "3 to 30");
    }
    names_field(sign_up("lin", &"x".repeat(61), PASSWORD).await, "display_name", "60");
    names_field(sign_up("lin", "", "too short").await, "password", "10 to 256");
    names_field(sign_up("lin", "", &"x".repeat(257)).await, "password", "10 to 256");
    has_reason(sign_up("ADA", "", PASSWORD).await, Reason::HandleTaken);
    assert!(sign_up("lin", "Lin", PASSWORD).await.is_ok(), "nothing of the refused ones is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_handle_get_the_same_answer() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let sign_in = async |handle: &str, password: &str| {
        service.sign_in(SignInRequest { handle: handle.into(), password: password.into() }).await
    };
    let wrong = sign_in("ada", "not her password").await.unwrap_err();
    let unknown = sign_in("nobody", PASSWORD).await.unwrap_err();
    assert_eq!(wrong.reason(), Reason::CredentialsWrong);
    assert_eq!(wrong, unknown);
    assert_eq!(wrong, sign_in("\0", PASSWORD).await.unwrap_err());
    assert_eq!(sign_in("Ada", PASSWORD).await.unwrap().user.unwrap().id, ada.id.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_wrong_expired_or_foreign_token_is_refused() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let address = world.timelines()[0];
    let post = lin.post("hello").await;
    let path = "/freshet.post.v1.PostService/GetPost";
    let message = bytes::Bytes::from(prost::Message::encode_to_vec(&GetPostRequest { post_id: post.id.clone() }));
    let call = async |token: Option<&str>| call_raw(address, path, token, message.clone()).await;

    has_reason(call(None).await, Reason::TokenMissing);
    has_reason(call(Some("nonsense")).await, Reason::TokenInvalid);
    let hour_ago = clock::Manual::at_unix_ms(chassis::Clock::unix_ms(&clock::System) - 3_600_000);
    let foreign_keys = format!("test:{}", "A".repeat(43));
    let foreign = Keyring::parse(&foreign_keys, std::sync::Arc::new(clock::System)).expect("a key");
    let caller = Caller::User(ada.id);
    has_reason(call(Some(&foreign.sign(&caller, Duration::from_secs(60)).unwrap())).await, Reason::TokenInvalid);
    let expired = world.token_at(&caller, &hour_ago);
    has_reason(call(Some(&expired)).await, Reason::TokenExpired);
    assert!(call(Some(&world.token(&caller))).await.is_ok());

    let lins_home = GetHomeTimelineRequest { reader_id: lin.id.to_string(), ..Default::default() };
    has_reason(world.timeline(caller).get_home_timeline(lins_home).await, Reason::NotAllowed);
}
