//! Who may see which post: one rule, for every read.

use proto::{PostId, UserId};
use store::ledger::{NewPost, Post, Viewer, Visibility};

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    everybody_followers_and_the_author_see_what_is_for_them,
    a_private_account_narrows_at_once_and_back_at_once,
    a_block_hides_both_ways,
    nobody_sees_what_is_deleted_or_of_someone_who_is,
    an_authors_posts_are_listed_as_the_viewer_may_see_them,
    what_cannot_be_seen_cannot_be_liked_or_quoted,
});

/// One post of each visibility, of one author: public, followers, only me.
async fn one_of_each(world: &World, author: UserId) -> [PostId; 3] {
    let mut posts = Vec::new();
    for visibility in Visibility::ALL {
        let new = NewPost { visibility, ..NewPost::of_text(world.id(), author, "hello") };
        posts.push(world.write(new).await.unwrap().id);
    }
    posts.try_into().unwrap()
}

async fn everybody_followers_and_the_author_see_what_is_for_them(world: World) {
    let [ada, lin, max] = world.people(3).await[..] else { unreachable!() };
    world.follow(lin, ada).await.unwrap();
    world.follow(ada, max).await.unwrap();
    let all = one_of_each(&world, ada).await;
    assert_eq!(world.sees(Viewer::Stranger, &all).await, all[..1]);
    assert_eq!(world.sees(Viewer::Person(max), &all).await, all[..1], "whom the author follows is no follower");
    assert_eq!(world.sees(Viewer::Person(lin), &all).await, all[..2]);
    assert_eq!(world.sees(Viewer::Person(ada), &all).await, all);
    world.unfollow(lin, ada).await.unwrap();
    assert_eq!(world.sees(Viewer::Person(lin), &all).await, all[..1]);
}

async fn a_private_account_narrows_at_once_and_back_at_once(world: World) {
    let [ada, lin, max] = world.people(3).await[..] else { unreachable!() };
    world.follow(lin, ada).await.unwrap();
    let all = one_of_each(&world, ada).await;
    world.set_private(ada, true).await.unwrap();
    assert_eq!(world.sees(Viewer::Stranger, &all).await, []);
    assert_eq!(world.sees(Viewer::Person(max), &all).await, []);
    assert_eq!(world.sees(Viewer::Person(lin), &all).await, all[..2]);
    assert_eq!(world.sees(Viewer::Person(ada), &all).await, all);
    world.set_private(ada, false).await.unwrap();
    assert_eq!(world.sees(Viewer::Stranger, &all).await, all[..1]);
}

async fn a_block_hides_both_ways(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let (of_ada, of_lin) = (one_of_each(&world, ada).await[0], one_of_each(&world, lin).await[0]);
    world.block(ada, lin).await.unwrap();
    assert_eq!(world.sees(Viewer::Person(lin), &[of_ada, of_lin]).await, [of_lin]);
    assert_eq!(world.sees(Viewer::Person(ada), &[of_ada, of_lin]).await, [of_ada]);
    world.unblock(ada, lin).await.unwrap();
    assert_eq!(world.sees(Viewer::Person(lin), &[of_ada, of_lin]).await, [of_ada, of_lin]);
}

async fn nobody_sees_what_is_deleted_or_of_someone_who_is(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let (of_ada, of_lin) = (one_of_each(&world, ada).await, one_of_each(&world, lin).await);
    world.delete_post(ada, of_ada[0]).await.unwrap();
    world.delete_account(lin).await.unwrap();
    let all = [of_ada, of_lin].concat();
    assert_eq!(world.sees(Viewer::Stranger, &all).await, []);
    assert_eq!(world.sees(Viewer::Person(ada), &all).await, of_ada[1..]);
    assert_eq!(world.sees(Viewer::Person(lin), &all).await, []);
    // For good in no timeline: what is deleted, and what is for its author alone.
    let mut gone = world.ledger.posts.gone(&of_ada).await.unwrap();
    gone.sort_unstable();
    assert_eq!(gone, [of_ada[0], of_ada[2]]);
    // Nor are these in the archive that the ledger is.
    let archived = world.archive.posts_by_author.page(ada, None, 10).await.unwrap();
    assert_eq!(archived.iter().map(|post| post.id).collect::<Vec<_>>(), [of_ada[1]]);
}

async fn an_authors_posts_are_listed_as_the_viewer_may_see_them(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let mut written = Vec::new();
    for _ in 0..4 {
        written.extend(one_of_each(&world, ada).await);
        one_of_each(&world, lin).await;
    }
    written.reverse();
    let posts = &world.ledger.posts;
    let ids = |posts: Vec<Post>| posts.iter().map(|post| post.id).collect::<Vec<_>>();
    assert_eq!(ids(posts.by_author(Viewer::Person(ada), ada, None, 20).await.unwrap()), written);
    let public: Vec<_> = written.iter().skip(2).step_by(3).copied().collect();
    let first = ids(posts.by_author(Viewer::Stranger, ada, None, 3).await.unwrap());
    assert_eq!(first, public[..3], "a page is full, whatever lies between");
    assert_eq!(ids(posts.by_author(Viewer::Stranger, ada, Some(first[2]), 3).await.unwrap()), public[3..]);
}

async fn what_cannot_be_seen_cannot_be_liked_or_quoted(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let [public, followers, only_me] = one_of_each(&world, ada).await;
    let before = world.rows().await.len();
    for hidden in [followers, only_me, PostId::new(1).unwrap()] {
        world.like(lin, hidden).await.expect_err("hidden from lin");
        let quote = NewPost { quote_of: Some(hidden), ..NewPost::of_text(world.id(), lin, "look") };
        let refused = world.write(quote).await.unwrap_err();
        assert!(matches!(refused, store::Error::QuoteNotFound), "{refused}");
    }
    assert_eq!(world.rows().await.len(), before);
    world.like(lin, public).await.unwrap();
    let quote = NewPost { quote_of: Some(public), ..NewPost::of_text(world.id(), lin, "look") };
    assert_eq!(world.write(quote).await.unwrap().quote_of, Some(public));
    // Whoever cannot see it any more can still take the like back.
    world.block(ada, lin).await.unwrap();
    assert_eq!(world.unlike(lin, public).await.unwrap().count, 0);
}
