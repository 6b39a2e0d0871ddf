//! Who follows whom.

use futures_util::future::join_all;
use proto::UserId;
use store::{Entity, Error};

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    to_follow_again_changes_nothing,
    of_many_follows_at_once_one_is_the_change,
    followers_are_paged_in_order_of_their_ids,
    nobody_follows_a_stranger,
});

async fn to_follow_again_changes_nothing(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    assert!(world.follow(ada, lin).await.unwrap());
    assert!(!world.follow(ada, lin).await.unwrap());
    assert!(world.follow(lin, ada).await.unwrap());
    assert_eq!(world.events("graph.followed").await.len(), 2);
    assert_eq!(world.ledger.graph.followees(ada).await.unwrap(), [lin]);
}

async fn of_many_follows_at_once_one_is_the_change(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let all = join_all((0..20).map(|_| world.follow(ada, lin))).await;
    let changes: Vec<_> = all.into_iter().map(Result::unwrap).filter(|changed| *changed).collect();
    assert_eq!(changes.len(), 1);
    assert_eq!(world.events("graph.followed").await.len(), 1);
}

async fn followers_are_paged_in_order_of_their_ids(world: World) {
    let people = world.people(8).await;
    let (author, followers) = people.split_first().unwrap();
    for follower in followers.iter().rev() {
        world.follow(*follower, *author).await.unwrap();
    }
    let graph = &world.ledger.graph;
    world.follow(*author, followers[3]).await.unwrap();
    let mut found: Vec<(UserId, UserId)> = Vec::new();
    loop {
        let page = graph.followers(&[followers[3], *author], found.last().copied(), 3).await.unwrap();
        let last = page.len() < 3;
        assert!(page.len() <= 3);
        found.extend(page);
        if last {
            break;
        }
    }
    let expected: Vec<_> =
        followers.iter().map(|follower| (*author, *follower)).chain([(followers[3], *author)]).collect();
    assert_eq!(found, expected);
    assert_eq!(graph.followers(&[followers[0]], None, 3).await.unwrap(), []);
    assert_eq!(graph.followers(&[], None, 3).await.unwrap(), []);
}

async fn nobody_follows_a_stranger(world: World) {
    let ada = world.people(1).await[0];
    let stranger = UserId::new(1).unwrap();
    for (follower, followee) in [(ada, stranger), (stranger, ada)] {
        let refused = world.follow(follower, followee).await;
        assert!(matches!(refused, Err(Error::NotFound(Entity::User))), "{refused:?}");
    }
    assert_eq!(world.events("graph.followed").await.len(), 0);
}
