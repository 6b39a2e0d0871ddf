//! What only Cassandra has: a keyspace and tables that are made beforehand, and rows that are removed apart from the ledger.

use std::time::Duration;

use chassis::Stage;
use futures_util::future::join_all;
use store::{
    Error,
    archive::{Archive, Edge, Scope},
};
use tests::{
    cql::Cql,
    proxy::{Proxy, Weather},
    wait,
};
use tokio::time::Instant;

use super::*;

async fn unmade() -> Option<(Config, TempDir)> {
    let data = tempfile::tempdir().expect("a folder");
    Some((servers::config(&servers::settings(&[Adapter::Cassandra], data.path()).await?), data))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_tells_what_it_does_and_can_be_done_by_many_and_again() {
    let Some((config, _data)) = unmade().await else { return };
    let parts = servers::parts();
    let ledger = config.open_ledger(&parts).await.unwrap();
    let told = config.open_archive(&parts, &ledger).await.err().expect("a refusal").to_string();
    assert!(told.contains("there is no keyspace") && told.contains("`freshet migrate`"), "{told}");

    let planned = config.migrate(Mode::Plan).await.unwrap();
    assert_eq!(planned.len(), 9, "{planned:?}");
    assert_eq!(config.migrate(Mode::Plan).await.unwrap(), planned);
    let (a, b, c, d) = tokio::join!(
        config.migrate(Mode::Apply),
        config.migrate(Mode::Apply),
        config.migrate(Mode::Apply),
        config.migrate(Mode::Apply),
    );
    for done in [a, b, c, d] {
        done.unwrap();
    }
    assert_eq!(config.migrate(Mode::Apply).await.unwrap(), []);
    config.open_archive(&parts, &ledger).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_do_not_answer_are_named() {
    let data = tempfile::tempdir().expect("a folder");
    let mut settings = servers::settings(&[], data.path()).await.expect("settings");
    settings.push(("stores.archive", "scylla://ada:secret@127.0.0.1:1".to_owned()));
    let config = servers::config(&settings);
    let told = config.migrate(Mode::Plan).await.unwrap_err().to_string();
    assert!(told.contains("the archive at scylla://127.0.0.1:1") && !told.contains("secret"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_is_not_brought_back_by_a_late_write() {
    let Some(opened) = open(Adapter::Cassandra).await else { return };
    let (kept, removed) = (opened.write(ADA, 1).await, opened.write(ADA, 2).await);
    let Archive { posts_by_author, public_posts, .. } = &opened.archive;
    posts_by_author.remove(removed.author, removed.id, 5).await.unwrap();
    public_posts.remove(removed.id, 5).await.unwrap();
    for version in [2, 5] {
        opened.add(&removed, version).await;
    }
    for scope in Scope::ALL {
        assert_eq!(public_posts.page(scope, None, 10).await.unwrap().posts, std::slice::from_ref(&kept));
    }
    assert_eq!(opened.page(ADA, None, 10).await, std::slice::from_ref(&kept));
    opened.add(&removed, 6).await;
    assert_eq!(opened.page(ADA, None, 10).await, [removed, kept]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_an_edges_versions_the_highest_counts_in_any_order() {
    let Some(opened) = open(Adapter::Cassandra).await else { return };
    let follows = &opened.archive.follows;
    let edge = |version, active| Edge { follower: user(LIN), followee: user(ADA), active, version };
    let (followed, ended, again) = (edge(1, true), edge(2, false), edge(3, true));
    for (edges, is_so) in [
        (&[ended, followed][..], false),
        (&[followed, ended, followed], false),
        (&[again, ended, followed], true),
        (&[edge(3, false)], false),
    ] {
        for edge in edges {
            follows.set(std::slice::from_ref(edge)).await.unwrap();
        }
        let expected = if is_so { vec![(user(ADA), user(LIN))] } else { Vec::new() };
        assert_eq!(follows.followers(&[user(ADA)], None, 10).await.unwrap(), expected, "{edges:?}");
        assert_eq!(follows.followees(user(LIN), None, 10).await.unwrap().len(), expected.len(), "{edges:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyspace_that_is_dropped_can_be_waited_for() {
    let Some(opened) = open(Adapter::Cassandra).await else { return };
    let post = opened.write(ADA, 1).await;
    Cql::connect().await.run(&format!("DROP KEYSPACE {}", opened.keyspace)).await;
    let refused = opened.archive.posts_by_author.add(&[(post.clone(), 1)]).await.unwrap_err();
    assert!(matches!(&refused, Error::Unavailable { cause, .. } if cause.contains("freshet migrate")), "{refused}");
    // Made again, and empty: the same pod goes on, and reads from the ledger before anyone has told it.
    opened.config.migrate(Mode::Apply).await.unwrap();
    assert_eq!(opened.page(ADA, None, 10).await, std::slice::from_ref(&post));
    opened.add(&post, 1).await;
    assert_eq!(opened.fill().await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_was_made_again_since_the_last_look_is_not_believed() {
    let Some(mut opened) = open(Adapter::Cassandra).await else { return };
    let parts = servers::parts();
    opened.archive = opened.config.open_archive(&parts, &opened.ledger).await.unwrap();
    let no_more_looks = parts.pod.tasks.stop(Stage::Foundations, Instant::now() + Duration::from_secs(10));
    assert!(no_more_looks.await);
    let post = opened.write(ADA, 1).await;
    let only_there = Post { id: id(2), ..post.clone() };
    opened.add(&only_there, 1).await;
    assert_eq!(opened.page(ADA, None, 1).await, [only_there], "the archive is read");
    Cql::connect().await.run(&format!("DROP KEYSPACE {}", opened.keyspace)).await;
    opened.config.migrate(Mode::Apply).await.unwrap();
    assert_eq!(opened.page(ADA, None, 1).await, [post], "the ledger is read");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_lost_alone_makes_another_archive() {
    let Some(opened) = open(Adapter::Cassandra).await else { return };
    let filling = opened.archive.filling.clone().expect("an archive of its own");
    let before = filling.generation().await.unwrap();
    Cql::connect().await.run(&format!("DROP TABLE {}.followers_by_user_bucket", opened.keyspace)).await;
    opened.config.migrate(Mode::Apply).await.unwrap();
    assert_ne!(filling.generation().await.unwrap(), before);
}

/// Far more at once than can be answered one after the other in the time that each may wait.
const READS: usize = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn while_it_is_away_the_ledger_answers_so_many_reads_at_a_time() {
    let data = tempfile::tempdir().expect("a folder");
    let Some(mut settings) = servers::settings(&[Adapter::Cassandra], data.path()).await else { return };
    let (_, url) = settings.iter_mut().find(|(key, _)| *key == "stores.archive").expect("an archive");
    let proxy = Proxy::in_front_of(url.trim_start_matches("scylla://").parse().expect("its address")).await;
    *url = format!("scylla://{}", proxy.address());
    settings.push(("stores.archive_fallback_reads_max", "1".to_owned()));
    let opened = filled(open_on(settings, data).await).await;
    let post = opened.write(ADA, 1).await;
    let only_there = Post { id: id(2), ..post.clone() };
    opened.add(&only_there, 1).await;
    let newest = async |wanted: &Post| (opened.page(ADA, None, 1).await == [wanted.clone()]).then_some(());
    wait::until("the archive is read", async || newest(&only_there).await).await;

    proxy.set(Weather::Cut);
    wait::until("the ledger is read", async || newest(&post).await).await;
    let posts = &opened.archive.posts_by_author;
    let (read, refused): (Vec<_>, Vec<_>) =
        join_all((0..READS).map(|_| posts.page(user(ADA), None, 1))).await.into_iter().partition(Result::is_ok);
    assert!(!read.is_empty() && !refused.is_empty(), "{} of {READS} were read", read.len());
    let told = refused[0].as_ref().unwrap_err();
    assert!(matches!(told, Error::Unavailable { store: "the archive", .. }), "{told}");

    proxy.set(Weather::Clear);
    wait::until("the archive is read again", async || newest(&only_there).await).await;
}
