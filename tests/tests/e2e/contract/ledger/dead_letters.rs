//! Dead letters.

use proto::event::Topic;
use store::{
    Shard,
    event_log::{Lane, Received, Record},
    ledger::dead_letters::{Cause, Filter, NewLetter},
};

use super::{SHARDS, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    a_letter_is_kept_whole_and_twice_is_once,
    an_event_is_parked_only_behind_others_of_its_key,
    letters_are_driven_again_with_all_of_their_keys_and_in_order,
    a_letter_that_fails_again_stays_with_the_new_reason,
    what_follows_a_letter_that_is_under_way_goes_with_it,
    filters_mean_what_they_say,
    alike_letters_are_counted_together,
    what_the_log_refused_goes_back_to_the_outbox,
    many_letters_are_ordered_in_steps,
});

const GROUP: &str = "relay";
const LANE: Lane = Lane { topic: Topic::Posts, shard: Shard(1) };

fn event(position: i64, key: &str) -> Received {
    let record = Record {
        topic: LANE.topic,
        partition: LANE.shard,
        key: key.to_owned(),
        kind: "post.created".to_owned(),
        payload: vec![0, 255, 7].into(),
        traceparent: "trace".to_owned(),
        epoch: 3,
    };
    Received { record, position, logged_at_ms: 1_700_000_000_000 + position }
}

fn letter<'a>(event: &'a Received, cause: Cause, error: &str) -> NewLetter<'a> {
    NewLetter { group: GROUP, event, cause, error: error.to_owned(), attempts: 1, pod: "relay-7" }
}

fn key(key: &str) -> Filter {
    Filter { key: Some(key.to_owned()), ..Filter::default() }
}

impl World {
    async fn bury(&self, position: i64, key: &str) {
        self.ledger.dead_letters.bury(&letter(&event(position, key), Cause::BrokenRule, "it is bad")).await.unwrap();
    }

    async fn park(&self, position: i64, key: &str) -> bool {
        self.ledger.dead_letters.park(&letter(&event(position, key), Cause::Parked, "it waits")).await.unwrap()
    }

    async fn to_redrive(&self) -> Vec<i64> {
        let letters = self.ledger.dead_letters.to_redrive(GROUP, LANE, 100).await.unwrap();
        letters.into_iter().map(|letter| letter.event.position).collect()
    }

    async fn positions(&self, filter: &Filter) -> Vec<i64> {
        let letters = self.ledger.dead_letters.page(filter, 0, 10_000).await.unwrap();
        letters.into_iter().map(|letter| letter.event.position).collect()
    }
}

async fn a_letter_is_kept_whole_and_twice_is_once(world: World) {
    let letters = &world.ledger.dead_letters;
    for _ in 0..2 {
        letters
            .bury(&letter(&event(5, "k"), Cause::Undecodable, "it is no event: \u{0}½".replace('\0', "").as_str()))
            .await
            .unwrap();
    }
    let page = letters.page(&Filter::default(), 0, 10).await.unwrap();
    let [found] = &page[..] else { panic!("one letter, not {page:?}") };
    assert_eq!(found.event, event(5, "k"));
    assert_eq!(
        (found.group.as_str(), found.cause, found.error.as_str()),
        (GROUP, Cause::Undecodable, "it is no event: ½")
    );
    assert_eq!((found.attempts, found.pod.as_str(), found.redrive), (1, "relay-7", false));
    assert_eq!(found.release, env!("CARGO_PKG_VERSION"));
    assert_eq!(letters.parked_keys(GROUP, LANE).await.unwrap(), ["k"]);
    assert_eq!(letters.parked_keys("ranking", LANE).await.unwrap(), Vec::<String>::new());
    letters.resolve(found.id).await.unwrap();
    letters.resolve(found.id).await.unwrap();
    assert_eq!(letters.count(&Filter::default()).await.unwrap(), (0, 0));
}

async fn an_event_is_parked_only_behind_others_of_its_key(world: World) {
    assert!(!world.park(4, "k").await);
    world.bury(5, "k").await;
    assert!(world.park(6, "k").await && world.park(6, "k").await);
    assert!(!world.park(7, "j").await);
    assert_eq!(world.positions(&Filter::default()).await, [5, 6]);
}

async fn letters_are_driven_again_with_all_of_their_keys_and_in_order(world: World) {
    let letters = &world.ledger.dead_letters;
    for (position, key) in [(1, "k"), (3, "j")] {
        world.bury(position, key).await;
    }
    for (position, key) in [(2, "k"), (4, "j"), (5, "k")] {
        assert!(world.park(position, key).await);
    }
    assert_eq!(letters.lanes_to_redrive(GROUP).await.unwrap(), []);
    // A follower is named, and its whole key goes.
    let five = letters.page(&key("k"), 0, 10).await.unwrap().pop().unwrap();
    let ordered = letters.redrive(&Filter { ids: Some(vec![five.id]), ..Filter::default() }, "ada").await.unwrap();
    assert_eq!((ordered.matched, ordered.followers), (1, 2));
    assert_eq!(letters.lanes_to_redrive(GROUP).await.unwrap(), [LANE]);
    assert_eq!(world.to_redrive().await, [1, 2, 5]);
    assert_eq!(letters.count(&Filter::default()).await.unwrap(), (5, 3));
    let again = letters.redrive(&key("k"), "ada").await.unwrap();
    assert_eq!((again.matched, again.followers), (3, 0));
    assert_eq!(world.to_redrive().await, [1, 2, 5]);
    assert_eq!(letters.audit(10).await.unwrap().len(), 2);
}

