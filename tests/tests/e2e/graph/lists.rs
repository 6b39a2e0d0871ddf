//! Lists and relationships, and what is wrong input for them.

use chassis::{Error, Reason, token::Caller};
use proto::freshet::user::v1::{GetRelationshipRequest, UpsertRemoteAuthorRequest};
use tests::{Sandbox, wait};

const UNKNOWN_ID: &str = "4611686018427387904";

#[track_caller]
fn names_field<T: std::fmt::Debug>(answer: Result<T, Error>, field: &str, limit: &str) {
    let error = answer.expect_err("refused");
    assert_eq!(error.reason(), Reason::InvalidArgument, "{error}");
    let [violation] = error.violations() else { panic!("one violation, not {:?}", error.violations()) };
    assert_eq!(violation.field, field);
    assert!(violation.rule.contains(limit), "{:?} does not say {limit:?}", violation.rule);
}

#[track_caller]
fn has_reason<T: std::fmt::Debug>(answer: Result<T, Error>, reason: Reason) {
    assert_eq!(answer.expect_err("refused").reason(), reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_scrolled_newest_first_to_its_end() {
    let world = Sandbox::start().await;
    let names: [String; 7] = std::array::from_fn(|number| format!("fan_{number}"));
    let fans = world.people(names.each_ref().map(String::as_str)).await;
    let [lin] = world.people(["lin"]).await;
    for fan in &fans {
        fan.follow(&lin).await;
        lin.follow(fan).await;
    }
    let newest_first: Vec<_> = fans.iter().rev().map(|fan| fan.id).collect();
    for limit in [1, 3, 7, 200] {
        let (mut followers, mut cursor) = (Vec::new(), None);
        loop {
            let (page, next) =
                fans[0].tries_to_list_followers(&lin.id.to_string(), Some(limit), cursor).await.expect("a page");
            followers.extend(page);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(followers, newest_first, "by pages of {limit}");
    }
    let (following, next) = fans[0].tries_to_list_following(&lin.id.to_string(), None, None).await.expect("a page");
    assert_eq!((following, next), (newest_first, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_hides_each_from_the_other_in_lists() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    for follower in [&ada, &max] {
        follower.follow(&lin).await;
    }
    let of_lin = lin.id.to_string();
    assert_eq!(max.tries_to_list_followers(&of_lin, None, None).await.unwrap().0, [max.id, ada.id]);
    ada.block(&max).await;
    assert_eq!(max.tries_to_list_followers(&of_lin, None, None).await.unwrap().0, [max.id]);
    assert_eq!(ada.tries_to_list_followers(&of_lin, None, None).await.unwrap().0, [ada.id]);
    has_reason(max.tries_to_list_followers(&ada.id.to_string(), None, None).await, Reason::UserNotFound);
    has_reason(ada.tries_to_list_following(&max.id.to_string(), None, None).await, Reason::UserNotFound);
    assert_eq!(ada.tries_to_list_blocks(None, None).await.unwrap().0, [max.id]);
    assert_eq!(max.tries_to_list_blocks(None, None).await.unwrap().0, []);
    let (own, others) = (ada.relation_to(&max).await, max.relation_to(&ada).await);
    assert!(own.blocking && !others.blocking && !others.following, "{own:?}, {others:?}");
    has_reason(max.tries_to_follow(&ada.id.to_string()).await, Reason::Blocked);
    has_reason(ada.tries_to_follow(&max.id.to_string()).await, Reason::Blocked);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_accounts_lists_are_for_its_followers() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    ada.follow(&lin).await;
    lin.set_private(true).await;
    let of_lin = lin.id.to_string();
    has_reason(max.tries_to_list_followers(&of_lin, None, None).await, Reason::NotAllowed);
    assert_eq!(ada.tries_to_list_followers(&of_lin, None, None).await.unwrap().0, [ada.id]);
    assert_eq!(lin.tries_to_list_followers(&of_lin, None, None).await.unwrap().0, [ada.id]);
    has_reason(lin.tries_to_accept(&max.id.to_string()).await, Reason::FollowRequestNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_followees_is_told() {
    let world = Sandbox::with_settings(tests::Pods::ONE, &[("people.followees_max", "2")]).await;
    let [ada, lin, max, eve] = world.people(["ada", "lin", "max", "eve"]).await;
    ada.follow(&lin).await;
    ada.follow(&max).await;
    let refused = ada.tries_to_follow(&eve.id.to_string()).await.expect_err("one too many");
    assert_eq!(refused.reason(), Reason::FolloweesFull);
    assert!(refused.message().contains("more than 2"), "{refused}");
    ada.unfollow(&lin).await;
    ada.follow(&eve).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_author_is_followed_like_anyone() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let upsert = async |origin: &str, remote_id: &str, handle: &str, display_name: &str| {
        let [origin, remote_id, handle, display_name] = [origin, remote_id, handle, display_name].map(str::to_owned);
        service.upsert_remote_author(UpsertRemoteAuthorRequest { origin, remote_id, handle, display_name }).await
    };
    let eve = upsert("Far.Example", "https://far.example/1", "Eve", "").await.unwrap().user.expect("a user");
    assert_eq!((eve.handle.as_str(), eve.display_name.as_str()), ("eve@far.example", "eve"));
    let again = upsert("far.example", "https://far.example/1", "eve", "Eve E.").await.unwrap().user.expect("a user");
    assert_eq!((again.id.as_str(), again.display_name.as_str()), (eve.id.as_str(), "Eve E."));
    ada.tries_to_follow(&eve.id).await.expect("a follow");
    wait::until("the follow", async || {
        let relation = ada.tries_to_relate_to(vec![eve.id.clone()]).await.expect("a relationship").remove(0);
        relation.following.then_some(())
    })
    .await;
    for origin in ["", "-", "two words", &"a".repeat(254)] {
        names_field(upsert(origin, "1", "eve", "").await, "origin", "253");
    }
    for id in ["", "a b", &"a".repeat(2049)] {
        names_field(upsert("far.example", id, "eve", "").await, "remote_id", "1 to 2048");
    }
    for handle in ["", "a@b", &"a".repeat(65)] {
        names_field(upsert("far.example", "1", handle, "").await, "handle", "1 to 64");
    }
    names_field(upsert("far.example", "1", "eve", &"x".repeat(61)).await, "display_name", "60");
    has_reason(upsert("far.example", "2", "eve", "").await, Reason::HandleTaken);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_the_graph_is_checked() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    for id in ["", "0", "ada", "9223372036854775808"] {
        names_field(ada.tries_to_unfollow(id).await, "followee_id", "is not an id");
        names_field(ada.tries_to_block(id).await, "blocked_id", "is not an id");
        names_field(ada.tries_to_unblock(id).await, "blocked_id", "is not an id");
        names_field(ada.tries_to_mute(id, None).await, "muted_id", "is not an id");
        names_field(ada.tries_to_unmute(id).await, "muted_id", "is not an id");
        names_field(ada.tries_to_relate_to(vec![lin.id.to_string(), id.to_owned()]).await, "user_ids", "is not an id");
        names_field(ada.tries_to_list_followers(id, None, None).await, "user_id", "is not an id");
        names_field(ada.tries_to_list_following(id, None, None).await, "user_id", "is not an id");
        names_field(ada.tries_to_accept(id).await, "requester_id", "is not an id");
        names_field(ada.tries_to_reject(id).await, "requester_id", "is not an id");
    }
    let own = ada.id.to_string();
    names_field(ada.tries_to_unfollow(&own).await, "followee_id", "somebody else");
    names_field(ada.tries_to_block(&own).await, "blocked_id", "somebody else");
    names_field(ada.tries_to_mute(&own, None).await, "muted_id", "somebody else");
    for refused in [ada.tries_to_unfollow(UNKNOWN_ID).await, ada.tries_to_block(UNKNOWN_ID).await] {
        has_reason(refused, Reason::UserNotFound);
    }
    has_reason(ada.tries_to_mute(UNKNOWN_ID, None).await, Reason::UserNotFound);
    has_reason(ada.tries_to_list_followers(UNKNOWN_ID, None, None).await, Reason::UserNotFound);
    has_reason(ada.tries_to_accept(UNKNOWN_ID).await, Reason::UserNotFound);

    let now = chassis::Clock::unix_ms(&chassis::clock::System);
    for until in [0, now - 1000, now + 12 * 366 * 24 * 3600 * 1000, i64::MAX / 2] {
        let refused = ada.tries_to_mute(&lin.id.to_string(), Some(until)).await;
        names_field(refused, "until", "in the future, and within 10 years");
    }
    for many in [0, 201] {
        names_field(ada.tries_to_relate_to(vec![own.clone(); many]).await, "user_ids", "1 to 200");
    }
    assert_eq!(ada.tries_to_relate_to(vec![own.clone(); 200]).await.unwrap().len(), 200);
    assert_eq!(ada.tries_to_relate_to(vec![UNKNOWN_ID.to_owned()]).await.unwrap(), []);
    pages_are_checked(&ada).await;

    let service = world.timeline(Caller::Service("tests".into()));
    let request = GetRelationshipRequest { viewer_id: "ada".into(), user_ids: vec![own] };
    names_field(service.get_relationship(request).await, "viewer_id", "is not an id");
}

async fn pages_are_checked(ada: &tests::Person) {
    let own = ada.id.to_string();
    for limit in [0, 201, -1] {
        let (limit, rule) = (Some(limit), "from 1 to 200");
        names_field(ada.tries_to_list_followers(&own, limit, None).await, "limit", rule);
        names_field(ada.tries_to_list_following(&own, limit, None).await, "limit", rule);
        names_field(ada.tries_to_list_blocks(limit, None).await, "limit", rule);
        names_field(ada.tries_to_list_mutes(limit, None).await, "limit", rule);
        names_field(ada.tries_to_list_requests(limit, None).await, "limit", rule);
    }
    for cursor in ["", "7", &"0".repeat(32), &"f".repeat(32), &"g".repeat(32), &"0".repeat(33)] {
        let (cursor, rule) = (Some(cursor.to_owned()), "is no cursor");
        names_field(ada.tries_to_list_followers(&own, None, cursor.clone()).await, "cursor", rule);
        names_field(ada.tries_to_list_following(&own, None, cursor.clone()).await, "cursor", rule);
        names_field(ada.tries_to_list_blocks(None, cursor.clone()).await, "cursor", rule);
        names_field(ada.tries_to_list_mutes(None, cursor.clone()).await, "cursor", rule);
        names_field(ada.tries_to_list_requests(None, cursor).await, "cursor", rule);
    }
}
