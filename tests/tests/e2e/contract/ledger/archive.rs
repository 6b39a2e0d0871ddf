//! The ledger's tables as an archive.

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    an_authors_posts_are_paged_to_the_oldest,
});

async fn an_authors_posts_are_paged_to_the_oldest(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let mut written = Vec::new();
    for number in 0..5 {
        written.push(world.post(ada, &format!("post {number}")).await.unwrap());
        world.post(lin, "another").await.unwrap();
    }
    written.reverse();
    let archive = &world.archive.posts_by_author;
    assert_eq!(archive.page(ada, None, 3).await.unwrap(), written[..3]);
    assert_eq!(archive.page(ada, Some(written[2].id), 3).await.unwrap(), written[3..]);
    assert_eq!(archive.page(ada, Some(written[4].id), 3).await.unwrap(), []);
    archive.add(&written[0], 1).await.unwrap();
    assert_eq!(archive.page(ada, None, 10).await.unwrap(), written);
}
