//! Accounts, as people and services see them.

use chassis::{Reason, token::Caller};
use proto::freshet::user::v1::{SignUpRequest, UpdateProfileRequest, UserCounters};
use tests::{Pods, Sandbox, person::PASSWORD};

fn profile(display_name: &str, bio: &str, email: &str) -> UpdateProfileRequest {
    let [display_name, bio, email] = [display_name, bio, email].map(str::to_owned);
    UpdateProfileRequest { display_name, bio, email, ..UpdateProfileRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_find_each_other_by_id_by_handle_and_many_at_once() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    let seen = ada.sees(&lin).await.unwrap();
    assert_eq!((seen.id, seen.handle.as_str()), (lin.id.to_string(), "lin"));
    assert_eq!(ada.sees_handle("LIN").await.unwrap().id, lin.id.to_string());
    assert_eq!(ada.sees_handle("nobody").await.unwrap_err().reason(), Reason::UserNotFound);

    let unknown = "4611686018427387904".to_owned();
    let asked = vec![max.id.to_string(), unknown.clone(), ada.id.to_string(), max.id.to_string(), lin.id.to_string()];
    let found = ada.sees_all(asked).await.unwrap();
    let handles: Vec<_> = found.users.iter().map(|user| user.handle.as_str()).collect();
    assert_eq!(handles, ["max", "ada", "max", "lin"], "in the order that was asked for");
    assert_eq!(found.missing_ids, [unknown]);
    let many = ada.sees_all(vec![lin.id.to_string(); 200]).await.unwrap();
    assert_eq!(many.users.len(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_seen_with_exact_numbers_and_whether_strangers_must_ask() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    let numbers = async || {
        let user = max.sees(&lin).await.unwrap();
        assert_eq!(max.sees_handle("lin").await.unwrap(), user);
        assert_eq!(max.sees_all(vec![lin.id.to_string()]).await.unwrap().users, std::slice::from_ref(&user));
        let UserCounters { followers, following, posts } = user.counters.expect("counters");
        (followers, following, posts, user.private.expect("known"))
    };
    assert_eq!(numbers().await, (0, 0, 0, false));
    for _ in 0..2 {
        ada.follow(&lin).await;
        max.follow(&lin).await;
    }
    lin.follow(&ada).await;
    lin.post("hello").await;
    assert_eq!(numbers().await, (2, 1, 1, false));
    max.unfollow(&lin).await;
    lin.set_private(true).await;
    assert_eq!(numbers().await, (1, 1, 1, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_changes_by_its_mask_and_the_email_address_is_its_owners_alone() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let all = profile("Ada L.", "Counts.\nSometimes.", "Ada@Example.com");
    let changed = ada.tries_to_update(&["bio", "email"], all.clone()).await.unwrap();
    let user = changed.user.expect("a user");
    assert_eq!((user.display_name.as_str(), user.bio.as_str()), ("ada", "Counts.\nSometimes."));
    assert_eq!(changed.email, "Ada@Example.com");
    assert_eq!(ada.account().await.email, "Ada@Example.com");
    assert_eq!(lin.sees(&ada).await.unwrap(), user);
    let shown = format!("{:?}", (lin.sees(&ada).await.unwrap(), lin.sees_all(vec![ada.id.to_string()]).await.unwrap()));
    assert!(!shown.contains("Example"), "{shown}");

    ada.tries_to_update(&["display_name"], all).await.unwrap();
    assert_eq!(lin.sees(&ada).await.unwrap().display_name, "Ada L.");
    let taken = lin.tries_to_update(&["email"], profile("", "", "ada@example.COM")).await.unwrap_err();
    assert_eq!(taken.reason(), Reason::EmailTaken);
    let emptied = ada.tries_to_update(&["display_name", "bio", "email"], profile("", "", "")).await.unwrap();
    let user = emptied.user.expect("a user");
    assert_eq!((user.display_name.as_str(), user.bio.as_str(), emptied.email.as_str()), ("ada", "", ""));
    lin.tries_to_update(&["email"], profile("", "", "ada@example.com")).await.expect("it is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_deletes_their_account_is_gone_everywhere_at_once() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    ada.tries_to_update(&["email"], profile("", "", "ada@example.com")).await.unwrap();
    let before = lin.post("before").await;
    ada.signs_in().await;
    let cookie = tests::stream::sign_in(world.edge(), "ada", PASSWORD).await.expect("a session");

    ada.goes_away().await;

    assert_eq!(lin.sees(&ada).await.unwrap_err().reason(), Reason::UserNotFound);
    assert_eq!(lin.sees_handle("ada").await.unwrap_err().reason(), Reason::UserNotFound);
    assert_eq!(lin.sees_all(vec![ada.id.to_string()]).await.unwrap().missing_ids, [ada.id.to_string()]);
    assert_eq!(ada.tries_to_sign_in(PASSWORD, "192.0.2.1").await.unwrap_err().reason(), Reason::CredentialsWrong);
    let refused = tests::Stream::open(world.edge(), &cookie).await.unwrap_err();
    assert_eq!(refused.body["error"]["reason"], "SESSION_MISSING");
    for error in [
        lin.tries_to_follow(&ada.id.to_string()).await.unwrap_err(),
        ada.tries_to_follow(&lin.id.to_string()).await.unwrap_err(),
        ada.tries_to_post("after").await.unwrap_err(),
        ada.tries_to_like(&before.id).await.unwrap_err(),
        ada.tries_to_update(&["bio"], profile("", "back", "")).await.unwrap_err(),
        ada.tries_to_change_password(PASSWORD, "another password", "").await.unwrap_err(),
    ] {
        assert_eq!(error.reason(), Reason::UserNotFound, "{error}");
    }
    assert_eq!(ada.session_ids().await, Vec::<String>::new());
    // A call that is made again succeeds; the handle is nobody's any more, and the address is free.
    ada.goes_away().await;
    let sign_up = async |handle: &str, email: &str| {
        let [handle, email, password] = [handle, email, PASSWORD].map(str::to_owned);
        service.sign_up(SignUpRequest { handle, email, password, ..SignUpRequest::default() }).await
    };
    assert_eq!(sign_up("Ada", "").await.unwrap_err().reason(), Reason::HandleTaken);
    sign_up("ada_l", "ADA@example.com").await.expect("an account");
}
