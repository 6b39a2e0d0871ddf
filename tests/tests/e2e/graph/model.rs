//! Random deeds of a few people, against a plain model of what should come of them.

use std::collections::{BTreeMap, BTreeSet};

use chassis::{Error, Reason};
use proptest::{
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use tests::{Person, Sandbox};
use tokio::runtime::Handle;

const PEOPLE: usize = 4;
const FOLLOWEES_MAX: usize = 2;

/// What one does to another.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Follow,
    Unfollow,
    Block,
    Unblock,
    Mute,
    Unmute,
    Accept,
    Reject,
    GoPrivate,
    GoPublic,
}

/// Who is what to whom; the number tells what came first.
#[derive(Debug, Default)]
struct Model {
    turn: usize,
    follows: BTreeMap<(usize, usize), usize>,
    requests: BTreeMap<(usize, usize), usize>,
    blocks: BTreeMap<(usize, usize), usize>,
    mutes: BTreeMap<(usize, usize), usize>,
    private: BTreeSet<usize>,
}

impl Model {
    fn full(&self, one: usize) -> bool {
        self.follows.keys().filter(|(follower, _)| *follower == one).count() >= FOLLOWEES_MAX
    }

    /// What a deed answers when it is refused.
    fn does(&mut self, deed: Deed, one: usize, other: usize) -> Option<Reason> {
        self.turn += 1;
        let (pair, back, turn) = ((one, other), (other, one), self.turn);
        match deed {
            Deed::Follow if self.follows.contains_key(&pair) => {}
            Deed::Follow if self.blocks.contains_key(&pair) || self.blocks.contains_key(&back) => {
                return Some(Reason::Blocked);
            }
            Deed::Follow if self.private.contains(&other) => _ = self.requests.entry(pair).or_insert(turn),
            Deed::Follow if self.full(one) => return Some(Reason::FolloweesFull),
            Deed::Follow => {
                self.requests.remove(&pair);
                self.follows.insert(pair, turn);
            }
            Deed::Unfollow => {
                self.follows.remove(&pair);
                self.requests.remove(&pair);
            }
            Deed::Block if self.blocks.contains_key(&pair) => {}
            Deed::Block => {
                self.blocks.insert(pair, turn);
                for pair in [pair, back] {
                    self.follows.remove(&pair);
                    self.requests.remove(&pair);
                }
            }
            Deed::Unblock => _ = self.blocks.remove(&pair),
            Deed::Mute => _ = self.mutes.entry(pair).or_insert(turn),
            Deed::Unmute => _ = self.mutes.remove(&pair),
            Deed::Accept if !self.requests.contains_key(&back) => {
                return (!self.follows.contains_key(&back)).then_some(Reason::FollowRequestNotFound);
            }
            Deed::Accept if self.full(other) => return Some(Reason::FolloweesFull),
            Deed::Accept => {
                self.requests.remove(&back);
                self.follows.insert(back, turn);
            }
            Deed::Reject => _ = self.requests.remove(&back),
            Deed::GoPrivate => _ = self.private.insert(one),
            Deed::GoPublic => _ = self.private.remove(&one),
        }
        None
    }
}

async fn act(deed: Deed, one: &Person, other: &Person) -> Result<(), Error> {
    let id = other.id.to_string();
    match deed {
        Deed::Follow => one.tries_to_follow(&id).await,
        Deed::Unfollow => one.tries_to_unfollow(&id).await,
        Deed::Block => one.tries_to_block(&id).await,
        Deed::Unblock => one.tries_to_unblock(&id).await,
        Deed::Mute => one.tries_to_mute(&id, None).await,
        Deed::Unmute => one.tries_to_unmute(&id).await,
        Deed::Accept => one.tries_to_accept(&id).await,
        Deed::Reject => one.tries_to_reject(&id).await,
        Deed::GoPrivate => {
            one.set_private(true).await;
            Ok(())
        }
        Deed::GoPublic => {
            one.set_private(false).await;
            Ok(())
        }
    }
}

