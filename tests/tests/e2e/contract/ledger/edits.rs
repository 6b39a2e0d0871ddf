//! Edits, deletions, and likes that come and go.

use futures_util::future::{join, join_all};
use proto::{AttachmentId, PostId, UserId, freshet::event::v1::envelope::Payload};
use store::{
    Entity, Error,
    ledger::{Content, NewPost, PostChange, PostKey, Viewer, Visibility},
};
use tests::sql::Sql;

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    all_that_a_post_says_is_kept,
    an_edit_needs_the_version_that_was_read,
    of_many_edits_at_once_one_is_made,
    visibility_is_only_narrowed,
    history_is_read_from_the_latest_to_the_first,
    a_deletion_is_final_and_leaves_no_words,
    edit_against_delete_against_like,
    an_attachment_must_be_ones_own_and_ready,
    a_key_stands_for_all_that_was_said_and_outlives_an_edit,
    likes_and_unlikes_at_once_are_counted_exactly,
    likers_are_listed_the_latest_first,
});

fn says(text: &str) -> PostChange {
    PostChange { text: Some(text.to_owned()), ..PostChange::default() }
}

/// Gives someone an attachment, as an upload will.
async fn upload(world: &World, owner: UserId, state: &str) -> AttachmentId {
    let id: AttachmentId = world.id();
    let row = format!("INSERT INTO attachments VALUES ({id}, {owner}, '{state}', 0)");
    Sql::connect(&world.url).await.run(&row).await;
    id
}

async fn all_that_a_post_says_is_kept(world: World) {
    let ada = world.people(1).await[0];
    let quoted = world.post(ada, "first").await.unwrap().id;
    let attachments = vec![upload(&world, ada, "ready").await, upload(&world, ada, "ready").await];
    let content = Content {
        text: "hello".into(),
        title: Some("A title".into()),
        language: Some("pt-BR".into()),
        sensitive: true,
        attachments,
    };
    let new = NewPost {
        content: content.clone(),
        visibility: Visibility::Followers,
        quote_of: Some(quoted),
        ..NewPost::of_text(world.id(), ada, "")
    };
    let post = world.write(new).await.unwrap();
    assert_eq!((&post.content, post.visibility, post.quote_of), (&content, Visibility::Followers, Some(quoted)));
    assert_eq!((post.edited_at_ms, post.version > 0), (None, true));
    assert_eq!(world.ledger.posts.batch(Viewer::Person(ada), &[post.id]).await.unwrap(), [post]);
}

async fn an_edit_needs_the_version_that_was_read(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let first = world.post(ada, "first").await.unwrap();
    let second = world.edit(&first, says("second")).await.unwrap();
    assert!(second.version > first.version && second.edited_at_ms.is_some());
    assert_eq!((second.content.text.as_str(), second.created_at_ms), ("second", first.created_at_ms));
    let refused = world.edit(&first, says("third")).await.unwrap_err();
    assert!(matches!(refused, Error::VersionMismatch { now } if now == second.version), "{refused}");
    // Whoever missed the answer asks again with the old version, and gets it.
    assert_eq!(world.edit(&first, says("second")).await.unwrap(), second);
    assert_eq!(world.events("post.updated").await.len(), 1);
    let not_hers = store::ledger::Post { author: lin, ..second.clone() };
    let refused = world.edit(&not_hers, says("mine")).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(Entity::Post)), "{refused}");
}

async fn of_many_edits_at_once_one_is_made(world: World) {
    let ada = world.people(1).await[0];
    let post = world.post(ada, "first").await.unwrap();
    let texts: Vec<_> = (0..16).map(|number| format!("edit {number}")).collect();
    let all = join_all(texts.iter().map(|text| world.edit(&post, says(text)))).await;
    assert_eq!(all.iter().filter(|edit| edit.is_ok()).count(), 1, "{all:?}");
    assert_eq!(world.events("post.updated").await.len(), 1);
}

