//! The ends of all that a deleted person has to do with others.

use proto::{
    PostId, UserId,
    freshet::event::v1::{PostDeleted, envelope::Payload},
};
use store::{
    Error,
    ledger::{Deleted, Event, List, Tie, Unliked, Viewer},
};

use super::{LIMITS, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    who_is_gone_is_in_no_list_and_no_relationship_at_once,
    all_that_a_gone_person_has_to_do_with_others_ends_and_the_numbers_follow,
    posts_of_a_gone_person_are_deleted,
    nobody_who_is_there_is_cleaned_up_after,
});

impl World {
    pub(super) async fn end_ties(&self, person: UserId, tie: Tie, limit: usize) -> Result<usize, Error> {
        let events: Vec<_> = (0..limit).map(|_| self.events_of()).collect();
        self.ledger.departures.end_ties(person, tie, LIMITS, &events).await
    }

    pub(super) async fn end_likes(&self, person: UserId, limit: usize) -> Result<usize, Error> {
        let events: Vec<_> = (0..limit).map(|_| Event { id: self.id(), compose: &Unliked::payload }).collect();
        self.ledger.departures.end_likes(person, &events).await
    }

    pub(super) async fn delete_posts(&self, person: UserId, limit: usize) -> Result<usize, Error> {
        let compose = |row: &Deleted| {
            let (post_id, author_id) = (row.id.to_string(), row.author.to_string());
            Payload::PostDeleted(PostDeleted { post_id, author_id })
        };
        let events: Vec<_> = (0..limit).map(|_| Event { id: self.id(), compose: &compose }).collect();
        self.ledger.departures.delete_posts(person, &events).await
    }

    /// (followers, followees) of each.
    async fn numbers(&self, people: &[UserId]) -> Vec<(i64, i64)> {
        let counters = self.ledger.relations.counters(people).await.unwrap();
        let of = |person: &UserId| {
            let found = counters.iter().find(|counters| counters.user == *person).expect("counters");
            (found.followers, found.following)
        };
        people.iter().map(of).collect()
    }
}

/// The first is tied to all others in every way, and likes a post of each. Gives the posts.
async fn tied(world: &World, people: &[UserId]) -> Vec<PostId> {
    let [gone, follows, followed, asks, asked, blocks, blocked, mutes, muted] = people[..] else { unreachable!() };
    world.follow(gone, follows).await.unwrap();
    world.follow(followed, gone).await.unwrap();
    world.set_private(asked, true).await.unwrap();
    world.follow(gone, asked).await.unwrap();
    world.set_private(gone, true).await.unwrap();
    world.follow(asks, gone).await.unwrap();
    world.block(gone, blocked).await.unwrap();
    world.block(blocks, gone).await.unwrap();
    world.mute(gone, muted, None).await.unwrap();
    world.mute(mutes, gone, None).await.unwrap();
    let mut posts = Vec::new();
    for author in &people[1..4] {
        let post = world.post(*author, "hello").await.unwrap().id;
        world.like(gone, post).await.unwrap();
        world.like(follows, post).await.unwrap();
        posts.push(post);
    }
    posts
}

async fn who_is_gone_is_in_no_list_and_no_relationship_at_once(world: World) {
    let people = world.people(9).await;
    let (gone, others) = (people[0], &people[1..]);
    tied(&world, &people).await;
    let post = world.post(gone, "last words").await.unwrap();
    world.delete_account(gone).await.unwrap();
    let relations = &world.ledger.relations;
    for list in List::ALL {
        for other in others {
            assert_eq!(relations.list(list, *other, None, 9).await.unwrap(), [], "{list:?}");
        }
        assert_eq!(relations.list(list, gone, None, 9).await.unwrap(), [], "{list:?} of who is gone");
    }
    assert_eq!(relations.relationships(others[0], &[gone]).await.unwrap(), []);
    assert_eq!(relations.relationships(gone, others).await.unwrap(), []);
    assert_eq!(world.ledger.posts.batch(Viewer::Stranger, &[post.id]).await.unwrap(), []);
}