fn deeds() -> impl Strategy<Value = Vec<(Deed, usize, usize)>> {
    use Deed::{Accept, Block, Follow, GoPrivate, GoPublic, Mute, Reject, Unblock, Unfollow, Unmute};
    let deed = prop_oneof![
        6 => Just(Follow), 3 => Just(Unfollow), 2 => Just(Block), 2 => Just(Unblock), 1 => Just(Mute), 1 => Just(Unmute),
        2 => Just(Accept), 1 => Just(Reject), 1 => Just(GoPrivate), 1 => Just(GoPublic),
    ];
    let apart = (0..PEOPLE, 1..PEOPLE).prop_map(|(one, step)| (one, (one + step) % PEOPLE));
    prop::collection::vec((deed, apart).prop_map(|(deed, (one, other))| (deed, one, other)), 1..40)
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_few_people_do_comes_out_as_in_a_plain_model() {
    let world = Sandbox::with_settings(tests::Pods::ONE, &[("people.followees_max", "2")]).await;
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let mut number = 0;
    let number = std::cell::RefCell::new(&mut number);
    tokio::task::block_in_place(|| {
        runner.run(&deeds(), |deeds| {
            **number.borrow_mut() += 1;
            let case = **number.borrow();
            Handle::current().block_on(plays_out(&world, case, &deeds))
        })
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
}

async fn plays_out(world: &Sandbox, case: usize, deeds: &[(Deed, usize, usize)]) -> Result<(), TestCaseError> {
    let names: [String; PEOPLE] = std::array::from_fn(|number| format!("case_{case}_{number}"));
    let people = world.people(names.each_ref().map(String::as_str)).await;
    let mut model = Model::default();
    for (deed, one, other) in deeds {
        let refused = act(*deed, &people[*one], &people[*other]).await.err().map(|error| error.reason());
        prop_assert_eq!(refused, model.does(*deed, *one, *other), "{:?} by {} to {}", deed, one, other);
    }
    for (number, person) in people.iter().enumerate() {
        is_as_in(&model, world, &people, number, person).await?;
    }
    Ok(())
}

async fn is_as_in(
    model: &Model,
    world: &Sandbox,
    people: &[Person; PEOPLE],
    number: usize,
    person: &Person,
) -> Result<(), TestCaseError> {
    let newest_first = |pairs: &BTreeMap<(usize, usize), usize>, forward: bool| {
        let of = |((from, to), turn): (&(usize, usize), &usize)| match forward {
            true => (*from == number).then_some((*turn, people[*to].id)),
            false => (*to == number).then_some((*turn, people[*from].id)),
        };
        let mut found: Vec<_> = pairs.iter().filter_map(of).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, user)| user).collect::<Vec<_>>()
    };
    let id = person.id.to_string();
    let following = person.tries_to_list_following(&id, None, None).await.unwrap().0;
    let followers = person.tries_to_list_followers(&id, None, None).await.unwrap().0;
    prop_assert_eq!(&following, &newest_first(&model.follows, true));
    prop_assert_eq!(&followers, &newest_first(&model.follows, false));
    prop_assert_eq!(person.tries_to_list_blocks(None, None).await.unwrap().0, newest_first(&model.blocks, true));
    prop_assert_eq!(person.tries_to_list_mutes(None, None).await.unwrap().0, newest_first(&model.mutes, true));
    prop_assert_eq!(person.tries_to_list_requests(None, None).await.unwrap().0, newest_first(&model.requests, false));
    let counters = world.stores().ledger.relations.counters(&[person.id]).await.unwrap()[0];
    let counted = (counters.following as usize, counters.followers as usize, counters.private);
    prop_assert_eq!(counted, (following.len(), followers.len(), model.private.contains(&number)));
    for (other, seen) in people.iter().enumerate().filter(|(other, _)| *other != number) {
        let relation = person.relation_to(seen).await;
        let is = |pairs: &BTreeMap<(usize, usize), usize>, pair| pairs.contains_key(&pair);
        let (pair, back) = ((number, other), (other, number));
        let expected =
            [is(&model.follows, pair), is(&model.follows, back), is(&model.requests, pair), is(&model.requests, back)];
        prop_assert_eq!(
            [relation.following, relation.followed_by, relation.requested, relation.requested_by],
            expected
        );
        prop_assert_eq!([relation.blocking, relation.muting], [is(&model.blocks, pair), is(&model.mutes, pair)]);
    }
    Ok(())
}
