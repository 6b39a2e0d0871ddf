//! Authors with many followers: their posts are pushed to nobody and merged at read. On the way there and back, under load,
//! nothing is lost and nothing is shown twice.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, Ordering},
};

use proto::{PostId, UserId, freshet::post::v1::Post};
use store::{
    archive::ArchivedPost,
    ledger::Mode,
    sets::{AuthorState, HomeTimelines},
};
use tests::{Person, Pods, Sandbox, wait};

/// So many make a celebrity here; with two fewer one is none any more.
const CELEBRITY: (&str, &str) = ("people.celebrity_followers", "4");
/// A test is long enough with so many.
const POSTS_MAX: usize = 300;

async fn is_in(world: &Sandbox, author: &Person, mode: Mode) {
    wait::until(&format!("{} to be in the mode {mode:?}", author.handle), async || {
        let modes = world.stores().ledger.modes.modes(&[author.id]).await.unwrap();
        modes.iter().any(|found| found.mode == mode).then_some(())
    })
    .await;
}

/// Waits until pages come from the archive. Before it is filled they come from the ledger, which has a post from its commit on:
/// a post that is seen there may be on its way to the archive still.
async fn archive_is_read(world: &Sandbox) {
    let archive = &world.stores().archive;
    if archive.filling.is_none() {
        return;
    }
    let nobody = UserId::new(1).unwrap();
    let only_there =
        ArchivedPost { id: PostId::new(1).unwrap(), author: nobody, text: String::new(), created_at_ms: 0 };
    archive.posts_by_author.add(&[(only_there, 1)]).await.unwrap();
    wait::until("the archive to be read", async || {
        let page = archive.posts_by_author.page(nobody, None, 1).await.unwrap();
        (!page.is_empty()).then_some(())
    })
    .await;
}

/// Reads on and on, by small pages: whatever was shown once is shown in every later scroll, in order and once.
async fn keeps_reading(reader: &Person, done: &AtomicBool) {
    let mut seen: HashSet<String> = HashSet::new();
    while !done.load(Ordering::Relaxed) {
        let scroll = reader.scrolls_home(17).await;
        let ids: Vec<i64> = scroll.iter().map(|id| id.parse().unwrap()).collect();
        assert!(ids.is_sorted_by(|newer, older| newer > older), "{} sees {ids:?}", reader.handle);
        let shown: HashSet<_> = scroll.into_iter().collect();
        let lost: Vec<_> = seen.difference(&shown).collect();
        assert!(lost.is_empty(), "{} has seen {lost:?} before", reader.handle);
        seen = shown;
    }
}

fn newest_first(posts: &mut [Post]) -> Vec<&Post> {
    posts.sort_by_key(|post| std::cmp::Reverse(post.id.parse::<i64>().unwrap()));
    posts.iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_doubled_while_an_author_crosses_both_ways_under_load() {
    let world = Sandbox::with_settings(Pods::TWO, &[CELEBRITY]).await;
    let [star, other, ada, lin, max, eve] = world.people(["star", "other", "ada", "lin", "max", "eve"]).await;
    for reader in [&ada, &lin] {
        reader.follow(&star).await;
        reader.follow(&other).await;
    }
    archive_is_read(&world).await;
    let done = AtomicBool::new(false);
    let write = async {
        let mut posts = Vec::new();
        while !done.load(Ordering::Relaxed) {
            if posts.len() < POSTS_MAX {
                posts.push(star.post(&format!("post {}", posts.len())).await);
                posts.push(other.post(&format!("post {}", posts.len())).await);
            }
            tokio::task::yield_now().await;
        }
        posts
    };
    let cross = async {
        for _ in 0..3 {
            max.follow(&star).await;
            eve.follow(&star).await;
            is_in(&world, &star, Mode::Pull).await;
            star.post("while it is merged").await;
            max.unfollow(&star).await;
            eve.unfollow(&star).await;
            is_in(&world, &star, Mode::Push).await;
        }
        done.store(true, Ordering::Relaxed);
    };
    let (mut posts, (), (), ()) = tokio::join!(write, keeps_reading(&ada, &done), keeps_reading(&lin, &done), cross);

    // Those that were written between the crossings too.
    let mut sql = world.sql().await;
    let all = sql.texts("SELECT CAST(id AS TEXT) FROM posts ORDER BY id DESC").await;
    assert_eq!(all.len(), posts.len() + 3);
    assert!(newest_first(&mut posts).iter().all(|post| all.contains(&post.id)));
    let pulled = sql.texts("SELECT CAST(id AS TEXT) FROM posts WHERE fan_out = 2").await;
    assert!(!pulled.is_empty(), "some were merged only");
    for reader in [&ada, &lin] {
        for limit in [9, 200] {
            wait::until(&format!("{} to see all posts by pages of {limit}", reader.handle), async || {
                (reader.scrolls_home(limit).await == all).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn posts_of_a_celebrity_are_in_no_set_and_on_every_page_and_stream() {
    let world = Sandbox::with_settings(Pods::ONE, &[CELEBRITY]).await;
    let [star, other, ada, lin, max, eve, zoe] =
        world.people(["star", "other", "ada", "lin", "max", "eve", "zoe"]).await;
    let before = star.post("before").await;
    for reader in [&ada, &lin, &max, &eve] {
        reader.follow(&star).await;
    }
    for reader in [&ada, &lin] {
        reader.follow(&other).await;
    }
    ada.home_shows(&[&before]).await;
    is_in(&world, &star, Mode::Pull).await;
    let mut stream = ada.stream().await;
    let merged = star.post("merged").await;
    // What was written before may still be on its way when the stream opens.
    let mut shown = stream.next().await.expect("an event");
    if shown.data["id"] == before.id {
        shown = stream.next().await.expect("an event");
    }
    assert_eq!(shown.data["id"], merged.id);
    let pushed = other.post("pushed").await;
    stream.shows_next(&pushed).await;
    ada.home_shows(&[&pushed, &merged, &before]).await;
    let set = HomeTimelines::page(&*world.stores().sets.homes, ada.id, None, 99).await.unwrap().expect("a home");
    assert!(set.entries.iter().all(|entry| entry.id.to_string() != merged.id), "{set:?}");

    // A home that is built now, one that is there when its reader follows, and a mute.
    lin.home_shows(&[&pushed, &merged, &before]).await;
    zoe.home_shows(&[]).await;
    zoe.follow(&star).await;
    zoe.home_shows(&[&merged, &before]).await;
    zoe.mute(&star).await;
    assert_eq!(zoe.scrolls_home(1).await, Vec::<String>::new());
    zoe.unmute(&star).await;
    zoe.unfollow(&star).await;
    assert_eq!(zoe.scrolls_home(1).await, Vec::<String>::new());

    // Fallen, the same is in the sets, and soon read from them alone.
    max.unfollow(&star).await;
    eve.unfollow(&star).await;
    is_in(&world, &star, Mode::Push).await;
    ada.home_shows(&[&pushed, &merged, &before]).await;
    let set = world.stores().sets.homes.page(ada.id, None, 99).await.unwrap().expect("a home");
    assert_eq!(set.entries.len(), 3, "{set:?}");
    assert!(set.authors.iter().all(|state| state.until_ms < AuthorState::FOR_GOOD), "{set:?}");
    zoe.follow(&star).await;
    zoe.home_shows(&[&merged, &before]).await;
}