async fn all_that_a_gone_person_has_to_do_with_others_ends_and_the_numbers_follow(world: World) {
    let people = world.people(9).await;
    let posts = tied(&world, &people).await;
    let (gone, more) = (people[0], world.people(3).await);
    assert_eq!(world.numbers(&people[..3]).await, [(1, 1), (1, 0), (0, 1)]);
    world.set_private(gone, false).await.unwrap();
    for follower in &more {
        world.follow(*follower, gone).await.unwrap();
    }
    world.delete_account(gone).await.unwrap();
    // In chunks of any size, and again after the end.
    assert_eq!(world.end_ties(gone, Tie::Followers, 3).await.unwrap(), 3);
    assert_eq!(world.end_ties(gone, Tie::Followers, 3).await.unwrap(), 1);
    for tie in Tie::ALL {
        let expected = usize::from(tie != Tie::Followers);
        assert_eq!(world.end_ties(gone, tie, 3).await.unwrap(), expected, "{tie:?}");
        assert_eq!(world.end_ties(gone, tie, 3).await.unwrap(), 0, "{tie:?}");
    }
    assert_eq!(world.numbers(&people[..3]).await, [(0, 0); 3]);
    assert_eq!(world.numbers(&more).await, [(0, 0); 3]);
    assert_eq!(world.events("graph.unfollowed").await.len(), 5);

    assert_eq!(world.end_likes(gone, 2).await.unwrap(), 2);
    assert_eq!(world.end_likes(gone, 2).await.unwrap(), 1);
    assert_eq!(world.end_likes(gone, 2).await.unwrap(), 0);
    let liked = world.ledger.posts.batch(Viewer::Stranger, &posts).await.unwrap();
    assert!(liked.iter().all(|post| post.likes.count == 1), "{liked:?}");
    let events = world.events("post.unliked").await;
    let mut versions: Vec<_> = events.iter().map(|event| event.version).collect();
    versions.sort_unstable();
    let mut expected: Vec<_> = liked.iter().map(|post| post.likes.version).collect();
    expected.sort_unstable();
    assert_eq!(versions, expected, "the last event of a post tells its number");
}

async fn posts_of_a_gone_person_are_deleted(world: World) {
    let [gone, lin] = world.people(2).await[..] else { unreachable!() };
    for number in 0..3 {
        world.post(gone, &format!("post {number}")).await.unwrap();
    }
    let liked = world.post(gone, "liked").await.unwrap().id;
    world.like(gone, liked).await.unwrap();
    world.post(lin, "stays").await.unwrap();
    world.delete_account(gone).await.unwrap();
    assert_eq!(world.delete_posts(gone, 3).await.unwrap(), 3);
    assert_eq!(world.delete_posts(gone, 3).await.unwrap(), 1);
    assert_eq!(world.delete_posts(gone, 3).await.unwrap(), 0);
    assert_eq!(world.events("post.deleted").await.len(), 4);
    assert_eq!((world.end_likes(gone, 3).await.unwrap(), world.end_likes(gone, 3).await.unwrap()), (1, 0));
    let counters = world.ledger.relations.counters(&[gone, lin]).await.unwrap();
    assert!(counters.iter().all(|counters| counters.posts == i64::from(counters.user == lin)), "{counters:?}");
}

async fn nobody_who_is_there_is_cleaned_up_after(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    world.follow(ada, lin).await.unwrap();
    assert!(matches!(world.end_ties(ada, Tie::Following, 1).await, Err(Error::NotFound(_))));
    assert!(matches!(world.end_likes(ada, 1).await, Err(Error::NotFound(_))));
    assert_eq!(world.numbers(&[ada, lin]).await, [(0, 1), (1, 0)]);
}
