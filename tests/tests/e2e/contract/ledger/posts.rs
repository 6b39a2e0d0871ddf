//! Posts and likes.

use futures_util::future::join_all;
use proto::{PostId, UserId, freshet::event::v1::envelope::Payload};
use store::{
    Entity, Error,
    ledger::{Likes, Viewer},
};

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    a_post_is_kept_as_it_was_written,
    to_like_again_changes_nothing,
    likes_at_once_are_counted_exactly,
    versions_of_likes_rise,
    what_is_not_there_is_not_liked_and_writes_nothing,
    liked_posts_are_found_by_their_ids,
});

async fn a_post_is_kept_as_it_was_written(world: World) {
    let ada = world.people(1).await[0];
    let text = "héllo \u{1f30a}\n'; DROP TABLE posts; --";
    let post = world.post(ada, text).await.unwrap();
    assert_eq!((post.author, post.content.text.as_str(), post.created_at_ms), (ada, text, post.id.unix_ms()));
    let other = world.post(ada, "another").await.unwrap();
    let posts = &world.ledger.posts;
    assert_eq!(posts.batch(Viewer::Stranger, &[]).await.unwrap(), []);
    let mut found = posts.batch(Viewer::Stranger, &[other.id, PostId::new(1).unwrap(), post.id]).await.unwrap();
    found.sort_by_key(|post| post.id);
    assert_eq!(found, [post, other]);
    assert_eq!(world.events("post.created").await.len(), 2);
}

async fn to_like_again_changes_nothing(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let post = world.post(ada, "hello").await.unwrap().id;
    let first = world.like(lin, post).await.unwrap();
    assert_eq!(first.count, 1);
    assert_eq!(world.like(lin, post).await.unwrap(), first);
    assert_eq!(world.like(ada, post).await.unwrap().count, 2);
    assert_eq!(world.events("post.liked").await.len(), 2);
}

async fn likes_at_once_are_counted_exactly(world: World) {
    let people = world.people(12).await;
    let post = world.post(people[0], "hello").await.unwrap().id;
    // Everyone likes it three times, all at once.
    let all = join_all(people.iter().cycle().take(36).map(|user| world.like(*user, post))).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    let likes = world.ledger.posts.batch(Viewer::Stranger, &[post]).await.unwrap()[0].likes;
    assert_eq!(likes.count, 12);
    let mut events = world.events("post.liked").await;
    events.sort_by_key(|event| event.version);
    let counts: Vec<_> = events.iter().map(|event| liked_count(event.payload.as_ref())).collect();
    assert_eq!(counts, (1..=12).collect::<Vec<i64>>(), "the higher version has the higher count, once each");
    assert_eq!(events.last().map(|event| event.version), Some(likes.version));
}

fn liked_count(payload: Option<&Payload>) -> i64 {
    let Some(Payload::Liked(liked)) = payload else { panic!("no like: {payload:?}") };
    liked.like_count
}

async fn versions_of_likes_rise(world: World) {
    let people = world.people(10).await;
    let post = world.post(people[0], "hello").await.unwrap().id;
    let mut before = Likes::default();
    for user in people {
        let after = world.like(user, post).await.unwrap();
        assert!(after.version > before.version, "{before:?}, then {after:?}");
        before = after;
    }
}

async fn what_is_not_there_is_not_liked_and_writes_nothing(world: World) {
    let ada = world.people(1).await[0];
    let post = world.post(ada, "hello").await.unwrap().id;
    let stranger = UserId::new(1).unwrap();
    let refused = world.like(ada, PostId::new(1).unwrap()).await;
    assert!(matches!(refused, Err(Error::NotFound(Entity::Post))), "{refused:?}");
    let refused = world.like(stranger, post).await;
    assert!(matches!(refused, Err(Error::NotFound(Entity::User))), "{refused:?}");
    let refused = world.post(stranger, "hello").await;
    assert!(matches!(refused, Err(Error::NotFound(Entity::User))), "{refused:?}");
    assert_eq!(world.rows().await.len(), 2);
}

async fn liked_posts_are_found_by_their_ids(world: World) {
    let ada = world.people(1).await[0];
    let mut liked = Vec::new();
    for number in 0..6 {
        let post = world.post(ada, "hello").await.unwrap().id;
        if number % 2 == 0 {
            liked.push((post, world.like(ada, post).await.unwrap()));
        }
    }
    let posts = &world.ledger.posts;
    assert_eq!(posts.liked_between(0, i64::MAX, 10).await.unwrap(), liked);
    assert_eq!(posts.liked_between(0, i64::MAX, 2).await.unwrap(), liked[..2]);
    assert_eq!(posts.liked_between(liked[1].0.get(), liked[2].0.get(), 10).await.unwrap(), liked[1..2]);
}
