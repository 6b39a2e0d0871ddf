//! Bad input of PostService, field by field: empty, at the limit, past it.

use chassis::{Error, Reason, token::Caller};
use proto::freshet::post::v1::{
    BatchGetLikedRequest, BatchGetPostsRequest, CreatePostRequest, ListLikersRequest, ListPostsByAuthorRequest,
    ListRevisionsRequest, UpdatePostRequest, Visibility,
};
use tests::{Pods, Sandbox};

#[track_caller]
fn names<T: std::fmt::Debug>(answer: Result<T, Error>, field: &str, rule: &str) {
    let error = answer.expect_err("refused");
    assert_eq!(error.reason(), Reason::InvalidArgument, "{error}");
    let found = error.violations().iter().any(|violation| violation.field == field && violation.rule.contains(rule));
    assert!(found, "{field} {rule}: {error}");
}

fn text(text: &str) -> CreatePostRequest {
    CreatePostRequest { text: text.into(), ..CreatePostRequest::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_a_new_post_has_its_rule() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    names(ada.writes(text("bell \u{7}")).await, "text", "U+0007");
    for (title, rule) in
        [("", "1 to 200"), ("two\nlines", "U+000A"), (&"x".repeat(201), "at most 200 characters, and has 201")]
    {
        names(ada.writes(CreatePostRequest { title: Some(title.into()), ..text("x") }).await, "title", rule);
    }
    for language in ["", "english", "en_US", &"e".repeat(36)] {
        names(
            ada.writes(CreatePostRequest { language: Some(language.into()), ..text("x") }).await,
            "language",
            "BCP 47",
        );
    }
    names(
        ada.writes(CreatePostRequest { visibility: 9, ..text("x") }).await,
        "visibility",
        "public, followers or only me",
    );
    for (quote, rule) in [("x", "is not an id"), ("1", "a post that the author may see")] {
        names(ada.writes(CreatePostRequest { quote_of: Some(quote.into()), ..text("x") }).await, "quote_of", rule);
    }
    let attach = |ids: &[&str]| CreatePostRequest {
        attachment_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        ..text("x")
    };
    names(ada.writes(attach(&["1", "2", "3", "4", "5"])).await, "attachment_ids", "at most 4, and are 5");
    names(ada.writes(attach(&["1", "1"])).await, "attachment_ids", "once");
    names(ada.writes(attach(&["x"])).await, "attachment_ids", "is not an id");
    names(ada.writes(attach(&["7"])).await, "attachment_ids", "of the author's own");
    let uploaded = format!("INSERT INTO attachments VALUES (7, {}, 'ready', 0), (8, {}, 'ready', 0)", lin.id, ada.id);
    world.sql().await.run(&uploaded).await;
    names(ada.writes(attach(&["8", "7"])).await, "attachment_ids", "of the author's own");
    assert_eq!(ada.writes(attach(&["8"])).await.unwrap().attachment_ids, ["8"]);
    let longest = CreatePostRequest { title: Some("x".repeat(200)), language: Some("zh-Hant-TW".into()), ..text("x") };
    ada.writes(longest).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_for_every_field_and_comes_by_field_or_by_metadata() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let keyed = |request: CreatePostRequest| CreatePostRequest { idempotency_key: Some("key".into()), ..request };
    let first = ada.writes(keyed(text("hello"))).await.unwrap();
    assert_eq!(ada.writes(keyed(text("hello"))).await.unwrap(), first);
    let others = [
        text("other"),
        CreatePostRequest { title: Some("t".into()), ..text("hello") },
        CreatePostRequest { language: Some("en".into()), ..text("hello") },
        CreatePostRequest { sensitive: true, ..text("hello") },
        CreatePostRequest { visibility: Visibility::Followers.into(), ..text("hello") },
        CreatePostRequest { quote_of: Some(first.id.clone()), ..text("hello") },
        CreatePostRequest { attachment_ids: vec!["8".into()], ..text("hello") },
    ];
    for other in others {
        let refused = ada.writes(keyed(other)).await.unwrap_err();
        assert_eq!(refused.reason(), Reason::IdempotencyKeyTaken);
    }
    let own = world.timeline(Caller::User(ada.id));
    let with = async |field: Option<&str>, metadata: &str| {
        let request = CreatePostRequest {
            author_id: ada.id.to_string(),
            idempotency_key: field.map(str::to_owned),
            ..text("hello")
        };
        own.create_post_with(request, "idempotency-key", metadata).await
    };
    assert_eq!(with(None, "key").await.unwrap().post.unwrap().id, first.id);
    assert_eq!(with(Some("key"), "key").await.unwrap().post.unwrap().id, first.id);
    names(with(Some("key"), "another").await, "idempotency_key", "the same as the metadata");
    names(with(None, "two words").await, "idempotency-key", "1 to 64");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_a_text_is_configured() {
    let world = Sandbox::with_settings(Pods::ONE, &[("posts.text_characters_max", "5")]).await;
    let [ada] = world.people(["ada"]).await;
    names(ada.tries_to_post("123456").await, "text", "at most 5 characters, and has 6");
    let post = ada.post("12345").await;
    names(ada.edits(&post, "123456").await, "text", "at most 5 characters, and has 6");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_an_edit_and_of_a_list_has_its_rule() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let post = ada.post("hello").await;
    let nothing = UpdatePostRequest::default;
    names(ada.updates(&post, &[], nothing()).await, "update_mask", "text, title, language");
    names(ada.updates(&post, &["likes"], nothing()).await, "update_mask", "no other fields");
    names(ada.updates(&post, &["text"], nothing()).await, "text", "1 to 300");
    names(
        ada.updates(&post, &["attachment_ids"], UpdatePostRequest { attachment_ids: vec!["7".into()], ..nothing() })
            .await,
        "attachment_ids",
        "own",
    );
    let unread = proto::freshet::post::v1::Post { version: 0, ..post.clone() };
    names(ada.edits(&unread, "x").await, "version", "positive");
    let followers = UpdatePostRequest { visibility: Visibility::Followers.into(), ..nothing() };
    let narrowed = ada.updates(&post, &["visibility"], followers).await.unwrap();
    names(ada.updates(&narrowed, &["visibility"], nothing()).await, "visibility", "narrowed");

    let own = world.timeline(Caller::User(ada.id));
    let ids = |count: usize| vec![post.id.clone(); count];
    for count in [0, 201] {
        let rule = format!("1 to 200, and are {count}");
        let batch = BatchGetPostsRequest { post_ids: ids(count), viewer_id: None };
        names(own.batch_get_posts(batch).await, "post_ids", &rule);
        let liked = BatchGetLikedRequest { user_id: ada.id.to_string(), post_ids: ids(count) };
        names(own.batch_get_liked(liked).await, "post_ids", &rule);
    }
    assert_eq!(ada.reads_all(&vec![post.id.as_str(); 200]).await.unwrap().0.len(), 200, "each as often as asked for");
    for limit in [0, 201] {
        let by_author =
            ListPostsByAuthorRequest { author_id: ada.id.to_string(), limit: Some(limit), ..Default::default() };
        names(own.list_posts_by_author(by_author).await, "limit", "1 to 200");
    }
    for cursor in ["", "x", "00000000000000FF"] {
        let revisions =
            ListRevisionsRequest { post_id: post.id.clone(), cursor: Some(cursor.into()), ..Default::default() };
        names(own.list_revisions(revisions).await, "cursor", "no cursor");
        let likers = ListLikersRequest { post_id: post.id.clone(), cursor: Some(cursor.into()), ..Default::default() };
        names(own.list_likers(likers).await, "cursor", "no cursor");
    }
    let nobodys = ListPostsByAuthorRequest { author_id: "1".into(), ..Default::default() };
    assert_eq!(own.list_posts_by_author(nobodys).await.unwrap_err().reason(), Reason::UserNotFound);
}
