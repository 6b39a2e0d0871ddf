//! An archive that is new, beside a ledger that is not.

use tests::{cql::Cql, wait};

use super::*;

/// More than one chunk of each.
const POSTS: i64 = 1_100;
const FOLLOWERS: i64 = 600;

/// A ledger with posts and follows, and an archive that has none of them.
async fn full_ledger() -> Option<Opened> {
    let opened = open_unfilled(Adapter::Cassandra).await?;
    for person in [ADA, LIN].into_iter().chain(1000..1000 + FOLLOWERS) {
        opened.sign_up(person).await;
    }
    for number in 1..=POSTS {
        opened.commit(ADA, number, "before").await;
    }
    for follower in 1000..1000 + FOLLOWERS {
        opened.commit_follow(follower, LIN).await;
    }
    Some(opened)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_archive_is_filled_and_read_only_then() {
    let Some(mut opened) = full_ledger().await else { return };
    let newest = opened.commit(ADA, POSTS + 1, "before").await;
    // A post that only the archive has tells where pages come from.
    let ghost = Post { id: id(POSTS + 2), ..newest.clone() };
    opened.add(&ghost, 1).await;
    assert_eq!(opened.page(ADA, None, 1).await[0], newest, "the ledger is read");

    let filling = opened.archive.filling.clone().expect("an archive of its own");
    let mut lease = filling.claim("a").await.unwrap().expect("a lease");
    assert_eq!(filling.write_chunk(&mut lease).await.unwrap(), Chunk::Written);
    assert!(filling.claim("b").await.unwrap().is_none(), "one at a time");
    opened.open_again().await;
    assert_eq!(opened.page(ADA, None, 1).await[0], newest, "half an archive is not read");

    // Given up in the middle: the next one goes on where the first one stopped.
    filling.release(&lease).await.unwrap();
    let mut next = filling.claim("b").await.unwrap().expect("a lease");
    assert_eq!((next.cursor, next.rows_done), (lease.cursor, 500));
    assert_eq!(filling.write_chunk(&mut lease).await.unwrap(), Chunk::Lost, "the first one's right is gone");
    let mut chunks = 1;
    while filling.write_chunk(&mut next).await.unwrap() != Chunk::Last {
        chunks += 1;
    }
    assert_eq!(chunks, 2 + 2, "two more of posts, two of follows");

    wait::until("the archive to be read", async || (opened.page(ADA, None, 1).await[0] == ghost).then_some(())).await;
    let generation = filling.generation().await.unwrap().expect("a mark");
    let status = filling.status(generation).await.unwrap().expect("a status");
    let rows = u64::try_from(POSTS + 1 + FOLLOWERS).unwrap();
    assert_eq!((status.complete, status.rows_done, status.rows_estimated), (true, rows, rows));
    opened.has_every_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_is_lost_during_its_fill_is_filled_from_the_beginning() {
    let Some(opened) = full_ledger().await else { return };
    let filling = opened.archive.filling.clone().expect("an archive of its own");
    let mut lease = filling.claim("a").await.unwrap().expect("a lease");
    assert_eq!(filling.write_chunk(&mut lease).await.unwrap(), Chunk::Written);
    Cql::connect().await.run(&format!("DROP KEYSPACE {}", opened.keyspace)).await;
    assert!(filling.write_chunk(&mut lease).await.is_err());
    opened.config.migrate(Mode::Apply).await.unwrap();
    assert_eq!(filling.write_chunk(&mut lease).await.unwrap(), Chunk::Lost, "it is another archive");
    assert_eq!(opened.fill().await, 3 + 2);
    opened.has_every_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_archive_begins_again_when_asked() {
    let Some(opened) = open(Adapter::Cassandra).await else { return };
    let filling = opened.archive.filling.clone().expect("an archive of its own");
    let generation = filling.generation().await.unwrap().expect("a mark");
    assert!(filling.claim("a").await.unwrap().is_none(), "there is nothing to do");
    assert!(filling.begin_again(generation).await.unwrap());
    assert!(!filling.begin_again(generation).await.unwrap(), "it is not complete any more");
    assert_eq!(opened.fill().await, 2);
    assert_eq!(opened.ledger.archive_fills.completed().await.unwrap(), Some(generation));
}

impl Opened {
    /// Compares the archive's rows with the number that the ledger has.
    async fn has_every_row(&self) {
        let mut cql = Cql::connect().await;
        let (posts, follows) = (usize::try_from(POSTS).unwrap(), usize::try_from(FOLLOWERS).unwrap());
        for (table, rows, scopes) in [
            ("posts_by_author", posts, 1),
            ("public_posts", posts, 2),
            ("following_by_user", follows, 1),
            ("followers_by_user_bucket", follows, 1),
        ] {
            let found = cql.count(&format!("{}.{table}", self.keyspace)).await;
            assert!(found >= rows * scopes && found <= (rows + 2) * scopes, "{found} rows in {table}");
        }
    }
}
