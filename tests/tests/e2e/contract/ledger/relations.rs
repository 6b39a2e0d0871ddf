//! What people are to each other: follow, block, mute, ask; the lists and the numbers.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use proto::UserId;
use store::{
    Error,
    ledger::{Counters, List, Place, Relationship, Wish},
    sets::{AuthorState, Special},
};
use tests::wait;

use super::{FOLLOWEES_MAX, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    an_ended_follow_keeps_its_version_and_a_new_one_is_higher,
    counters_are_exact_whoever_follows_and_unfollows_at_once,
    nobody_follows_more_than_the_limit_however_many_try_at_once,
    two_who_follow_each_other_at_once_do_not_wait_in_a_circle,
    a_block_ends_follows_both_ways_and_forbids_new_ones,
    of_a_follow_and_a_block_at_once_no_follow_is_left,
    a_mute_ends_by_itself_and_another_end_is_a_change,
    a_private_account_is_asked,
    a_request_ends_in_one_way_only,
    public_again_requests_stay_open,
    lists_go_newest_first_and_stay_in_place_while_they_change,
    who_is_hidden_is_told_of_one_moment,
    a_remote_author_is_one_account_and_followed_like_anyone,
});

async fn counters(world: &World, user: UserId) -> Counters {
    world.ledger.relations.counters(&[user]).await.unwrap()[0]
}

async fn relationship(world: &World, person: UserId, other: UserId) -> Relationship {
    world.ledger.relations.relationships(person, &[other]).await.unwrap()[0]
}

async fn listed(world: &World, list: List, owner: UserId) -> Vec<UserId> {
    let listed = world.ledger.relations.list(list, owner, None, 100).await.unwrap();
    listed.iter().map(|listed| listed.place.user).collect()
}

/// The numbers are those of the rows.
async fn is_counted(world: &World, user: UserId) {
    let Counters { followers, following, .. } = counters(world, user).await;
    let rows = [listed(world, List::Followers, user).await, listed(world, List::Following, user).await];
    let [of_followers, of_following] = rows.map(|rows| i64::try_from(rows.len()).unwrap());
    assert_eq!((followers, following), (of_followers, of_following), "of {user}");
}

async fn an_ended_follow_keeps_its_version_and_a_new_one_is_higher(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let nothing = world.unfollow(ada, lin).await.unwrap();
    assert_eq!((nothing.version, nothing.changed), (None, false));
    world.follow(ada, lin).await.unwrap();
    let ended = world.unfollow(ada, lin).await.unwrap();
    assert!(ended.changed && ended.version.is_some());
    let again = world.unfollow(ada, lin).await.unwrap();
    assert_eq!((again.version, again.changed), (ended.version, false), "whoever asks again learns the version");
    assert!(world.follow(ada, lin).await.unwrap());
    let edge = world.ledger.graph.edges(&[store::ledger::Pair { from: ada, to: lin }]).await.unwrap()[0];
    assert!(edge.active && Some(edge.version) > ended.version, "{edge:?} after {ended:?}");
}

async fn counters_are_exact_whoever_follows_and_unfollows_at_once(world: World) {
    let people = world.people(5).await;
    let turn = async |number: usize| {
        let (one, other) = (people[number % 5], people[(number / 5 + 1 + number) % 5]);
        if one != other && number.is_multiple_of(3) {
            world.unfollow(one, other).await.unwrap();
        } else if one != other {
            world.follow(one, other).await.unwrap();
        }
    };
    join_all((0..200).map(turn)).await;
    for user in &people {
        is_counted(&world, *user).await;
    }
    world.post(people[0], "hello").await.unwrap();
    assert_eq!(counters(&world, people[0]).await.posts, 1);
}

async fn nobody_follows_more_than_the_limit_however_many_try_at_once(world: World) {
    let people = world.people(FOLLOWEES_MAX as usize + 4).await;
    let (ada, others) = people.split_first().unwrap();
    let all = join_all(others.iter().map(|other| world.follow(*ada, *other))).await;
    let (made, refused): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), refused.len()), (FOLLOWEES_MAX as usize, 3));
    assert!(refused.iter().all(|one| matches!(one, Err(Error::FolloweesFull { max: FOLLOWEES_MAX }))), "{refused:?}");
    assert_eq!(world.events("graph.followed").await.len(), FOLLOWEES_MAX as usize, "what is refused writes nothing");
    is_counted(&world, *ada).await;
    let first = listed(&world, List::Following, *ada).await[0];
    assert!(!world.follow(*ada, first).await.unwrap(), "who is followed already is no one too many");
    world.unfollow(*ada, first).await.unwrap();
    assert!(world.follow(*ada, first).await.unwrap());
}

