//! A post reaches a reader.

use tests::{Pods, Sandbox};

#[tokio::test(flavor = "multi_thread")]
async fn a_post_reaches_the_follower_the_open_stream_and_the_hot_list() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    let mut stream = ada.stream().await;

    let post = lin.post("hello").await;

    stream.shows_next(&post).await;
    ada.home_shows(&[&post]).await;
    lin.home_shows(&[]).await;
    assert_eq!(ada.like(&post).await, 1);
    ada.hot_posts_are(&[(&post, 3)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_is_asked_for_again_by_its_key_is_there_once() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    ada.follow(&lin).await;
    ada.follow(&max).await;
    let mut stream = ada.stream().await;

    let first = lin.posts_with_key("hello", Some("key")).await.expect("a post");
    ada.like(&first).await;
    let again = lin.posts_with_key("hello", Some("key")).await.expect("the same post");
    assert_eq!((&again.id, again.like_count), (&first.id, 1));
    stream.shows_next(&first).await;
    // A key is its author's own, and without one every call is a post.
    let other = max.posts_with_key("hello", Some("key")).await.expect("another post");
    stream.shows_next(&other).await;
    let more = lin.post("hello").await;

    stream.shows_next(&more).await;
    ada.home_shows(&[&more, &other, &first]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_pods_of_each_role_give_every_reader_every_post_once() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, bob, lin, max] = world.people(["ada", "bob", "lin", "max"]).await;
    for (reader, author) in [(&ada, &lin), (&ada, &max), (&bob, &lin)] {
        reader.follow(author).await;
    }
    let (mut adas_phone, mut adas_desk, mut bobs) = (ada.stream().await, ada.stream().await, bob.stream().await);

    let mut posts = Vec::new();
    for turn in 0..20 {
        let author = if turn % 2 == 0 { &lin } else { &max };
        posts.push(author.post(&format!("post {turn}")).await);
        adas_phone.shows_next(&posts[turn]).await;
        adas_desk.shows_next(&posts[turn]).await;
        if turn % 2 == 0 {
            bobs.shows_next(&posts[turn]).await;
        }
    }

    let newest_first: Vec<_> = posts.iter().rev().collect();
    ada.home_shows(&newest_first).await;
    bob.home_shows(&newest_first.into_iter().filter(|post| post.author_id == lin.id.to_string()).collect::<Vec<_>>())
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn following_brings_what_was_written_before() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.home_shows(&[]).await;
    let (first, second) = (lin.post("first").await, lin.post("second").await);

    ada.follow(&lin).await;
    ada.home_shows(&[&second, &first]).await;

    ada.follow(&lin).await;
    let third = lin.post("third").await;
    ada.home_shows(&[&third, &second, &first]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_can_be_scrolled_to_its_first_post() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    ada.follow(&lin).await;
    ada.home_shows(&[]).await;
    ada.follow(&max).await;
    // More than a home's set holds: it is cut several times, and the rest comes from the archive.
    let mut posts = Vec::new();
    for turn in 0..300 {
        let author = if turn % 3 == 0 { &max } else { &lin };
        posts.push(author.post(&format!("post {turn}")).await);
    }
    world.outbox_is_empty().await;

    let newest_first: Vec<_> = posts.iter().rev().collect();
    ada.home_shows(&newest_first).await;
    let ids: Vec<_> = newest_first.iter().map(|post| post.id.clone()).collect();
    for limit in [1, 7, 100, 127, 200] {
        assert_eq!(ada.scrolls_home(limit).await, ids, "by pages of {limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_posted_without_a_relay_arrives_when_one_comes_back() {
    let mut world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    ada.home_shows(&[]).await;
    let mut stream = ada.stream().await;
    let before = lin.post("before").await;
    stream.shows_next(&before).await;

    world.stop("relay").await;
    let during = lin.post("during").await;
    ada.home_shows(&[&before]).await;
    world.add_relay().await;

    stream.shows_next(&during).await;
    ada.home_shows(&[&during, &before]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn likes_are_exact_however_many_come_at_once() {
    let world = Sandbox::with(Pods::TWO).await;
    let [lin] = world.people(["lin"]).await;
    let names: [String; 12] = std::array::from_fn(|number| format!("fan_{number}"));
    let fans = world.people(names.each_ref().map(String::as_str)).await;
    let (loved, liked) = (lin.post("loved").await, lin.post("liked").await);

    let everyone_twice = fans.iter().chain(&fans).map(|fan| fan.like(&loved));
    let counts = futures_util::future::join_all(everyone_twice).await;
    fans[0].like(&liked).await;

    assert_eq!(counts.iter().max(), Some(&12));
    lin.hot_posts_are(&[(&loved, 36), (&liked, 3)]).await;
}
