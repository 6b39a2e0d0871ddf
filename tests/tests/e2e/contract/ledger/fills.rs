//! How far an archive was filled from the ledger, and the rows that it is filled with.

use std::time::Duration;

use futures_util::future::join_all;
use store::{archive::Generation, ledger::Cursor};
use tests::wait;

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    one_at_a_time_fills_and_the_next_goes_on_from_the_checkpoint,
    a_lease_that_ran_out_writes_nothing_any_more,
    a_new_generation_makes_the_old_one_forgotten,
    what_is_complete_begins_again_when_asked,
    rows_come_in_order_with_their_versions,
});

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);
const FIRST: Generation = Generation::new(-7);
const SECOND: Generation = Generation::new(8);

async fn one_at_a_time_fills_and_the_next_goes_on_from_the_checkpoint(world: World) {
    let fills = &world.ledger.archive_fills;
    assert_eq!(fills.status(FIRST).await.unwrap(), None);
    let owners: Vec<_> = (0..10).map(|number| format!("pod {number}")).collect();
    let claimed = join_all(owners.iter().map(|owner| fills.claim(FIRST, owner, LONG))).await;
    let mut claimed: Vec<_> = claimed.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    let mut lease = claimed.remove(0);
    assert_eq!((lease.cursor, lease.rows_done, lease.epoch), (Cursor::BEGINNING, 0, 1));

    lease.cursor = Cursor::Follows(5, 6);
    lease.rows_done = 11;
    assert!(fills.checkpoint(&lease, LONG).await.unwrap());
    let status = fills.status(FIRST).await.unwrap().expect("a status");
    assert_eq!((status.owner.as_deref(), status.cursor, status.rows_done), (Some(&*lease.owner), lease.cursor, 11));

    fills.release(&lease).await.unwrap();
    assert_eq!(fills.status(FIRST).await.unwrap().expect("a status").owner, None);
    let next = fills.claim(FIRST, "another", LONG).await.unwrap().expect("a lease");
    assert_eq!((next.cursor, next.rows_done, next.epoch), (Cursor::Follows(5, 6), 11, 2));
    assert!(!fills.checkpoint(&lease, LONG).await.unwrap(), "the earlier owner's right is gone");
    assert!(!fills.finish(&lease).await.unwrap());
    assert_eq!(fills.completed().await.unwrap(), None);
    assert!(fills.finish(&next).await.unwrap());
    assert_eq!(fills.completed().await.unwrap(), Some(FIRST));
    assert_eq!(fills.claim(FIRST, "another", LONG).await.unwrap(), None, "there is nothing left to do");
}

async fn a_lease_that_ran_out_writes_nothing_any_more(world: World) {
    let fills = &world.ledger.archive_fills;
    let lease = fills.claim(FIRST, "a", SHORT).await.unwrap().expect("a lease");
    let next = wait::until("the lease to run out", async || fills.claim(FIRST, "b", LONG).await.unwrap()).await;
    assert!(!fills.checkpoint(&lease, LONG).await.unwrap());
    assert!(!fills.finish(&lease).await.unwrap());
    fills.release(&lease).await.unwrap();
    assert!(fills.checkpoint(&next, LONG).await.unwrap(), "another's release takes nothing away");
}

async fn a_new_generation_makes_the_old_one_forgotten(world: World) {
    let fills = &world.ledger.archive_fills;
    let lease = fills.claim(FIRST, "a", LONG).await.unwrap().expect("a lease");
    assert!(fills.finish(&lease).await.unwrap());
    let lease = fills.claim(SECOND, "a", LONG).await.unwrap().expect("a lease");
    assert_eq!(fills.completed().await.unwrap(), None, "one that is lost is not complete");
    assert_eq!(fills.status(FIRST).await.unwrap(), None);
    assert!(fills.finish(&lease).await.unwrap());
    assert_eq!(fills.completed().await.unwrap(), Some(SECOND));
    // One that comes back from a backup lacks what came after it.
    let lease = fills.claim(FIRST, "a", LONG).await.unwrap().expect("a lease");
    assert_eq!((lease.cursor, fills.completed().await.unwrap()), (Cursor::BEGINNING, None));
}

async fn what_is_complete_begins_again_when_asked(world: World) {
    let fills = &world.ledger.archive_fills;
    assert!(!fills.begin_again(FIRST).await.unwrap());
    let mut lease = fills.claim(FIRST, "a", LONG).await.unwrap().expect("a lease");
    assert!(!fills.begin_again(FIRST).await.unwrap(), "it is under way");
    (lease.cursor, lease.rows_done) = (Cursor::Follows(1, 2), 3);
    assert!(fills.finish(&lease).await.unwrap());
    assert!(fills.begin_again(FIRST).await.unwrap());
    let again = fills.claim(FIRST, "b", LONG).await.unwrap().expect("a lease");
    assert_eq!((again.cursor, again.rows_done), (Cursor::BEGINNING, 0));
}

async fn rows_come_in_order_with_their_versions(world: World) {
    let fills = &world.ledger.archive_fills;
    let people = world.people(4).await;
    let mut written = Vec::new();
    for number in 0..5 {
        written.push(world.post(people[number % 2], &format!("post {number}")).await.unwrap());
    }
    for (follower, followee) in [(3, 0), (1, 2), (1, 0), (2, 0)] {
        world.follow(people[follower], people[followee]).await.unwrap();
    }
    let first = fills.posts_after(0, 3).await.unwrap();
    let rest = fills.posts_after(first[2].id.get(), 3).await.unwrap();
    let posts: Vec<_> = first.iter().chain(&rest).cloned().collect();
    assert_eq!(posts, written);
    let versions: Vec<_> = world.events("post.created").await.iter().map(|event| event.version).collect();
    assert!(posts.iter().all(|post| versions.contains(&post.version)), "as their events have them");

    let first = fills.follows_after((0, 0), 3).await.unwrap();
    let rest = fills.follows_after((first[2].follower.get(), first[2].followee.get()), 3).await.unwrap();
    let edges: Vec<_> = first.iter().chain(&rest).collect();
    let pairs: Vec<_> = edges.iter().map(|edge| (edge.follower, edge.followee)).collect();
    assert_eq!(pairs, [(1, 0), (1, 2), (2, 0), (3, 0)].map(|(a, b): (usize, usize)| (people[a], people[b])));
    let versions: Vec<_> = world.events("graph.followed").await.iter().map(|event| event.version).collect();
    assert!(edges.iter().all(|edge| edge.active && versions.contains(&edge.version)), "{edges:?}");

    fills.claim(FIRST, "a", LONG).await.unwrap().expect("a lease");
    assert_eq!(fills.status(FIRST).await.unwrap().expect("a status").rows_estimated, 5 + 4);
}
