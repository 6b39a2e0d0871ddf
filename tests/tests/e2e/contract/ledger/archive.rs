//! The ledger's tables as an archive.

use store::archive::{ArchivedPost, PublicPage, Scope};

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    an_authors_posts_are_paged_to_the_oldest,
    all_posts_are_paged_to_the_oldest,
    follows_are_read_in_chunks_from_both_ends,
});

async fn an_authors_posts_are_paged_to_the_oldest(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let mut written = Vec::new();
    for number in 0..5 {
        written.push(ArchivedPost::from(&world.post(ada, &format!("post {number}")).await.unwrap()));
        world.post(lin, "another").await.unwrap();
    }
    written.reverse();
    let archive = &world.archive.posts_by_author;
    assert_eq!(archive.page(ada, None, 3).await.unwrap(), written[..3]);
    assert_eq!(archive.page(ada, Some(written[2].id), 3).await.unwrap(), written[3..]);
    assert_eq!(archive.page(ada, Some(written[4].id), 3).await.unwrap(), []);
    archive.add(&[(written[0].clone(), 1)]).await.unwrap();
    assert_eq!(archive.page(ada, None, 10).await.unwrap(), written);
}

async fn all_posts_are_paged_to_the_oldest(world: World) {
    let people = world.people(2).await;
    let mut written = Vec::new();
    for number in 0..5 {
        written.push(ArchivedPost::from(&world.post(people[number % 2], "one of many").await.unwrap()));
    }
    written.reverse();
    let public = &world.archive.public_posts;
    let first = public.page(Scope::Local, None, 3).await.unwrap();
    assert_eq!(first, PublicPage { posts: written[..3].to_vec(), next: Some(written[2].id) });
    let rest = public.page(Scope::Global, first.next, 3).await.unwrap();
    assert_eq!(rest, PublicPage { posts: written[3..].to_vec(), next: None });
}

async fn follows_are_read_in_chunks_from_both_ends(world: World) {
    let people = world.people(6).await;
    let mut expected = Vec::new();
    for (author, followers) in [(0, &[2, 3, 4][..]), (1, &[]), (2, &[0, 5])] {
        for follower in followers.iter().rev() {
            world.follow(people[*follower], people[author]).await.unwrap();
        }
        expected.extend(followers.iter().map(|follower| (people[author], people[*follower])));
    }
    let follows = &world.archive.follows;
    let asked = [people[2], people[0], people[1]];
    let first = follows.followers(&asked, None, 2).await.unwrap();
    assert_eq!(first, expected[..2]);
    let rest = follows.followers(&asked, first.last().copied(), 10).await.unwrap();
    assert_eq!(rest, expected[2..]);
    assert_eq!(follows.followers(&[people[0]], None, 10).await.unwrap(), expected[..3]);
    assert_eq!(follows.followers(&[], None, 10).await.unwrap(), []);

    world.follow(people[3], people[2]).await.unwrap();
    assert_eq!(follows.followees(people[3], None, 1).await.unwrap(), [people[0]]);
    assert_eq!(follows.followees(people[3], Some(people[0]), 9).await.unwrap(), [people[2]]);
}
