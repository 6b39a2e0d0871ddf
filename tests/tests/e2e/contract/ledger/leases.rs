//! Who may publish which shard.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use store::{
    Shard,
    ledger::{Lease, Share},
};
use tests::wait;

use super::{SHARDS, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    what_nobody_holds_is_claimed_and_renewed,
    a_lease_that_ran_out_is_anyones_with_a_new_epoch,
    what_is_released_is_free_at_once,
    of_many_who_claim_at_once_each_shard_has_one_owner,
    members_divide_the_shards_and_give_up_what_is_not_theirs,
    the_overview_tells_whose_a_shard_is_and_what_waits_in_it,
});

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

fn epochs(leases: &[Lease]) -> Vec<i64> {
    leases.iter().map(|lease| lease.epoch).collect()
}

async fn what_nobody_holds_is_claimed_and_renewed(world: World) {
    let leases = &world.ledger.shard_leases;
    let first = leases.claim("a", LONG, Share::ALL).await.unwrap();
    let shards: Vec<_> = first.iter().map(|lease| lease.shard).collect();
    assert_eq!(shards, (0..SHARDS).map(Shard).collect::<Vec<_>>());
    assert!(first.iter().all(|lease| lease.owner == "a"));
    assert_eq!(leases.claim("a", LONG, Share::ALL).await.unwrap(), first, "a renewal keeps the epoch");
    assert_eq!(leases.claim("b", LONG, Share::ALL).await.unwrap(), []);
}

async fn a_lease_that_ran_out_is_anyones_with_a_new_epoch(world: World) {
    let leases = &world.ledger.shard_leases;
    let first = leases.claim("a", SHORT, Share::ALL).await.unwrap();
    let second = wait::until("the leases to run out", async || {
        let claimed = leases.claim("b", SHORT, Share::ALL).await.unwrap();
        (claimed.len() == usize::from(SHARDS)).then_some(claimed)
    })
    .await;
    assert!(second.iter().zip(&first).all(|(new, old)| new.epoch == old.epoch + 1), "{first:?}, then {second:?}");
    // One that comes back to its own lease after it ran out is a new owner too: in between, it was anyone's.
    let third = wait::until("its own leases to run out", async || {
        let claimed = leases.claim("b", Duration::ZERO, Share::ALL).await.unwrap();
        (epochs(&claimed) > epochs(&second)).then_some(claimed)
    })
    .await;
    assert_eq!(third.len(), usize::from(SHARDS));
}

async fn what_is_released_is_free_at_once(world: World) {
    let leases = &world.ledger.shard_leases;
    let first = leases.claim("a", LONG, Share::ALL).await.unwrap();
    leases.release("b").await.unwrap();
    assert_eq!(leases.claim("b", LONG, Share::ALL).await.unwrap(), []);
    leases.release("a").await.unwrap();
    let second = leases.claim("b", LONG, Share::ALL).await.unwrap();
    assert!(second.iter().zip(&first).all(|(new, old)| new.epoch == old.epoch + 1 && new.shard == old.shard));
    assert_eq!(second.len(), first.len());
    assert_eq!(leases.claim("a", LONG, Share::ALL).await.unwrap(), []);
}

async fn of_many_who_claim_at_once_each_shard_has_one_owner(world: World) {
    for round in 1..=5 {
        let owners: Vec<_> = (0..20).map(|number| format!("pod {number}")).collect();
        let claimed =
            join_all(owners.iter().map(|owner| world.ledger.shard_leases.claim(owner, LONG, Share::ALL))).await;
        let claimed: Vec<_> = claimed.into_iter().flat_map(Result::unwrap).collect();
        assert_eq!(claimed.len(), usize::from(SHARDS), "{claimed:?}");
        let shards: HashSet<_> = claimed.iter().map(|lease| lease.shard).collect();
        assert_eq!(shards.len(), usize::from(SHARDS));
        assert!(claimed.iter().all(|lease| lease.epoch == round), "{claimed:?}");
        join_all(owners.iter().map(|owner| world.ledger.shard_leases.release(owner))).await;
    }
}

async fn members_divide_the_shards_and_give_up_what_is_not_theirs(world: World) {
    let leases = &world.ledger.shard_leases;
    let members = ["a", "b"].map(str::to_owned);
    let [first, second] = members.each_ref().map(|member| Share::of_member(member, &members).expect("a member"));
    assert_eq!(leases.claim("a", LONG, Share::ALL).await.unwrap().len(), usize::from(SHARDS), "alone, it has all");
    assert_eq!(leases.claim("b", LONG, second).await.unwrap(), [], "nothing is taken from who holds it");

    let kept = leases.claim("a", LONG, first).await.unwrap();
    let taken = leases.claim("b", LONG, second).await.unwrap();
    assert!(kept.iter().all(|lease| first.includes(lease.shard) && lease.epoch == 1), "{kept:?}");
    assert!(taken.iter().all(|lease| second.includes(lease.shard) && lease.epoch == 2), "{taken:?}");
    assert_eq!(kept.len() + taken.len(), usize::from(SHARDS));
    assert!(kept.len().abs_diff(taken.len()) <= 1, "{kept:?} and {taken:?}");
}

async fn the_overview_tells_whose_a_shard_is_and_what_waits_in_it(world: World) {
    let leases = &world.ledger.shard_leases;
    let before = leases.overview().await.unwrap();
    assert_eq!(before.len(), usize::from(SHARDS));
    assert!(before.iter().all(|shard| shard.owner.is_none() && shard.backlog == 0 && shard.oldest_ms.is_none()));

    leases.claim("a", LONG, Share::ALL).await.unwrap();
    world.sign_up("ada").await.unwrap();
    let held = leases.overview().await.unwrap();
    assert!(held.iter().all(|shard| shard.owner.as_deref() == Some("a") && shard.epoch == 1 && shard.held_ms >= 0));
    let waiting: Vec<_> = held.iter().filter(|shard| shard.backlog > 0).collect();
    assert_eq!(waiting.iter().map(|shard| (shard.backlog, shard.oldest_ms.is_some())).collect::<Vec<_>>(), [(1, true)]);

    leases.release("a").await.unwrap();
    assert!(leases.overview().await.unwrap().iter().all(|shard| shard.owner.is_none()));
}
