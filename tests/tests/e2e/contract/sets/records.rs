//! Authors' newest posts, hot lists.

use proto::PostId;
use store::{
    ledger::Likes,
    sets::{Entry, Fill, Hot, RECENT_MEMBERS_MAX, Sets},
};

use super::{ALL, entry, newest_first, open, shuffled, user};

sets_contract!({
    an_authors_newest_posts_are_kept,
    many_posts_of_many_authors_are_kept_together,
    the_newer_version_of_a_score_decides,
    of_two_posts_with_one_score_the_newer_is_hotter,
    a_hot_list_is_complete_when_somebody_says_so,
    a_hot_list_is_complete_when_a_fill_that_has_begun_ends,
});

async fn an_authors_newest_posts_are_kept(sets: Sets) {
    assert!(sets.recents.newest(user(7), 10).await.unwrap().is_empty());
    let pushed = shuffled(200);
    for entry in pushed.iter().chain(&pushed[..20]) {
        sets.recents.push(&[*entry]).await.unwrap();
    }
    let mut newest = newest_first(pushed);
    newest.truncate(RECENT_MEMBERS_MAX);
    for limit in [0, 1, 20, RECENT_MEMBERS_MAX, usize::MAX] {
        let found = sets.recents.newest(user(7), limit).await.unwrap();
        assert_eq!(found, newest[..limit.min(newest.len())]);
    }
    // Two of one millisecond, and nothing of another author.
    sets.recents.push(&[entry(500, 1)]).await.unwrap();
    sets.recents.push(&[entry(500, 2)]).await.unwrap();
    assert_eq!(sets.recents.newest(user(7), 2).await.unwrap(), [entry(500, 2), entry(500, 1)]);
    assert!(sets.recents.newest(user(8), 10).await.unwrap().is_empty());
}

async fn many_posts_of_many_authors_are_kept_together(sets: Sets) {
    let by = |author: i64| shuffled(200).into_iter().map(move |entry| Entry { author: user(author), ..entry });
    let mut pushed: Vec<_> = (1..=5).flat_map(by).collect();
    // Neither by author nor by time.
    pushed.sort_by_key(|entry| (entry.id.get() / 3, entry.author));
    sets.recents.push(&pushed).await.unwrap();
    sets.recents.push(&pushed[..400]).await.unwrap();
    sets.recents.push(&[]).await.unwrap();
    for author in 1..=5 {
        let mut newest = newest_first(by(author));
        newest.truncate(RECENT_MEMBERS_MAX);
        assert_eq!(sets.recents.newest(user(author), ALL).await.unwrap(), newest);
    }
}

const DAY: &str = "20240229";

async fn record(sets: &Sets, post: i64, version: i64, score: i64) {
    let post = PostId::new(post).unwrap();
    sets.hot_lists.record(DAY, post, Likes { count: score / 3, version }, score).await.unwrap();
}

async fn top(sets: &Sets, limit: usize) -> Vec<(i64, i64)> {
    let hot = sets.hot_lists.top(DAY, limit).await.unwrap();
    hot.into_iter().map(|Hot { post, score }| (post.get(), score)).collect()
}

async fn the_newer_version_of_a_score_decides(sets: Sets) {
    // Versions are microseconds, and differ by their last digit.
    let version = 1_790_000_000_000_000;
    record(&sets, 1, version + 5, 9).await;
    record(&sets, 1, version + 4, 30).await;
    record(&sets, 1, version + 5, 12).await;
    assert_eq!(top(&sets, 10).await, [(1, 9)]);
    record(&sets, 1, version + 6, 6).await;
    record(&sets, 2, version, 3).await;
    record(&sets, 3, version, 0).await;
    assert_eq!(top(&sets, 10).await, [(1, 6), (2, 3), (3, 0)]);
    assert!(sets.hot_lists.top("20240301", 10).await.unwrap().is_empty());
}

async fn of_two_posts_with_one_score_the_newer_is_hotter(sets: Sets) {
    let newest = i64::MAX;
    for post in [255, newest, 1, 256, 65_536, newest - 1] {
        record(&sets, post, 1, 6).await;
    }
    record(&sets, 3, 1, 9).await;
    fill(&sets, DAY).await;
    let all = [3, newest, newest - 1, 65_536, 256, 255, 1].map(|post| (post, if post == 3 { 9 } else { 6 }));
    for limit in [0, 1, 6, 7, 8, usize::MAX] {
        assert_eq!(top(&sets, limit).await, all[..limit.min(all.len())]);
    }
}

/// Says that a day's list is complete.
async fn fill(sets: &Sets, day: &str) {
    let fill = sets.hot_lists.begin_fill(day).await.unwrap();
    assert!(sets.hot_lists.set_complete(day, fill).await.unwrap());
}

async fn a_hot_list_is_complete_when_a_fill_that_has_begun_ends(sets: Sets) {
    let lists = &sets.hot_lists;
    assert!(!lists.set_complete(DAY, Fill(1)).await.unwrap(), "nobody has begun that one");
    let (first, second) = (lists.begin_fill(DAY).await.unwrap(), lists.begin_fill(DAY).await.unwrap());
    record(&sets, 1, 1, 3).await;
    assert!(!lists.is_complete(DAY).await.unwrap());
    assert_eq!(top(&sets, 10).await, [(1, 3)]);
    assert!(lists.set_complete(DAY, second).await.unwrap());
    assert!(!lists.set_complete(DAY, second).await.unwrap(), "it has ended");
    assert!(lists.set_complete(DAY, first).await.unwrap(), "fills do not disturb each other");
    assert!(lists.is_complete(DAY).await.unwrap());
}

async fn a_hot_list_is_complete_when_somebody_says_so(sets: Sets) {
    assert!(!sets.hot_lists.is_complete(DAY).await.unwrap());
    record(&sets, 1, 1, 3).await;
    assert!(!sets.hot_lists.is_complete(DAY).await.unwrap());
    for day in [DAY, "20240301"] {
        // The second one has no posts.
        fill(&sets, day).await;
        assert!(sets.hot_lists.is_complete(day).await.unwrap());
    }
    record(&sets, 2, 1, 3).await;
    assert!(sets.hot_lists.is_complete(DAY).await.unwrap());
    assert_eq!(top(&sets, 10).await, [(2, 3), (1, 3)]);
    assert!(sets.hot_lists.top("20240301", 10).await.unwrap().is_empty());
}