async fn visibility_is_only_narrowed(world: World) {
    let ada = world.people(1).await[0];
    let narrowed = |visibility| PostChange { visibility: Some(visibility), ..PostChange::default() };
    let post = world.post(ada, "hello").await.unwrap();
    let post = world.edit(&post, narrowed(Visibility::Followers)).await.unwrap();
    assert_eq!(world.sees(Viewer::Stranger, &[post.id]).await, []);
    let refused = world.edit(&post, narrowed(Visibility::Public)).await.unwrap_err();
    assert!(matches!(refused, Error::Widened), "{refused}");
    let post = world.edit(&post, narrowed(Visibility::OnlyMe)).await.unwrap();
    world.edit(&post, narrowed(Visibility::Followers)).await.expect_err("wider");
}

async fn history_is_read_from_the_latest_to_the_first(world: World) {
    let ada = world.people(1).await[0];
    let mut post = world.post(ada, "0").await.unwrap();
    let mut expected = Vec::new();
    for number in 1..=5 {
        expected.insert(0, (post.version, (number - 1).to_string()));
        post = world.edit(&post, says(&number.to_string())).await.unwrap();
    }
    let (mut found, mut below) = (Vec::new(), None);
    loop {
        let page = world.ledger.posts.revisions(post.id, below, 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        below = Some(last.version);
        found.extend(page.into_iter().map(|revision| (revision.version, revision.content.text)));
    }
    assert_eq!(found, expected);
}

async fn a_deletion_is_final_and_leaves_no_words(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let post = world.post(ada, "a secret").await.unwrap();
    let post = world.edit(&post, says("another secret")).await.unwrap();
    world.post(ada, "stays").await.unwrap();
    let refused = world.delete_post(lin, post.id).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(Entity::Post)), "not lin's: {refused}");
    let deleted = world.delete_post(ada, post.id).await.unwrap();
    assert!(deleted.changed && deleted.version > post.version);
    let again = world.delete_post(ada, post.id).await.unwrap();
    assert_eq!((again.version, again.changed), (deleted.version, false));
    assert_eq!(world.events("post.deleted").await.len(), 1);
    assert_eq!(world.ledger.relations.counters(&[ada]).await.unwrap()[0].posts, 1);
    assert_eq!(world.ledger.posts.revisions(post.id, None, 10).await.unwrap(), []);
    for refused in [world.like(lin, post.id).await, world.unlike(lin, post.id).await] {
        assert!(matches!(refused, Err(Error::NotFound(Entity::Post))), "{refused:?}");
    }
    world.edit(&post, says("back")).await.expect_err("deleted");
    let left = "SELECT text FROM posts WHERE text LIKE '%secret%' UNION ALL SELECT text FROM post_revisions";
    assert_eq!(Sql::connect(&world.url).await.texts(left).await, Vec::<String>::new());
}

async fn edit_against_delete_against_like(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    for _ in 0..8 {
        let post = world.post(ada, "hello").await.unwrap();
        let change = says("edited");
        let (deleted, (edited, liked)) =
            join(world.delete_post(ada, post.id), join(world.edit(&post, change), world.like(lin, post.id))).await;
        let deleted = deleted.unwrap();
        // Whatever was made was made before it.
        assert!(edited.is_err() || edited.unwrap().version < deleted.version);
        assert!(matches!(liked, Ok(_) | Err(Error::NotFound(Entity::Post))), "{liked:?}");
        assert_eq!(world.sees(Viewer::Person(ada), &[post.id]).await, []);
        let kinds = ["post.created", "post.updated", "post.deleted"];
        let mut told = Vec::new();
        for kind in kinds {
            told.extend(world.events(kind).await);
        }
        let newest =
            told.iter().filter(|event| is_about(event.payload.as_ref(), post.id)).max_by_key(|event| event.version);
        assert_eq!(newest.map(|event| event.r#type.as_str()), Some("post.deleted"));
    }
}

fn is_about(payload: Option<&Payload>, post: PostId) -> bool {
    let id = match payload {
        Some(Payload::PostCreated(event)) => &event.post_id,
        Some(Payload::PostUpdated(event)) => &event.post.as_ref().expect("a post").post_id,
        Some(Payload::PostDeleted(event)) => &event.post_id,
        other => panic!("{other:?}"),
    };
    *id == post.to_string()
}

async fn an_attachment_must_be_ones_own_and_ready(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let (own, others) = (upload(&world, ada, "ready").await, upload(&world, lin, "ready").await);
    let pending = upload(&world, ada, "uploading").await;
    let with = |attachments| Content { attachments, ..Content::of_text("look") };
    for refused in [vec![others], vec![own, pending], vec![AttachmentId::new(1).unwrap()]] {
        let new = NewPost { content: with(refused.clone()), ..NewPost::of_text(world.id(), ada, "") };
        let error = world.write(new).await.unwrap_err();
        assert!(matches!(error, Error::AttachmentNotFound), "{error}");
        let post = world.post(ada, "hello").await.unwrap();
        let change = PostChange { attachments: Some(refused), ..PostChange::default() };
        let error = world.edit(&post, change).await.unwrap_err();
        assert!(matches!(error, Error::AttachmentNotFound), "{error}");
    }
    world.write(NewPost { content: with(vec![own]), ..NewPost::of_text(world.id(), ada, "") }).await.unwrap();
}

async fn a_key_stands_for_all_that_was_said_and_outlives_an_edit(world: World) {
    let ada = world.people(1).await[0];
    let keyed = |fingerprint: u8| NewPost {
        key: Some(PostKey { key: "key".into(), fingerprint: vec![fingerprint] }),
        ..NewPost::of_text(world.id(), ada, "hello")
    };
    let first = world.write(keyed(1)).await.unwrap();
    let edited = world.edit(&first, says("edited")).await.unwrap();
    assert_eq!(world.write(keyed(1)).await.unwrap(), edited, "the post as it is now");
    let refused = world.write(keyed(2)).await.unwrap_err();
    assert!(matches!(refused, Error::KeyTaken), "{refused}");
    world.delete_post(ada, first.id).await.unwrap();
    let refused = world.write(keyed(1)).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound(Entity::Post)), "it was written, and is gone: {refused}");
    assert_eq!(world.events("post.created").await.len(), 1);
}