async fn two_who_follow_each_other_at_once_do_not_wait_in_a_circle(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    for _ in 0..20 {
        let (one, other) = tokio::join!(world.follow(ada, lin), world.follow(lin, ada));
        assert!(one.unwrap() && other.unwrap());
        let (one, other) = tokio::join!(world.unfollow(ada, lin), world.unfollow(lin, ada));
        assert!(one.unwrap().changed && other.unwrap().changed);
    }
    assert_eq!(counters(&world, ada).await.followers, 0);
}

async fn a_block_ends_follows_both_ways_and_forbids_new_ones(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    world.follow(ada, lin).await.unwrap();
    world.follow(lin, ada).await.unwrap();
    let block = world.block(ada, lin).await.unwrap();
    assert!(block.changed && block.ended.iter().all(Option::is_some), "{block:?}");
    let again = world.block(ada, lin).await.unwrap();
    assert_eq!((again.version, again.ended, again.changed), (block.version, block.ended, false));
    for (one, other) in [(ada, lin), (lin, ada)] {
        assert!(matches!(world.follow(one, other).await, Err(Error::Blocked)));
        assert_eq!((counters(&world, one).await.followers, counters(&world, one).await.following), (0, 0));
    }
    let seen = relationship(&world, ada, lin).await;
    assert!(seen.blocking && !seen.blocked_by && !seen.following && !seen.followed_by, "{seen:?}");
    assert!(relationship(&world, lin, ada).await.blocked_by);
    assert_eq!(listed(&world, List::Blocks, ada).await, [lin]);

    let ended = world.unblock(ada, lin).await.unwrap();
    assert!(ended.changed && ended.version > Some(block.version), "{ended:?}");
    assert_eq!(listed(&world, List::Following, ada).await, [], "what it ended stays ended");
    assert!(world.follow(lin, ada).await.unwrap());
}

async fn of_a_follow_and_a_block_at_once_no_follow_is_left(world: World) {
    for _ in 0..20 {
        let [ada, lin] = world.people(2).await[..] else { unreachable!() };
        let (followed, unfollowed, blocked) =
            tokio::join!(world.follow(ada, lin), world.unfollow(ada, lin), world.block(lin, ada));
        assert!(matches!(followed, Ok(_) | Err(Error::Blocked)), "{followed:?}");
        assert!(unfollowed.is_ok() && blocked.unwrap().changed);
        assert_eq!(listed(&world, List::Followers, lin).await, []);
        is_counted(&world, ada).await;
        is_counted(&world, lin).await;
    }
}

async fn a_mute_ends_by_itself_and_another_end_is_a_change(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let soon = chassis::Clock::unix_ms(&chassis::clock::System) + 1500;
    let muted = world.mute(ada, lin, Some(soon)).await.unwrap();
    let seen = relationship(&world, ada, lin).await;
    assert_eq!((seen.muting, seen.muted_until_ms), (true, Some(soon)));
    assert_eq!(listed(&world, List::Mutes, ada).await, [lin]);
    wait::until("the mute's end", async || (!relationship(&world, ada, lin).await.muting).then_some(())).await;
    assert_eq!(listed(&world, List::Mutes, ada).await, []);
    assert!(world.ledger.relations.hidden(ada).await.unwrap().is_empty());

    let for_good = world.mute(ada, lin, None).await.unwrap();
    assert!(for_good.changed && for_good.version > muted.version);
    assert!(relationship(&world, ada, lin).await.muting && !relationship(&world, lin, ada).await.muting);
    let ended = world.unmute(ada, lin).await.unwrap();
    assert!(ended.changed && ended.version > for_good.version);
    assert_eq!(world.unmute(ada, lin).await.unwrap().version, ended.version);
}

async fn a_private_account_is_asked(world: World) {
    let [ada, lin, max] = world.people(3).await[..] else { unreachable!() };
    world.follow(max, lin).await.unwrap();
    assert!(world.set_private(lin, true).await.unwrap());
    assert!(world.follow(ada, lin).await.unwrap());
    assert!(!world.follow(ada, lin).await.unwrap());
    assert!(!world.follow(max, lin).await.unwrap(), "who follows already stays");
    assert_eq!(listed(&world, List::FollowRequests, lin).await, [ada]);
    assert_eq!(listed(&world, List::Followers, lin).await, [max]);
    let seen = relationship(&world, ada, lin).await;
    assert!(seen.requested && seen.private && !seen.following && relationship(&world, lin, ada).await.requested_by);
    assert!(matches!(world.accept(lin, ada).await, Err(Error::NoRequest)), "the other way there is none");

    let accepted = world.accept(ada, lin).await.unwrap();
    assert_eq!((accepted.wish, accepted.changed), (Wish::Follows, true));
    assert_eq!(listed(&world, List::Followers, lin).await, [ada, max]);
    assert_eq!(listed(&world, List::FollowRequests, lin).await, []);
    assert_eq!(counters(&world, lin).await.followers, 2);
}

