//! The oracle itself: what it takes for promised.

use proto::{PostId, UserId};
use store::migrate::Mode;
use tests::{
    oracle::Truth,
    servers::{self, Adapter},
    sql::Sql,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_for_those_whose_follow_was_committed_when_it_was_written() {
    let data = tempfile::tempdir().expect("a folder");
    let Some(mut settings) = servers::settings(&[Adapter::Postgres], data.path()).await else { return };
    // A config needs one; nobody talks to it.
    settings.push(("stores.events", "kafka://127.0.0.1:1".to_owned()));
    servers::config(&settings).migrate_ledger(Mode::Apply).await.expect("a ledger");
    let url = &settings.iter().find(|(key, _)| *key == "stores.ledger").expect("a ledger").1;
    let truth = Truth::of(url).await;
    truth.install_witness().await;
    let (mut sql, mut slow) = (Sql::connect(url).await, Sql::connect(url).await);
    let account = |id: i64| format!("({id}, 'person_{id}', '', 0, 1)");
    let accounts = [1, 2, 3].map(account).join(", ");
    let post = |id: i64, minted_at_ms: i64| {
        format!("INSERT INTO posts (id, author, text, created_at_ms, version) VALUES ({id}, 3, '', {minted_at_ms}, 1)")
    };

    let columns = "id, handle, display_name, created_at_ms, version";
    sql.run(&format!("INSERT INTO accounts ({columns}) VALUES {accounts}")).await;
    sql.run("INSERT INTO follows VALUES (1, 3, TRUE, 1000000)").await;
    // It begins before the post, and ends after it.
    slow.run("BEGIN; INSERT INTO follows VALUES (2, 3, TRUE, 5000000)").await;
    sql.run(&post(100, 6000)).await;
    slow.run("COMMIT").await;
    // Its id was minted before the follow, and it was written after it.
    sql.run(&post(101, 4000)).await;

    let posts = async |reader: i64| {
        let mut posts = truth.written_for(UserId::new(reader).unwrap(), 3000).await;
        posts.sort();
        posts.into_iter().map(PostId::get).collect::<Vec<_>>()
    };
    assert_eq!(posts(1).await, [100, 101]);
    assert_eq!(posts(2).await, [101]);
}
