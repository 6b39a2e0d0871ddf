//! How often something was tried, and who has come in from where.

use futures_util::future::join_all;
use store::sets::{KNOWN_SOURCES_MAX, Limit, Sets};
use tests::wait;

use super::open;

sets_contract!({
    a_window_has_so_many_places_and_says_when_one_will_be_free,
    places_become_free_one_after_the_other,
    a_place_that_is_given_back_is_free_at_once,
    of_many_at_once_no_more_than_the_limit_get_a_place,
    where_a_person_came_in_from_is_known_for_a_while,
    the_source_that_was_not_used_for_longest_is_forgotten,
});

const THREE_A_MINUTE: Limit = Limit { tries_max: 3, span_ms: 60_000 };

async fn take(sets: &Sets, window: &str, ticket: u64, limit: Limit) -> Option<i64> {
    sets.attempts.take(window, ticket, limit).await.unwrap()
}

async fn a_window_has_so_many_places_and_says_when_one_will_be_free(sets: Sets) {
    for ticket in [1, 2, u64::MAX, 1] {
        assert_eq!(take(&sets, "a", ticket, THREE_A_MINUTE).await, None, "{ticket}");
    }
    for _ in 0..5 {
        let wait_ms = take(&sets, "a", 4, THREE_A_MINUTE).await.expect("full");
        assert!((50_000..=60_000).contains(&wait_ms), "{wait_ms}");
    }
    assert_eq!(take(&sets, "a", 2, THREE_A_MINUTE).await, None, "it has its place");
    assert_eq!(take(&sets, "b", 4, THREE_A_MINUTE).await, None, "another window");
    // With fewer places, all that are too many must become free first.
    assert!(take(&sets, "a", 5, Limit { tries_max: 1, ..THREE_A_MINUTE }).await.is_some());
    assert_eq!(take(&sets, "a", 5, Limit { tries_max: 4, ..THREE_A_MINUTE }).await, None);
}

async fn places_become_free_one_after_the_other(sets: Sets) {
    let limit = Limit { tries_max: 2, span_ms: 400 };
    assert_eq!(take(&sets, "a", 1, limit).await, None);
    let first = take(&sets, "a", 2, Limit { tries_max: 1, ..limit }).await.expect("full");
    assert!((1..=400).contains(&first), "{first}");
    // The second place is taken later, and becomes free later.
    wait::until("some time to pass", async || {
        take(&sets, "a", 2, Limit { tries_max: 1, ..limit }).await.is_none_or(|wait_ms| wait_ms <= 200).then_some(())
    })
    .await;
    assert_eq!(take(&sets, "a", 2, limit).await, None);
    wait::until("a free place", async || take(&sets, "a", 3, limit).await.is_none().then_some(())).await;
    assert!(take(&sets, "a", 4, limit).await.is_some(), "only one had become free");
}

async fn a_place_that_is_given_back_is_free_at_once(sets: Sets) {
    for ticket in 1..=3 {
        assert_eq!(take(&sets, "a", ticket, THREE_A_MINUTE).await, None);
    }
    sets.attempts.give_back("a", 2).await.unwrap();
    sets.attempts.give_back("a", 2).await.unwrap();
    sets.attempts.give_back("b", 1).await.unwrap();
    assert_eq!(take(&sets, "a", 4, THREE_A_MINUTE).await, None);
    assert!(take(&sets, "a", 5, THREE_A_MINUTE).await.is_some());
}

async fn of_many_at_once_no_more_than_the_limit_get_a_place(sets: Sets) {
    let all = join_all((0..50).map(|ticket| take(&sets, "a", ticket, THREE_A_MINUTE))).await;
    assert_eq!(all.iter().filter(|answer| answer.is_none()).count(), 3);
}

async fn knows(sets: &Sets, who: &str, sources: &[&str]) -> Vec<bool> {
    let sources: Vec<_> = sources.iter().map(|source| (*source).to_owned()).collect();
    sets.attempts.knows(who, &sources).await.unwrap()
}

async fn where_a_person_came_in_from_is_known_for_a_while(sets: Sets) {
    assert_eq!(knows(&sets, "ada", &["here", "there"]).await, [false, false]);
    sets.attempts.remember("ada", "here", 60_000).await.unwrap();
    sets.attempts.remember("ada", "there", 50).await.unwrap();
    assert_eq!(knows(&sets, "ada", &["here", "nowhere"]).await, [true, false]);
    assert_eq!(knows(&sets, "lin", &["here"]).await, [false]);
    wait::until("a source to be forgotten", async || (knows(&sets, "ada", &["there"]).await == [false]).then_some(()))
        .await;
    assert_eq!(knows(&sets, "ada", &["here"]).await, [true]);
}

async fn the_source_that_was_not_used_for_longest_is_forgotten(sets: Sets) {
    for number in 0..=KNOWN_SOURCES_MAX as i64 {
        sets.attempts.remember("ada", &format!("source {number}"), 60_000 + number * 1000).await.unwrap();
    }
    assert_eq!(knows(&sets, "ada", &["source 0", "source 1"]).await, [false, true]);
    assert_eq!(knows(&sets, "ada", &[&format!("source {KNOWN_SOURCES_MAX}")]).await, [true]);
}
