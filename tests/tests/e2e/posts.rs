//! Posts as people see them: who may see which, edits, deletions, likes that come and go.

mod input;

use chassis::{Clock as _, Reason, clock, token::Caller};
use proto::freshet::{
    post::v1::{CreatePostRequest, GetPostRequest, Post, UpdatePostRequest, Visibility, entity::What},
    timeline::v1::GetHomeTimelineRequest,
};
use store::{
    archive::Scope,
    sets::{Entry, Push},
};
use tests::{Person, Pods, Sandbox, wait};

fn entry(post: &Post) -> Entry {
    let id: proto::PostId = post.id.parse().unwrap();
    Entry { id: id.into(), author: post.author_id.parse().unwrap() }
}

/// What every read shows a person of an author's posts: one by one, many at once, the author's list, the home. At each pod,
/// now: nobody waits for anything.
async fn every_read_shows(world: &Sandbox, viewer: &Person, author: &Person, all: &[&Post], expected: &[&Post]) {
    let ids = |posts: &[&Post]| posts.iter().map(|post| post.id.clone()).collect::<Vec<_>>();
    let newest_first: Vec<_> = ids(expected).into_iter().rev().collect();
    for _ in world.timelines() {
        let mut one_by_one = Vec::new();
        for post in all {
            match viewer.reads(&post.id).await {
                Ok(found) => one_by_one.push(found.id),
                Err(error) => assert_eq!(error.reason(), Reason::PostNotFound),
            }
        }
        assert_eq!(one_by_one, ids(expected), "one by one, by {}", viewer.handle);
        let (at_once, missing) =
            viewer.reads_all(&all.iter().map(|post| post.id.as_str()).collect::<Vec<_>>()).await.unwrap();
        assert_eq!(at_once.iter().map(|post| post.id.clone()).collect::<Vec<_>>(), ids(expected));
        assert_eq!(missing.len(), all.len() - expected.len());
        assert_eq!(viewer.scrolls_posts_of(author, 1).await, newest_first, "the list, by {}", viewer.handle);
    }
}

