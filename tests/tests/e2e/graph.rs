//! What people are to each other, as they see it: who is hidden is hidden at the next read, and what ends leaves no hole.

mod lists;
mod model;

use chassis::{Clock as _, clock, token::Caller};
use futures_util::future::join_all;
use proto::freshet::{post::v1::Post, timeline::v1::GetHomeTimelineRequest};
use store::{
    ledger::{List, Pair},
    sets::{Build, Entry, Push},
};
use tests::{Person, Pods, Sandbox, wait};

/// What the reader's very next page has, at each pod: nobody waits for anything.
async fn next_reads_show(world: &Sandbox, reader: &Person, posts: &[&Post]) {
    let expected: Vec<_> = posts.iter().map(|post| post.id.as_str()).collect();
    for _ in world.timelines() {
        let request = GetHomeTimelineRequest { reader_id: reader.id.to_string(), limit: Some(200), max_id: None };
        let page = world.timeline(Caller::User(reader.id)).get_home_timeline(request).await.expect("a page");
        let shown: Vec<_> = page.entries.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(shown, expected, "of {}", reader.handle);
    }
}

/// Pushes a post as a fan-out does that read the followers long ago.
async fn push_late(world: &Sandbox, reader: &Person, post: &Post) {
    let id: proto::PostId = post.id.parse().unwrap();
    let entry = Entry { id: id.into(), author: post.author_id.parse().unwrap() };
    let push = Push { reader: reader.id, entries: vec![entry] };
    world.stores().sets.homes.push(&[push], clock::System.unix_ms() + 60_000).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn after_unfollow_block_and_mute_the_next_read_hides_the_author_at_every_pod() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin, max, eve] = world.people(["ada", "lin", "max", "eve"]).await;
    for author in [&lin, &max, &eve] {
        ada.follow(author).await;
    }
    eve.follow(&ada).await;
    let posts = [lin.post("one").await, max.post("two").await, eve.post("three").await, ada.post("four").await];
    let [of_lin, of_max, of_eve, of_ada] = &posts;
    ada.home_shows(&[of_eve, of_max, of_lin]).await;
    eve.home_shows(&[of_ada]).await;

    ada.unfollow(&lin).await;
    next_reads_show(&world, &ada, &[of_eve, of_max]).await;
    ada.mute(&max).await;
    next_reads_show(&world, &ada, &[of_eve]).await;
    eve.block(&ada).await;
    next_reads_show(&world, &eve, &[]).await;
    next_reads_show(&world, &ada, &[]).await;

    // Pushes that were under way change nothing; a mute that ends shows all that it hid; a block that ends does not.
    push_late(&world, &ada, of_lin).await;
    push_late(&world, &ada, of_eve).await;
    next_reads_show(&world, &ada, &[]).await;
    let during = max.post("meanwhile").await;
    world.outbox_is_empty().await;
    next_reads_show(&world, &ada, &[]).await;
    ada.unmute(&max).await;
    ada.home_shows(&[&during, of_max]).await;
    eve.unblock(&ada).await;
    next_reads_show(&world, &ada, &[&during, of_max]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mute_that_ends_by_itself_leaves_no_hole() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    ada.follow(&lin).await;
    ada.follow(&max).await;
    let before = lin.post("before").await;
    ada.home_shows(&[&before]).await;
    let until = clock::System.unix_ms() + 3000;
    ada.tries_to_mute(&lin.id.to_string(), Some(until)).await.expect("a mute");
    next_reads_show(&world, &ada, &[]).await;
    let (during, other) = (lin.post("during").await, max.post("other").await);
    if clock::System.unix_ms() < until - 500 {
        let page = ada.scrolls_home(200).await;
        assert!(page.iter().all(|id| *id == other.id), "{page:?}");
    }
    ada.home_shows(&[&other, &during, &before]).await;
    assert!(clock::System.unix_ms() >= until, "shown before the mute's end");
    assert!(!ada.relation_to(&lin).await.muting);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_followed_again_is_shown_whole() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    let first = lin.post("first").await;
    ada.home_shows(&[&first]).await;
    ada.unfollow(&lin).await;
    let second = lin.post("second").await;
    world.outbox_is_empty().await;
    next_reads_show(&world, &ada, &[]).await;
    ada.follow(&lin).await;
    ada.home_shows(&[&second, &first]).await;
    let third = lin.post("third").await;
    ada.home_shows(&[&third, &second, &first]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_come_from_the_archive_hide_the_same() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    ada.follow(&lin).await;
    ada.follow(&max).await;
    ada.home_shows(&[]).await;
    // Far more than a set holds.
    let mut posts = Vec::new();
    for turn in 0..200 {
        let author = if turn % 2 == 0 { &lin } else { &max };
        posts.push(author.post(&format!("post {turn}")).await);
    }
    let all: Vec<_> = posts.iter().rev().collect();
    ada.home_shows(&all).await;
    ada.mute(&lin).await;
    let of_max: Vec<_> = posts.iter().rev().filter(|post| post.author_id == max.id.to_string()).collect();
    let ids: Vec<_> = of_max.iter().map(|post| post.id.clone()).collect();
    for limit in [1, 7, 200] {
        assert_eq!(ada.scrolls_home(limit).await, ids, "by pages of {limit}");
    }
    ada.unmute(&lin).await;
    assert_eq!(ada.scrolls_home(50).await.len(), 200, "the mute left no hole");

    // Another pod builds the home: the page comes from the archive alone.
    let [bob] = world.people(["bob"]).await;
    bob.follow(&lin).await;
    bob.follow(&max).await;
    bob.mute(&lin).await;
    let build = world.stores().sets.homes.begin_build(bob.id).await.unwrap();
    assert!(matches!(build, Build::Mine(_)), "{build:?}");
    assert_eq!(bob.scrolls_home(200).await, ids);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_is_built_after_the_end_of_a_follow_hides_late_pushes() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    let post = lin.post("hello").await;
    world.outbox_is_empty().await;
    ada.unfollow(&lin).await;
    next_reads_show(&world, &ada, &[]).await;
    push_late(&world, &ada, &post).await;
    next_reads_show(&world, &ada, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_who_follow_and_unfollow_at_once_leave_one_state_everywhere() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let post = lin.post("hello").await;
    ada.home_shows(&[]).await;
    let turn = async |number: usize| match number % 2 {
        0 => ada.follow(&lin).await,
        _ => ada.unfollow(&lin).await,
    };
    join_all((0..50).map(turn)).await;

    let stores = world.stores();
    let pair = Pair { from: ada.id, to: lin.id };
    let edge = stores.ledger.graph.edges(&[pair]).await.unwrap()[0];
    let counters = stores.ledger.relations.counters(&[ada.id, lin.id]).await.unwrap();
    for counters in counters {
        let own = if counters.user == ada.id { counters.following } else { counters.followers };
        assert_eq!(own, i64::from(edge.active), "{counters:?}");
    }
    assert_eq!(ada.relation_to(&lin).await.following, edge.active);
    wait::until("the archive to say the same", async || {
        let followers = stores.archive.follows.followers(&[lin.id], None, 10).await.unwrap();
        (followers.len() == usize::from(edge.active)).then_some(())
    })
    .await;
    match edge.active {
        true => ada.home_shows(&[&post]).await,
        false => next_reads_show(&world, &ada, &[]).await,
    }
    ada.follow(&lin).await;
    ada.home_shows(&[&post]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_account_lets_in_whom_its_owner_accepts() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    lin.set_private(true).await;
    ada.follow(&lin).await;
    max.follow(&lin).await;
    let post = lin.post("for friends").await;
    assert!(ada.relation_to(&lin).await.requested && !ada.relation_to(&lin).await.following);
    assert_eq!(lin.tries_to_list_requests(None, None).await.unwrap().0, [max.id, ada.id]);
    lin.tries_to_reject(&max.id.to_string()).await.expect("a rejection");
    lin.tries_to_accept(&ada.id.to_string()).await.expect("a follow");
    ada.home_shows(&[&post]).await;
    max.home_shows(&[]).await;
    assert_eq!(world.stores().ledger.relations.list(List::Followers, lin.id, None, 9).await.unwrap().len(), 1);
}