async fn likes_and_unlikes_at_once_are_counted_exactly(world: World) {
    let people = world.people(50).await;
    let post = world.post(people[0], "hello").await.unwrap().id;
    // 500 by 50 people, each in another rhythm, 25 at a time.
    for round in 0..20 {
        let some = (0..25).map(|number| {
            let (world, user) = (&world, people[(round * 7 + number) % people.len()]);
            async move {
                match (round + number) % 3 {
                    0 => world.unlike(user, post).await,
                    _ => world.like(user, post).await,
                }
            }
        });
        let all = join_all(some).await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
    }
    let likes = world.ledger.posts.batch(Viewer::Stranger, &[post]).await.unwrap()[0].likes;
    let rows = Sql::connect(&world.url).await.texts("SELECT CAST(liker AS TEXT) FROM likes WHERE active").await.len();
    let mut events = world.events("post.liked").await;
    events.extend(world.events("post.unliked").await);
    events.sort_by_key(|event| event.version);
    let mut count = 0;
    for event in &events {
        let (by, told) = match &event.payload {
            Some(Payload::Liked(liked)) => (1, liked.like_count),
            Some(Payload::Unliked(unliked)) => (-1, unliked.like_count),
            other => panic!("{other:?}"),
        };
        count += by;
        assert_eq!(told, count, "each tells of the number after it");
    }
    assert_eq!((likes.count, likes.version), (count, events.last().unwrap().version));
    assert_eq!(i64::try_from(rows).unwrap(), count);
}

async fn likers_are_listed_the_latest_first(world: World) {
    let people = world.people(5).await;
    let post = world.post(people[0], "hello").await.unwrap().id;
    let other = world.post(people[0], "another").await.unwrap().id;
    for user in &people {
        world.like(*user, post).await.unwrap();
    }
    world.unlike(people[1], post).await.unwrap();
    // Liked again is liked anew.
    world.unlike(people[0], post).await.unwrap();
    world.like(people[0], post).await.unwrap();
    let posts = &world.ledger.posts;
    let first = posts.likers(post, None, 2).await.unwrap();
    let rest = posts.likers(post, first.last().copied(), 10).await.unwrap();
    let found: Vec<_> = first.iter().chain(&rest).map(|place| place.user).collect();
    assert_eq!(found, [0, 4, 3, 2].map(|number: usize| people[number]));
    assert_eq!(posts.liked(people[2], &[other, post]).await.unwrap(), [post]);
    assert_eq!(posts.liked(people[1], &[other, post]).await.unwrap(), []);
}