async fn next_homes_show(world: &Sandbox, reader: &Person, posts: &[&Post]) {
    let expected: Vec<_> = posts.iter().map(|post| post.id.as_str()).collect();
    for _ in world.timelines() {
        let request = GetHomeTimelineRequest { reader_id: reader.id.to_string(), limit: Some(200), max_id: None };
        let page = world.timeline(Caller::User(reader.id)).get_home_timeline(request).await.expect("a page");
        assert_eq!(page.entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_shown_with_all_that_its_author_said() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    lin.follow(&ada).await;
    let mut stream = lin.stream().await;
    let request = CreatePostRequest {
        text: "Cafe\u{301} with @Lin_ #Größe\r\nhttps://example.com/x.".into(),
        title: Some(" A title ".into()),
        language: Some("PT-br".into()),
        sensitive: true,
        ..CreatePostRequest::default()
    };
    let post = ada.writes(request).await.unwrap();
    assert_eq!(post.text, "Café with @Lin_ #Größe\nhttps://example.com/x.");
    assert_eq!(
        (post.title.as_deref(), post.language.as_deref(), post.sensitive),
        (Some("A title"), Some("pt-BR"), true)
    );
    assert_eq!((post.visibility(), post.edited_at.is_none()), (Visibility::Public, true));
    let found: Vec<_> =
        post.entities.iter().map(|entity| (entity.start, entity.end, entity.what.clone().unwrap())).collect();
    let expected = [
        (10, 15, What::Handle("lin_".into())),
        (16, 22, What::Tag("größe".into())),
        (23, 44, What::Url("https://example.com/x".into())),
    ];
    assert_eq!(found, expected);
    let shown = stream.next().await.expect("an event");
    assert_eq!(
        (shown.name.as_str(), &shown.data["title"], &shown.data["sensitive"]),
        ("new_post", &"A title".into(), &true.into())
    );
    lin.home_shows(&[&post]).await;
    assert_eq!(lin.reads(&post.id).await.unwrap(), post);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_a_post_is_not_for_sees_it_nowhere() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    lin.follow(&ada).await;
    let (mut to_lin, mut to_max) = (lin.stream().await, max.stream().await);
    let only_me = ada.post_for(Visibility::OnlyMe, "a diary").await;
    let followers = ada.post_for(Visibility::Followers, "for friends").await;
    let public = ada.post("for all").await;
    let all = [&only_me, &followers, &public];

    to_lin.shows_next(&followers).await;
    to_lin.shows_next(&public).await;
    lin.home_shows(&[&public, &followers]).await;
    every_read_shows(&world, &ada, &ada, &all, &all).await;
    every_read_shows(&world, &lin, &ada, &all, &all[1..]).await;
    every_read_shows(&world, &max, &ada, &all, &all[2..]).await;
    // Who begins to follow gets what is for followers; a hot list shows what is for all.
    max.follow(&ada).await;
    max.home_shows(&[&public, &followers]).await;
    for (post, score) in [(&followers, 1), (&public, 1)] {
        assert_eq!(lin.like(post).await, score);
    }
    max.hot_posts_are(&[(&public, 3)]).await;
    assert_eq!(lin.tries_to_like(&only_me.id).await.unwrap_err().reason(), Reason::PostNotFound);
    // Nor is it in the list of all public posts.
    let listed = world.stores().archive.public_posts.page(Scope::Global, None, 10).await.unwrap();
    assert_eq!(listed.posts.iter().map(|post| post.id.to_string()).collect::<Vec<_>>(), [public.id.as_str()]);
    // A late push brings nothing that is not for the reader.
    let push = Push { reader: lin.id, entries: vec![entry(&only_me)] };
    world.stores().sets.homes.push(&[push], clock::System.unix_ms() + 60_000).await.unwrap();
    next_homes_show(&world, &lin, &[&public, &followers]).await;
    let last = ada.post("the next").await;
    to_max.shows_next(&last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_account_is_for_its_followers_at_once_and_back_at_once() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    lin.follow(&ada).await;
    let post = ada.post("hello").await;
    assert_eq!(max.like(&post).await, 1);
    max.hot_posts_are(&[(&post, 3)]).await;
    ada.set_private(true).await;
    every_read_shows(&world, &max, &ada, &[&post], &[]).await;
    every_read_shows(&world, &lin, &ada, &[&post], &[&post]).await;
    max.hot_posts_are(&[]).await;
    lin.home_shows(&[&post]).await;
    ada.set_private(false).await;
    every_read_shows(&world, &max, &ada, &[&post], &[&post]).await;
    max.hot_posts_are(&[(&post, 3)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_looks_with_the_eyes_that_it_names_and_a_person_with_their_own() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    lin.follow(&ada).await;
    let post = ada.post_for(Visibility::Followers, "for friends").await;
    let service = world.timeline(Caller::Service("tests".into()));
    let look = |viewer: Option<&Person>| GetPostRequest {
        post_id: post.id.clone(),
        viewer_id: viewer.map(|viewer| viewer.id.to_string()),
    };
    assert_eq!(service.get_post(look(None)).await.unwrap_err().reason(), Reason::PostNotFound);
    service.get_post(look(Some(&lin))).await.unwrap();
    let own = world.timeline(Caller::User(lin.id));
    own.get_post(look(Some(&lin))).await.unwrap();
    assert_eq!(own.get_post(look(Some(&ada))).await.unwrap_err().reason(), Reason::NotAllowed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_shows_what_the_viewer_may_see_of_it() {
    let world = Sandbox::start().await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    lin.follow(&ada).await;
    let quoted = ada.post_for(Visibility::Followers, "for friends").await;
    let quote = |post: &Post| CreatePostRequest {
        text: "look".into(),
        quote_of: Some(post.id.clone()),
        ..CreatePostRequest::default()
    };
    let refused = max.writes(quote(&quoted)).await.unwrap_err();
    assert_eq!((refused.reason(), refused.violations()[0].field.as_str()), (Reason::InvalidArgument, "quote_of"));
    let post = lin.writes(quote(&quoted)).await.unwrap();
    let shown = |post: Post| post.quote.map(|quote| (quote.post.map(|post| post.text), quote.unavailable)).unwrap();
    assert_eq!(shown(post.clone()), (Some("for friends".into()), false));
    assert_eq!(shown(max.reads(&post.id).await.unwrap()), (None, true));
    ada.deletes(&quoted.id).await.unwrap();
    assert_eq!(shown(lin.reads(&post.id).await.unwrap()), (None, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_post_is_gone_from_the_next_read_on_at_every_pod() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    lin.follow(&ada).await;
    let mut stream = lin.stream().await;
    let posts = [ada.post("one").await, ada.post("two").await, ada.post("three").await];
    let [one, two, three] = &posts;
    lin.home_shows(&[three, two, one]).await;
    lin.like(two).await;
    lin.hot_posts_are(&[(two, 3)]).await;

    assert_eq!(lin.deletes(&two.id).await.unwrap_err().reason(), Reason::PostNotFound, "it is not lin's");
    ada.deletes(&two.id).await.unwrap();
    next_homes_show(&world, &lin, &[three, one]).await;
    every_read_shows(&world, &lin, &ada, &[one, two, three], &[one, three]).await;
    every_read_shows(&world, &ada, &ada, &[one, two, three], &[one, three]).await;
    lin.hot_posts_are(&[]).await;
    ada.deletes(&two.id).await.expect("asked again, it is as gone");
    assert_eq!(ada.edits(two, "back").await.unwrap_err().reason(), Reason::PostNotFound);
    assert_eq!(world.stores().ledger.relations.counters(&[ada.id]).await.unwrap()[0].posts, 2);

    for post in [one, two, three] {
        stream.shows_next(post).await;
    }
    let told = stream.next().await.expect("an event");
    assert_eq!((told.name.as_str(), &told.data["post_id"]), ("deleted_post", &two.id.as_str().into()));
    // The relay has taken it out of everything that is made of events.
    wait::until("the archive to forget it", async || {
        let page = world.stores().archive.posts_by_author.page(ada.id, None, 10).await.unwrap();
        (page.len() == 2).then_some(())
    })
    .await;
    wait::until("the home and the recents to forget it", async || {
        let home = world.stores().sets.homes.page(lin.id, None, 10).await.unwrap()?.entries;
        let recent = world.stores().sets.recents.newest(ada.id, 10).await.unwrap();
        (!home.contains(&entry(two)) && !recent.contains(&entry(two))).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_push_of_a_deleted_post_is_not_shown_and_does_not_stay() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    lin.follow(&ada).await;
    let mut posts = Vec::new();
    for number in 0..6 {
        posts.push(ada.post(&format!("post {number}")).await);
    }
    posts.reverse();
    lin.home_shows(&posts.iter().collect::<Vec<_>>()).await;
    for gone in &posts[1..4] {
        ada.deletes(&gone.id).await.unwrap();
    }
    world.outbox_is_empty().await;
    wait::until("the relay to take them out", async || {
        let home = world.stores().sets.homes.page(lin.id, None, 10).await.unwrap()?.entries;
        (home.len() == 3).then_some(())
    })
    .await;
    let push = Push { reader: lin.id, entries: posts[1..4].iter().map(entry).collect() };
    world.stores().sets.homes.push(&[push], clock::System.unix_ms() + 60_000).await.unwrap();
    // A page is full although half of what was read for it is gone; and what is gone leaves the set with it.
    let (page, next) = lin.tries_to_read(Some(2), None).await.unwrap();
    assert_eq!(page.iter().map(|entry| &entry.id).collect::<Vec<_>>(), [&posts[0].id, &posts[4].id]);
    let (rest, end) = lin.tries_to_read(Some(2), next).await.unwrap();
    assert_eq!((rest[0].id.as_str(), rest.len(), end), (posts[5].id.as_str(), 1, None));
    assert_eq!(world.stores().sets.homes.page(lin.id, None, 10).await.unwrap().unwrap().entries.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_seen_at_once_told_and_remembered() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    lin.follow(&ada).await;
    let mut stream = lin.stream().await;
    let first = ada.post("first").await;
    stream.shows_next(&first).await;
    let second = ada.edits(&first, "second").await.unwrap();
    assert!(second.version > first.version && second.edited_at.is_some());
    for _ in world.timelines() {
        assert_eq!(max.reads(&first.id).await.unwrap(), second);
    }
    assert_eq!(ada.edits(&first, "third").await.unwrap_err().reason(), Reason::VersionMismatch);
    let third = ada.edits(&second, "third").await.unwrap();
    assert_eq!(max.reads_history_of(&first).await.unwrap(), ["second", "first"]);
    for text in ["second", "third"] {
        let told = stream.next().await.expect("an event");
        assert_eq!(
            (told.name.as_str(), &told.data["text"], &told.data["id"]),
            ("updated_post", &text.into(), &first.id.as_str().into())
        );
    }
    wait::until("the archive to say what the post says", async || {
        let page = world.stores().archive.posts_by_author.page(ada.id, None, 1).await.unwrap();
        (page[0].text == "third").then_some(())
    })
    .await;
    // Narrowed to the author alone, it is gone for everybody else; its history too.
    let request = UpdatePostRequest { visibility: Visibility::OnlyMe.into(), ..UpdatePostRequest::default() };
    ada.updates(&third, &["visibility"], request).await.unwrap();
    next_homes_show(&world, &lin, &[]).await;
    every_read_shows(&world, &lin, &ada, &[&first], &[]).await;
    assert_eq!(max.reads_history_of(&first).await.unwrap_err().reason(), Reason::PostNotFound);
    assert_eq!(stream.next().await.expect("an event").name, "deleted_post");
}

#[tokio::test(flavor = "multi_thread")]
async fn likes_come_and_go_and_are_told_to_those_who_may_know() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin, max, eve] = world.people(["ada", "lin", "max", "eve"]).await;
    let (post, other) = (ada.post("hello").await, ada.post("another").await);
    for (number, person) in [&lin, &max, &eve].into_iter().enumerate() {
        assert_eq!(person.like(&post).await, i64::try_from(number).unwrap() + 1);
    }
    ada.hot_posts_are(&[(&post, 9)]).await;
    assert_eq!((lin.unlike(&post).await, lin.unlike(&post).await), (2, 2));
    ada.hot_posts_are(&[(&post, 6)]).await;
    assert_eq!(ada.reads_likers_of(&post).await.unwrap(), [eve.id.to_string(), max.id.to_string()]);
    ada.mute(&eve).await;
    assert_eq!(ada.reads_likers_of(&post).await.unwrap(), [max.id.to_string()]);
    assert_eq!(max.likes_of(&[&other, &post]).await, [post.id.as_str()]);
    assert_eq!(lin.likes_of(&[&other, &post]).await, Vec::<String>::new());
    ada.set_private(true).await;
    assert_eq!(max.reads_likers_of(&post).await.unwrap_err().reason(), Reason::PostNotFound);
    assert_eq!(max.likes_of(&[&post]).await, Vec::<String>::new());
}
