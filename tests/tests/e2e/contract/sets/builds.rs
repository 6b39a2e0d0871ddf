//! The build of a home: one builder at a time, and nothing that is pushed meanwhile is lost.

use std::time::{Duration, Instant};

use proto::UserId;
use store::sets::{BUILD_MS_MAX, Build, BuildToken, Coverage, Sets};
use tests::wait;

use super::{ALL, coverage, entry, home, merge, open, soon, to, user};

sets_contract!({
    one_builds_while_the_others_wait,
    a_push_during_a_build_is_kept,
    a_builder_that_died_is_replaced,
    only_the_holder_of_the_token_ends_a_build,
});

async fn begin(sets: &Sets, reader: UserId) -> BuildToken {
    match sets.homes.begin_build(reader).await.unwrap() {
        Build::Mine(token) => token,
        other => panic!("the build is {other:?}"),
    }
}

async fn one_builds_while_the_others_wait(sets: Sets) {
    let token = begin(&sets, user(1)).await;
    assert!((super::now_ms() - token.began_unix_ms()).abs() < 60_000, "{token:?}");
    assert_eq!(sets.homes.begin_build(user(1)).await.unwrap(), Build::Theirs);
    assert_eq!(sets.homes.page(user(1), None, ALL).await.unwrap(), None, "a home in the making is not read");
    assert_eq!(coverage(&sets, user(1)).await, Coverage::TO_THE_BEGINNING);
    let floor = Coverage::down_to(entry(2, 0).id);
    assert!(sets.homes.finish_build(user(1), token, &[entry(2, 0), entry(3, 0)], floor, &[]).await.unwrap());
    assert_eq!(sets.homes.begin_build(user(1)).await.unwrap(), Build::Done);
    assert_eq!(home(&sets, user(1)).await, [entry(3, 0), entry(2, 0)]);
    assert_eq!(coverage(&sets, user(1)).await, floor);
}

async fn a_push_during_a_build_is_kept(sets: Sets) {
    let token = begin(&sets, user(1)).await;
    sets.homes.push(&to(&[user(1)], entry(5, 0)), soon()).await.unwrap();
    merge(&sets, user(1), &[entry(4, 0)], Coverage::TO_THE_BEGINNING).await;
    let floor = Coverage::down_to(entry(3, 0).id);
    assert!(sets.homes.finish_build(user(1), token, &[entry(3, 0)], floor, &[]).await.unwrap());
    assert_eq!(home(&sets, user(1)).await, [5, 4, 3].map(|ms| entry(ms, 0)));
}

async fn a_builder_that_died_is_replaced(sets: Sets) {
    let began = Instant::now();
    let dead = begin(&sets, user(1)).await;
    sets.homes.push(&to(&[user(1)], entry(9, 0)), soon()).await.unwrap();
    let next =
        wait::until("the dead builder's successor", async || match sets.homes.begin_build(user(1)).await.unwrap() {
            Build::Mine(token) => Some(token),
            Build::Theirs => None,
            Build::Done => panic!("nobody has ended the build"),
        })
        .await;
    let patience = Duration::from_millis(BUILD_MS_MAX.unsigned_abs());
    assert!(began.elapsed() + Duration::from_millis(100) > patience, "replaced after {:?}", began.elapsed());
    let all = Coverage::TO_THE_BEGINNING;
    assert!(!sets.homes.finish_build(user(1), dead, &[entry(1, 0)], all, &[]).await.unwrap(), "a stale token");
    assert_eq!(sets.homes.page(user(1), None, ALL).await.unwrap(), None);
    assert!(sets.homes.finish_build(user(1), next, &[entry(2, 0)], all, &[]).await.unwrap());
    // What was pushed to the dead builder's home is in the archive, from which the next one reads.
    assert_eq!(home(&sets, user(1)).await, [entry(2, 0)]);
}

async fn only_the_holder_of_the_token_ends_a_build(sets: Sets) {
    let (all, token) = (Coverage::TO_THE_BEGINNING, begin(&sets, user(1)).await);
    let other = BuildToken(token.0 ^ 1);
    assert!(!sets.homes.finish_build(user(1), other, &[entry(1, 0)], all, &[]).await.unwrap());
    assert!(!sets.homes.finish_build(user(2), token, &[entry(1, 0)], all, &[]).await.unwrap(), "there is no such home");
    assert_eq!(sets.homes.page(user(2), None, ALL).await.unwrap(), None);
    for _ in 0..2 {
        // The second time is what a caller does that lost the answer.
        assert!(sets.homes.finish_build(user(1), token, &[entry(1, 0)], all, &[]).await.unwrap());
    }
    assert_eq!(home(&sets, user(1)).await, [entry(1, 0)]);
}
