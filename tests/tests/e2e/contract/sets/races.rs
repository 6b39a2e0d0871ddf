//! Pushes, builds and merges at the same moment.

use std::sync::{Arc, Mutex};

use proto::UserId;
use store::sets::{Build, Coverage, Entry, HOME_MEMBERS_KEPT, HOME_MEMBERS_MAX, Sets};
use tokio::task::JoinSet;

use super::{ALL, entry, newest_first, open, soon, to, user};

sets_contract!({
    of_a_push_and_a_build_at_the_same_moment_one_sees_the_other,
    one_of_many_builders_builds,
});

const WRITERS: i64 = 4;
const POSTS_OF_A_WRITER: i64 = 75;
const READERS: i64 = 40;

/// What fan-out writes before it pushes, and a builder reads after it has begun.
type Archive = Arc<Mutex<Vec<Entry>>>;

async fn write(sets: Sets, archive: Archive, writer: i64) {
    let readers: Vec<_> = (1..=READERS).map(user).collect();
    for post in 0..POSTS_OF_A_WRITER {
        let entry = entry(post, writer);
        archive.lock().unwrap().push(entry);
        sets.homes.push(&to(&readers, entry), soon()).await.unwrap();
    }
}

async fn build(sets: Sets, archive: Archive, reader: UserId) {
    let Build::Mine(token) = sets.homes.begin_build(reader).await.unwrap() else { panic!("another builder") };
    let mut entries = newest_first(archive.lock().unwrap().clone());
    let wanted = HOME_MEMBERS_KEPT - 1;
    let complete_to = match entries.get(wanted - 1) {
        Some(last) => Coverage::down_to(last.id),
        None => Coverage::TO_THE_BEGINNING,
    };
    entries.truncate(wanted);
    assert!(sets.homes.finish_build(reader, token, &entries, complete_to, &[]).await.unwrap());
}

async fn of_a_push_and_a_build_at_the_same_moment_one_sees_the_other(sets: Sets) {
    let archive = Archive::default();
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        tasks.spawn(write(sets.clone(), archive.clone(), writer));
    }
    for reader in (1..=READERS).map(user) {
        let (sets, archive) = (sets.clone(), archive.clone());
        tasks.spawn(async move {
            // Each at another moment of the pushes.
            let begin_at = usize::try_from(reader.get()).unwrap() * 5;
            while archive.lock().unwrap().len() < begin_at {
                tokio::task::yield_now().await;
            }
            build(sets, archive, reader).await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let posts = newest_first(archive.lock().unwrap().clone());
    for reader in (1..=READERS).map(user) {
        let page = sets.homes.page(reader, None, ALL).await.unwrap().expect("a home");
        let expected: Vec<_> = posts.iter().filter(|post| page.coverage.includes(post.id)).copied().collect();
        assert_eq!(page.entries, expected, "{reader:?}, complete to {:?}", page.coverage);
        assert!(page.entries.len() >= HOME_MEMBERS_KEPT / 2 && page.entries.len() < HOME_MEMBERS_MAX);
    }
}

async fn one_of_many_builders_builds(sets: Sets) {
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let sets = sets.clone();
        tasks.spawn(async move { matches!(sets.homes.begin_build(user(1)).await.unwrap(), Build::Mine(_)) });
    }
    let mut builders = 0;
    while let Some(is_builder) = tasks.join_next().await {
        builders += usize::from(is_builder.unwrap());
    }
    assert_eq!(builders, 1);
}
