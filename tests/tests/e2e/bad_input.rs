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
    user::v1::{
        ChangePasswordRequest, DeleteAccountRequest, GetAccountRequest, GetUserByHandleRequest, GetUserRequest,
        ListSessionsRequest, RevokeAllSessionsRequest, RevokeSessionRequest, SignInRequest, SignOutRequest,
        SignUpRequest, UpdateProfileRequest,
    },
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
    names_field(lin.tries_to_post("a\0b").await, "text", "control characters but line feeds and tabs, and has U+0000");
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
        names_field(
            service.get_post(GetPostRequest { post_id: id.into(), viewer_id: None }).await,
            "post_id",
            "is not an id",
        );
        names_field(ada.tries_to_read(None, Some(id.into())).await, "max_id", "is not an id");
        let request = GetHomeTimelineRequest { reader_id: id.into(), ..Default::default() };
        names_field(service.get_home_timeline(request).await, "reader_id", "is not an id");
    }
    has_reason(ada.tries_to_follow(UNKNOWN_ID).await, Reason::UserNotFound);
    has_reason(ada.tries_to_like(UNKNOWN_ID).await, Reason::PostNotFound);
    has_reason(
        service.get_post(GetPostRequest { post_id: UNKNOWN_ID.into(), viewer_id: None }).await,
        Reason::PostNotFound,
    );
    let request = GetHomeTimelineRequest { reader_id: UNKNOWN_ID.into(), ..Default::default() };
    has_reason(service.get_home_timeline(request).await, Reason::UserNotFound);
    names_field(ada.tries_to_follow(&ada.id.to_string()).await, "followee_id", "somebody else");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_needs_a_free_handle_and_a_long_password() {
    let world = Sandbox::start().await;
    let [_ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let sign_up_as = async |handle: &str, display_name: &str, password: &str, email: &str| {
        let [handle, display_name, password, email] = [handle, display_name, password, email].map(str::to_owned);
        service.sign_up(SignUpRequest { handle, display_name, password, email }).await
    };
    let sign_up = async |handle: &str, name: &str, password: &str| sign_up_as(handle, name, password, "").await;

    for handle in ["", "ab", "a b c", "ada!", &"a".repeat(31)] {
        names_field(sign_up(handle, "", PASSWORD).await, "handle", "3 to 30");
    }
    for reserved in ["admin", "Root", "_support_", "fresh_et"] {
        names_field(sign_up(reserved, "", PASSWORD).await, "handle", "is reserved");
    }
    names_field(sign_up("lin", &"x".repeat(61), PASSWORD).await, "display_name", "60");
    for email in ["lin", "lin@localhost", "lin@example.com lin@example.com", &format!("{}@example.com", "x".repeat(65))]
    {
        names_field(sign_up_as("lin", "", PASSWORD, email).await, "email", "254 bytes");
    }
    names_field(sign_up("lin", "", "too short").await, "password", "10 to 256");
    names_field(sign_up("lin", "", &"x".repeat(257)).await, "password", "10 to 256");
    for common in ["1234567890", "Password123", "QWERTYUIOP"] {
        names_field(sign_up("lin", "", common).await, "password", "most people use");
    }
    has_reason(sign_up("ADA", "", PASSWORD).await, Reason::HandleTaken);
    sign_up_as("max", "", PASSWORD, "max@example.com").await.expect("an account");
    has_reason(sign_up_as("lin", "", PASSWORD, "MAX@example.com").await, Reason::EmailTaken);
    assert!(sign_up("lin", "Lin", PASSWORD).await.is_ok(), "nothing of the refused ones is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_handle_get_the_same_answer() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let sign_in = async |handle: &str, password: &str| {
        let [handle, password, address] = [handle, password, "192.0.2.1"].map(str::to_owned);
        service.sign_in(SignInRequest { handle, password, address, ..SignInRequest::default() }).await
    };
    let wrong = sign_in("ada", "not her password").await.unwrap_err();
    let unknown = sign_in("nobody", PASSWORD).await.unwrap_err();
    assert_eq!(wrong.reason(), Reason::CredentialsWrong);
    assert_eq!(wrong, unknown);
    assert_eq!(wrong, sign_in("\0", PASSWORD).await.unwrap_err());
    assert_eq!(sign_in("Ada", PASSWORD).await.unwrap().user.unwrap().id, ada.id.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_in_needs_an_address_and_takes_any_device() {
    let world = Sandbox::start().await;
    let [_ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let right = SignInRequest {
        handle: "ada".into(),
        password: PASSWORD.into(),
        address: "192.0.2.1".into(),
        ..SignInRequest::default()
    };
    for address in ["", "here", "192.0.2", "192.0.2.1:80"] {
        let request = SignInRequest { address: address.into(), ..right.clone() };
        names_field(service.sign_in(request).await, "address", "IP address");
    }
    let request = SignInRequest { password: "x".repeat(257), ..right.clone() };
    names_field(service.sign_in(request).await, "password", "10 to 256");
    // Nobody types these: what makes no sense is cut, or left aside.
    let (device, device_secret) = ("x\0".repeat(1000), "nonsense".to_owned());
    let signed_in = service.sign_in(SignInRequest { device, device_secret, ..right }).await.expect("a session");
    assert_ne!(signed_in.device_secret, "nonsense");
    for session_secret in ["", "nonsense", &"x".repeat(10_000)] {
        assert!(service.sign_out(SignOutRequest { session_secret: session_secret.into() }).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_names_what_changes_and_keeps_to_its_limits() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let update = async |fields: &[&str], display_name: &str, bio: &str, email: &str| {
        let [display_name, bio, email] = [display_name, bio, email].map(str::to_owned);
        ada.tries_to_update(fields, UpdateProfileRequest { display_name, bio, email, ..Default::default() }).await
    };
    names_field(update(&[], "Ada", "", "").await, "update_mask", "display_name, bio, email");
    for other in ["", "handle", "user_id", "bio.text", "*"] {
        names_field(update(&["bio", other], "", "", "").await, "update_mask", "display_name, bio, email");
    }
    names_field(update(&["display_name"], &"x".repeat(61), "", "").await, "display_name", "60");
    names_field(update(&["display_name"], "a\0b", "", "").await, "display_name", "control");
    names_field(update(&["bio"], "", &"x".repeat(301), "").await, "bio", "300");
    names_field(update(&["bio"], "", "a\0b", "").await, "bio", "control");
    names_field(update(&["email"], "", "", "ada").await, "email", "254 bytes");
    // What the mask does not name is not looked at; what it names may be as long as its limit.
    let longest = update(&["bio", "bio"], &"x".repeat(61), &"é".repeat(300), "ada").await.expect("a change");
    assert_eq!(longest.user.expect("a user").bio, "é".repeat(300));
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_asked_for_by_ids_1_to_200_at_once() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let id = ada.id.to_string();
    names_field(ada.sees_all(Vec::new()).await, "user_ids", "1 to 200");
    names_field(ada.sees_all(vec![id.clone(); 201]).await, "user_ids", "1 to 200");
    names_field(ada.sees_all(vec![id.clone(), "ada".into()]).await, "user_ids[1]", "is not an id");
    assert_eq!(ada.sees_all(vec![id; 200]).await.expect("people").users.len(), 200);
    for handle in ["", "ab", "a b c", "ada!"] {
        names_field(ada.sees_handle(handle).await, "handle", "3 to 30");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_and_sessions_are_named_by_ids() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    for user_id in ["", "0", "ada"].map(str::to_owned) {
        let id = || user_id.clone();
        let by_id = [
            service.get_user(GetUserRequest { user_id: id() }).await.map(|_| ()),
            service.get_account(GetAccountRequest { user_id: id() }).await.map(|_| ()),
            service.update_profile(UpdateProfileRequest { user_id: id(), ..Default::default() }).await.map(|_| ()),
            service.change_password(ChangePasswordRequest { user_id: id(), ..Default::default() }).await.map(|_| ()),
            service.delete_account(DeleteAccountRequest { user_id: id() }).await.map(|_| ()),
            service.list_sessions(ListSessionsRequest { user_id: id() }).await.map(|_| ()),
            service.revoke_session(RevokeSessionRequest { user_id: id(), ..Default::default() }).await.map(|_| ()),
            service
                .revoke_all_sessions(RevokeAllSessionsRequest { user_id: id(), ..Default::default() })
                .await
                .map(|_| ()),
        ];
        for answer in by_id {
            names_field(answer, "user_id", "is not an id");
        }
    }
    let user_id = || UNKNOWN_ID.to_owned();
    has_reason(service.get_user(GetUserRequest { user_id: user_id() }).await, Reason::UserNotFound);
    has_reason(service.get_account(GetAccountRequest { user_id: user_id() }).await, Reason::UserNotFound);
    has_reason(service.delete_account(DeleteAccountRequest { user_id: user_id() }).await, Reason::UserNotFound);
    has_reason(
        service.get_user_by_handle(GetUserByHandleRequest { handle: "nobody".into() }).await,
        Reason::UserNotFound,
    );

    for id in ["", "1", "g", &"g".repeat(32)] {
        names_field(ada.tries_to_revoke(id).await, "session_id", "32 hexadecimal");
    }
    has_reason(ada.tries_to_revoke(&"0".repeat(32)).await, Reason::SessionNotFound);
    names_field(ada.tries_to_revoke_all("mine").await, "keep_session_id", "32 hexadecimal");
    names_field(ada.tries_to_change_password(PASSWORD, "too short", "").await, "new_password", "10 to 256");
    names_field(ada.tries_to_change_password(PASSWORD, &"x".repeat(257), "").await, "new_password", "10 to 256");
    names_field(ada.tries_to_change_password(PASSWORD, "1234567890", "").await, "new_password", "most people use");
    names_field(ada.tries_to_change_password(&"x".repeat(257), "a better password", "").await, "old_password", "256");
    names_field(ada.tries_to_change_password(PASSWORD, "a better password", "mine").await, "keep_session_id", "32");
    assert_eq!(ada.tries_to_sign_in(PASSWORD, "192.0.2.1").await.unwrap().user.unwrap().id, ada.id.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_wrong_expired_or_foreign_token_is_refused() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let address = world.timelines()[0];
    let post = lin.post("hello").await;
    let path = "/freshet.post.v1.PostService/GetPost";
    let message = bytes::Bytes::from(prost::Message::encode_to_vec(&GetPostRequest {
        post_id: post.id.clone(),
        viewer_id: None,
    }));
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
