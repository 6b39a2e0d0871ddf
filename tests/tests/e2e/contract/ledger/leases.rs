//! Who may publish which shard.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use store::{Shard, ledger::Lease};
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
});

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

fn epochs(leases: &[Lease]) -> Vec<i64> {
    leases.iter().map(|lease| lease.epoch).collect()
}

async fn what_nobody_holds_is_claimed_and_renewed(world: World) {
    let leases = &world.ledger.shard_leases;
    let first = leases.claim("a", LONG).await.unwrap();
    let shards: Vec<_> = first.iter().map(|lease| lease.shard).collect();
    assert_eq!(shards, (0..SHARDS).map(Shard).collect::<Vec<_>>());
    assert!(first.iter().all(|lease| lease.owner == "a"));
    assert_eq!(leases.claim("a", LONG).await.unwrap(), first, "a renewal keeps the epoch");
    assert_eq!(leases.claim("b", LONG).await.unwrap(), []);
}

async fn a_lease_that_ran_out_is_anyones_with_a_new_epoch(world: World) {
    let leases = &world.ledger.shard_leases;
    let first = leases.claim("a", SHORT).await.unwrap();
    let second = wait::until("the leases to run out", async || {
        let claimed = leases.claim("b", SHORT).await.unwrap();
        (claimed.len() == usize::from(SHARDS)).then_some(claimed)
    })
    .await;
    assert!(second.iter().zip(&first).all(|(new, old)| new.epoch == old.epoch + 1), "{first:?}, then {second:?}");
    // One that comes back to its own lease after it ran out is a new owner too: in between, it was anyone's.
    let third = wait::until("its own leases to run out", async || {
        let claimed = leases.claim("b", Duration::ZERO).await.unwrap();
        (epochs(&claimed) > epochs(&second)).then_some(claimed)
    })
    .await;
    assert_eq!(third.len(), usize::from(SHARDS));
}

async fn what_is_released_is_free_at_once(world: World) {
    let leases = &world.ledger.shard_leases;
    let first = leases.claim("a", LONG).await.unwrap();
    leases.release("b").await.unwrap();
    assert_eq!(leases.claim("b", LONG).await.unwrap(), []);
    leases.release("a").await.unwrap();
    let second = leases.claim("b", LONG).await.unwrap();
    assert!(second.iter().zip(&first).all(|(new, old)| new.epoch == old.epoch + 1 && new.shard == old.shard));
    assert_eq!(second.len(), first.len());
    assert_eq!(leases.claim("a", LONG).await.unwrap(), []);
}

async fn of_many_who_claim_at_once_each_shard_has_one_owner(world: World) {
    for round in 1..=5 {
        let owners: Vec<_> = (0..20).map(|number| format!("pod {number}")).collect();
        let claimed = join_all(owners.iter().map(|owner| world.ledger.shard_leases.claim(owner, LONG))).await;
        let claimed: Vec<_> = claimed.into_iter().flat_map(Result::unwrap).collect();
        assert_eq!(claimed.len(), usize::from(SHARDS), "{claimed:?}");
        let shards: HashSet<_> = claimed.iter().map(|lease| lease.shard).collect();
        assert_eq!(shards.len(), usize::from(SHARDS));
        assert!(claimed.iter().all(|lease| lease.epoch == round), "{claimed:?}");
        join_all(owners.iter().map(|owner| world.ledger.shard_leases.release(owner))).await;
    }
}