async fn a_request_ends_in_one_way_only(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    world.set_private(lin, true).await.unwrap();
    for _ in 0..20 {
        world.follow(ada, lin).await.unwrap();
        let (accepted, rejected, taken_back) =
            tokio::join!(world.accept(ada, lin), world.reject(ada, lin), world.unfollow(ada, lin));
        let (is_accepted, is_rejected) = (accepted.is_ok(), rejected.unwrap());
        let is_taken_back = taken_back.unwrap().changed;
        // What was accepted can be unfollowed after it; nothing else can come twice.
        assert!(!(is_accepted && is_rejected), "accepted and rejected");
        assert!(is_accepted || is_rejected || is_taken_back);
        assert_eq!(listed(&world, List::FollowRequests, lin).await, []);
        is_counted(&world, lin).await;
        world.unfollow(ada, lin).await.unwrap();
    }
    world.follow(ada, lin).await.unwrap();
    world.block(lin, ada).await.unwrap();
    assert_eq!(listed(&world, List::FollowRequests, lin).await, [], "a block ends requests too");
}

async fn public_again_requests_stay_open(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    world.set_private(lin, true).await.unwrap();
    world.follow(ada, lin).await.unwrap();
    world.set_private(lin, false).await.unwrap();
    assert_eq!(listed(&world, List::Followers, lin).await, []);
    assert_eq!(listed(&world, List::FollowRequests, lin).await, [ada]);
    assert!(world.follow(ada, lin).await.unwrap(), "who asked can follow now");
    assert_eq!(listed(&world, List::FollowRequests, lin).await, []);
    assert_eq!(world.events("graph.follow_withdrawn").await.len(), 1);
}

async fn lists_go_newest_first_and_stay_in_place_while_they_change(world: World) {
    let people = world.people(12).await;
    let (lin, followers) = people.split_first().unwrap();
    for follower in &followers[..9] {
        world.follow(*follower, *lin).await.unwrap();
    }
    let page = async |below: Option<Place>| {
        let listed = world.ledger.relations.list(List::Followers, *lin, below, 3).await.unwrap();
        listed.into_iter().map(|listed| listed.place).collect::<Vec<_>>()
    };
    let users = |places: &[Place]| places.iter().map(|place| place.user).collect::<Vec<_>>();
    let first = page(None).await;
    assert_eq!(users(&first), [followers[8], followers[7], followers[6]]);
    // One comes, one who was shown goes, one who was not goes, one comes back.
    world.follow(followers[9], *lin).await.unwrap();
    world.unfollow(followers[7], *lin).await.unwrap();
    world.unfollow(followers[4], *lin).await.unwrap();
    world.unfollow(followers[8], *lin).await.unwrap();
    world.follow(followers[8], *lin).await.unwrap();
    let second = page(first.last().copied()).await;
    assert_eq!(users(&second), [followers[5], followers[3], followers[2]]);
    let third = page(second.last().copied()).await;
    assert_eq!(users(&third), [followers[1], followers[0]]);
    assert_eq!(users(&page(None).await), [followers[8], followers[9], followers[6]]);
    for list in List::ALL {
        assert_eq!(world.ledger.relations.list(list, followers[10], None, 3).await.unwrap(), [], "{list:?}");
    }
}

async fn who_is_hidden_is_told_of_one_moment(world: World) {
    let [ada, lin, max, eve, bob] = world.people(5).await[..] else { unreachable!() };
    world.follow(ada, lin).await.unwrap();
    world.unfollow(ada, lin).await.unwrap();
    world.follow(ada, bob).await.unwrap();
    world.block(ada, max).await.unwrap();
    world.block(eve, ada).await.unwrap();
    world.mute(ada, bob, None).await.unwrap();
    let hidden = world.ledger.relations.hidden(ada).await.unwrap();
    let told: BTreeSet<_> = hidden.iter().map(|state| (state.author, state.special)).collect();
    let expected =
        [(lin, Special::Unfollowed), (max, Special::Blocked), (eve, Special::BlockedBy), (bob, Special::Muted)];
    assert_eq!(told, expected.into_iter().collect());
    assert!(hidden.iter().all(|state| state.until_ms == AuthorState::FOR_GOOD && state.version > 0), "{hidden:?}");
    assert_eq!(world.ledger.relations.hidden(bob).await.unwrap(), []);
}

async fn a_remote_author_is_one_account_and_followed_like_anyone(world: World) {
    let ada = world.people(1).await[0];
    let all = join_all((0..8).map(|_| world.upsert_remote("1", "eve@far.example", "Eve"))).await;
    let ids: BTreeSet<_> = all.into_iter().map(|account| account.unwrap().id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(world.events("user.remote_upserted").await.len(), 1);
    let eve = *ids.first().unwrap();
    assert!(world.follow(ada, eve).await.unwrap());
    assert_eq!(counters(&world, eve).await.followers, 1);
    let other = world.upsert_remote("2", "eve@far.example", "Eve").await;
    assert!(matches!(other, Err(Error::HandleTaken)), "{other:?}");
}