async fn a_letter_that_fails_again_stays_with_the_new_reason(world: World) {
    let letters = &world.ledger.dead_letters;
    world.bury(1, "k").await;
    world.park(2, "k").await;
    world.bury(3, "j").await;
    letters.redrive(&Filter::default(), "ada").await.unwrap();
    let first = letters.to_redrive(GROUP, LANE, 1).await.unwrap().pop().unwrap();
    letters.keep(&first, Cause::UnknownType, "it is still bad", "relay-8").await.unwrap();
    assert_eq!(world.to_redrive().await, [3]);
    let kept = letters.page(&key("k"), 0, 1).await.unwrap().pop().unwrap();
    assert_eq!((kept.cause, kept.error.as_str(), kept.attempts), (Cause::UnknownType, "it is still bad", 2));
    assert_eq!(kept.pod, "relay-8");
    // A release that knows the type asks for it by itself.
    assert_eq!(letters.redrive_known(GROUP, LANE, &["post.liked"]).await.unwrap(), 0);
    assert_eq!(letters.redrive_known(GROUP, LANE, &["post.liked", "post.created"]).await.unwrap(), 2);
    assert_eq!(world.to_redrive().await, [1, 2, 3]);
}

async fn what_follows_a_letter_that_is_under_way_goes_with_it(world: World) {
    let letters = &world.ledger.dead_letters;
    world.bury(1, "k").await;
    letters.redrive(&key("k"), "ada").await.unwrap();
    assert!(world.park(2, "k").await);
    assert_eq!(world.to_redrive().await, [1, 2]);
    for letter in letters.to_redrive(GROUP, LANE, 10).await.unwrap() {
        letters.resolve(letter.id).await.unwrap();
    }
    assert!(!world.park(3, "k").await);
}

async fn filters_mean_what_they_say(world: World) {
    let letters = &world.ledger.dead_letters;
    world.bury(1, "k").await;
    letters.bury(&letter(&event(2, "j"), Cause::UnknownType, "100% of _it_")).await.unwrap();
    world.park(3, "k").await;
    let all = Filter::default;
    let now = letters.page(&all(), 0, 1).await.unwrap()[0].buried_at_ms;
    for (filter, expected) in [
        (all(), &[1, 2, 3][..]),
        (key("k"), &[1, 3]),
        (Filter { cause: Some(Cause::UnknownType), ..all() }, &[2]),
        (Filter { error: Some("0% of _".into()), ..all() }, &[2]),
        (Filter { error: Some("0_".into()), ..all() }, &[]),
        (Filter { error: Some(String::new()), ..all() }, &[1, 2, 3]),
        (Filter { kind: Some("post.liked".into()), ..all() }, &[]),
        (Filter { topic: Some(Topic::Posts), group: Some(GROUP.into()), ..all() }, &[1, 2, 3]),
        (Filter { topic: Some(Topic::Likes), ..all() }, &[]),
        (Filter { group: Some("ranking".into()), ..all() }, &[]),
        (Filter { buried_before_ms: Some(now), ..all() }, &[]),
        (Filter { buried_from_ms: Some(now), ..all() }, &[1, 2, 3]),
        (Filter { buried_from_ms: Some(now + 60_000), ..all() }, &[]),
        (Filter { ids: Some(vec![]), ..all() }, &[]),
    ] {
        assert_eq!(world.positions(&filter).await, expected, "{filter:?}");
        assert_eq!(letters.count(&filter).await.unwrap().0, expected.len() as u64, "{filter:?}");
    }
    let first = letters.page(&all(), 0, 1).await.unwrap().pop().unwrap();
    assert_eq!(letters.page(&all(), first.id, 10).await.unwrap().len(), 2);
}

async fn alike_letters_are_counted_together(world: World) {
    for position in 0..5 {
        world.bury(position, &format!("k{position}")).await;
    }
    world.park(10, "k1").await;
    world.park(11, "k2").await;
    let alike = world.ledger.dead_letters.alike(&Filter::default(), 10).await.unwrap();
    let counted: Vec<_> = alike.iter().map(|one| (one.cause.as_str(), one.letters, one.error.as_str())).collect();
    assert_eq!(counted, [("broken_rule", 5, "it is bad"), ("parked", 2, "it waits")]);
    assert!(alike.iter().all(|one| one.first_at_ms <= one.last_at_ms && one.group == GROUP));
}

async fn what_the_log_refused_goes_back_to_the_outbox(world: World) {
    let letters = &world.ledger.dead_letters;
    let mut refused = event(1, "k");
    refused.record.partition = Shard::of("k", SHARDS);
    letters.bury(&NewLetter { group: "", ..letter(&refused, Cause::Refused, "too large") }).await.unwrap();
    world.bury(2, "k").await;
    let ordered = letters.redrive(&Filter { group: Some(String::new()), ..Filter::default() }, "ada").await.unwrap();
    assert_eq!(ordered.matched, 1);
    let rows = world.rows().await;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].key.as_str(), &rows[0].payload), ("k", &refused.record.payload));
    // What a consumer put aside has nothing to do with it.
    assert_eq!(world.positions(&Filter::default()).await, [2]);
    assert_eq!(world.to_redrive().await, Vec::<i64>::new());
}

async fn many_letters_are_ordered_in_steps(world: World) {
    let letters = &world.ledger.dead_letters;
    world.bury(0, "k").await;
    for position in 1..2100 {
        assert!(world.park(position, "k").await);
    }
    let ordered = letters.redrive(&key("k"), "ada").await.unwrap();
    assert_eq!((ordered.matched, ordered.followers), (2100, 0));
    assert_eq!(letters.count(&Filter::default()).await.unwrap(), (2100, 2100));
    let discarded = letters.discard(&key("k"), "ada").await.unwrap();
    assert_eq!((discarded.matched, discarded.followers), (2100, 0));
    assert_eq!(letters.count(&Filter::default()).await.unwrap(), (0, 0));
}
