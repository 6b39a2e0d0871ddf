//! Idempotency keys of posts.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use proto::UserId;
use store::{Entity, Error};

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    of_many_calls_with_a_key_at_once_one_writes_and_all_get_its_post,
    a_key_is_its_authors_own_and_stands_for_one_text,
    a_call_that_fails_takes_no_key,
    keys_are_forgotten_when_they_are_old_a_few_at_a_time,
});

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

async fn of_many_calls_with_a_key_at_once_one_writes_and_all_get_its_post(world: World) {
    let ada = world.people(1).await[0];
    for round in 0..5 {
        let key = format!("key {round}");
        let all = join_all((0..16).map(|_| world.post_with_key(ada, "hello", Some(&key)))).await;
        let ids: HashSet<_> = all.into_iter().map(|post| post.expect("a post").id).collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
        assert_eq!(world.events("post.created").await.len(), round + 1);
        assert_eq!(world.archive.posts_by_author.page(ada, None, 100).await.unwrap().len(), round + 1);
    }
}

async fn a_key_is_its_authors_own_and_stands_for_one_text(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let first = world.post_with_key(ada, "hello", Some("key")).await.unwrap();
    let likes = world.like(lin, first.id).await.unwrap();
    let again = world.post_with_key(ada, "hello", Some("key")).await.unwrap();
    assert_eq!((again.id, again.likes, again.created_at_ms), (first.id, likes, first.created_at_ms));
    let refused = world.post_with_key(ada, "something else", Some("key")).await;
    assert!(matches!(refused, Err(Error::KeyTaken)), "{refused:?}");
    // Compared as bytes.
    for (author, key) in [(lin, "key"), (ada, "Key"), (ada, "key.")] {
        assert_ne!(world.post_with_key(author, "hello", Some(key)).await.unwrap().id, first.id, "{key}");
    }
    assert_eq!(world.events("post.created").await.len(), 4);
}

async fn a_call_that_fails_takes_no_key(world: World) {
    let stranger = UserId::new(1).unwrap();
    let refused = world.post_with_key(stranger, "hello", Some("key")).await;
    assert!(matches!(refused, Err(Error::NotFound(Entity::User))), "{refused:?}");
    assert_eq!(world.ledger.posts.forget_keys(Duration::ZERO, 10).await.unwrap(), 0);
}

async fn keys_are_forgotten_when_they_are_old_a_few_at_a_time(world: World) {
    let ada = world.people(1).await[0];
    let posts = &world.ledger.posts;
    let mut first = Vec::new();
    for number in 0..5 {
        first.push(world.post_with_key(ada, "hello", Some(&format!("key {number}"))).await.unwrap().id);
    }
    assert_eq!(posts.forget_keys(DAY, 10).await.unwrap(), 0);
    assert_eq!(world.post_with_key(ada, "hello", Some("key 0")).await.unwrap().id, first[0]);
    // A key's age is counted in milliseconds: one that was used in this very one is not older than nothing.
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(posts.forget_keys(Duration::ZERO, 2).await.unwrap(), 2);
    // The oldest went first, and what is forgotten is a new post.
    assert_eq!(world.post_with_key(ada, "hello", Some("key 2")).await.unwrap().id, first[2]);
    assert!(!first.contains(&world.post_with_key(ada, "hello", Some("key 0")).await.unwrap().id));
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(posts.forget_keys(Duration::ZERO, 10).await.unwrap(), 4);
    assert_eq!(posts.forget_keys(Duration::ZERO, 10).await.unwrap(), 0);
}
