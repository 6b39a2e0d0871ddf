//! How far what is in the sets is whole.

use store::{Shard, sets::Sets};

use super::open;

sets_contract!({
    a_shard_without_a_mark_settles_nothing,
    what_was_passed_never_goes_back,
    the_least_of_all_shards_is_settled,
});

const MS: i64 = 1_700_000_000_000;

async fn a_shard_without_a_mark_settles_nothing(sets: Sets) {
    let settled = &sets.settled;
    assert_eq!(settled.all(3).await.unwrap(), [None; 3]);
    assert_eq!((settled.all(0).await.unwrap(), settled.settled(0).await.unwrap()), (vec![], None));
    settled.passed(Shard(0), MS).await.unwrap();
    settled.passed(Shard(2), MS + 1).await.unwrap();
    assert_eq!(settled.all(3).await.unwrap(), [Some(MS), None, Some(MS + 1)]);
    assert_eq!(settled.settled(3).await.unwrap(), None);
}

async fn what_was_passed_never_goes_back(sets: Sets) {
    let settled = &sets.settled;
    for (told, known) in [(MS, MS), (MS - 1, MS), (-1, MS), (MS + 1, MS + 1), (MS, MS + 1)] {
        settled.passed(Shard(1), told).await.unwrap();
        assert_eq!(settled.all(2).await.unwrap(), [None, Some(known)], "after {told}");
    }
}

async fn the_least_of_all_shards_is_settled(sets: Sets) {
    let settled = &sets.settled;
    // One of them by a row without a time: its mark lies before 1970.
    for (shard, ms) in [(0, MS + 5), (1, -12_001), (2, MS + 9)] {
        settled.passed(Shard(shard), ms).await.unwrap();
    }
    assert_eq!(settled.settled(3).await.unwrap(), Some(-12_001));
    settled.passed(Shard(1), MS + 7).await.unwrap();
    assert_eq!(settled.settled(3).await.unwrap(), Some(MS + 5));
    assert_eq!(settled.settled(1).await.unwrap(), Some(MS + 5));
    assert_eq!(settled.settled(4).await.unwrap(), None);
}
