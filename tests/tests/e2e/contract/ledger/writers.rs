//! The numbers under which ids are minted.

use std::{collections::HashSet, sync::Arc, time::Duration};

use chassis::{Clock as _, Pod, clock, drain::drain};
use futures_util::future::join_all;
use store::ledger::{WriterLease, WriterTerms};
use tests::wait;

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    of_many_claims_at_once_no_two_get_a_number,
    a_renewal_raises_the_ceiling,
    a_lost_number_is_not_renewed,
    the_next_owner_begins_where_the_last_one_stopped,
    a_number_is_free_when_its_ceiling_has_passed,
    a_pod_that_minted_nothing_gives_its_number_back_as_it_got_it,
});

const LONG: WriterTerms = WriterTerms { ttl: Duration::from_secs(60), window: Duration::from_secs(60) };
const SHORT: WriterTerms = WriterTerms { ttl: Duration::from_millis(100), window: Duration::from_millis(100) };

async fn claim(world: &World, owner: &str, terms: WriterTerms) -> WriterLease {
    world.ledger.writer_numbers.claim(owner, terms).await.unwrap()
}

async fn a_pod_that_minted_nothing_gives_its_number_back_as_it_got_it(world: World) {
    let numbers = &world.ledger.writer_numbers;
    let lease = claim(&world, "a", LONG).await;
    let used_up_to = clock::System.unix_ms() - 1;
    numbers.release("a", &lease, used_up_to).await.unwrap();
    let pod = Pod::new("idle");
    let _minter = store::writer::keep(&pod, numbers.clone(), Arc::new(clock::System)).await.unwrap();
    drain(&pod, Duration::from_secs(5)).await;
    let next = claim(&world, "b", LONG).await;
    assert_eq!((next.grant.writer, next.epoch), (lease.grant.writer, 3));
    assert!(next.grant.floor_unix_ms >= used_up_to, "ids before {used_up_to} were minted: {next:?}");
}

async fn of_many_claims_at_once_no_two_get_a_number(world: World) {
    let owners: Vec<_> = (0..50).map(|number| format!("pod {number}")).collect();
    let leases = join_all(owners.iter().map(|owner| claim(&world, owner, LONG))).await;
    let numbers: HashSet<_> = leases.iter().map(|lease| lease.grant.writer).collect();
    assert_eq!(numbers, (0..50).collect());
    assert!(leases.iter().all(|lease| lease.epoch == 1 && lease.grant.floor_unix_ms == 0), "{leases:?}");
    // Given back unused, they are given out again, again each to one.
    let back = owners.iter().zip(&leases).map(|(owner, lease)| world.ledger.writer_numbers.release(owner, lease, 1));
    assert!(join_all(back).await.iter().all(Result::is_ok));
    let again = join_all(owners.iter().map(|owner| claim(&world, owner, LONG))).await;
    assert_eq!(again.iter().map(|lease| lease.grant.writer).collect::<HashSet<_>>(), numbers);
    assert!(again.iter().all(|lease| lease.epoch == 2), "{again:?}");
}

async fn a_renewal_raises_the_ceiling(world: World) {
    let numbers = &world.ledger.writer_numbers;
    let lease = claim(&world, "a", SHORT).await;
    let renewed = numbers.renew("a", &lease, 0, LONG).await.unwrap().expect("it is held");
    assert_eq!((renewed.epoch, renewed.grant.writer), (lease.epoch, lease.grant.writer));
    assert!(renewed.grant.ceiling_unix_ms >= lease.grant.ceiling_unix_ms + 50_000, "{lease:?}, then {renewed:?}");
    assert!(renewed.ledger_unix_ms >= lease.ledger_unix_ms);
    // A shorter window does not take back what was granted.
    let shorter = numbers.renew("a", &renewed, 0, SHORT).await.unwrap().expect("it is held");
    assert_eq!(shorter.grant.ceiling_unix_ms, renewed.grant.ceiling_unix_ms);
    // A minter that is ahead of the ledger's clock is given a window from where it is.
    let ahead = renewed.grant.ceiling_unix_ms + 5;
    let after = numbers.renew("a", &shorter, ahead, LONG).await.unwrap();
    assert_eq!(after.map(|lease| lease.grant.ceiling_unix_ms), Some(ahead + 60_000));
}

async fn a_lost_number_is_not_renewed(world: World) {
    let numbers = &world.ledger.writer_numbers;
    let lease = claim(&world, "a", LONG).await;
    assert_eq!(numbers.renew("b", &lease, 0, LONG).await.unwrap(), None);
    let earlier = WriterLease { epoch: lease.epoch - 1, ..lease.clone() };
    assert_eq!(numbers.renew("a", &earlier, 0, LONG).await.unwrap(), None);
    let short = claim(&world, "a", WriterTerms { ttl: Duration::ZERO, ..LONG }).await;
    assert_ne!(short.grant.writer, lease.grant.writer, "one owner may hold several");
    assert_eq!(numbers.renew("a", &short, 0, LONG).await.unwrap(), None, "it ran out");
    assert!(numbers.renew("a", &lease, 0, LONG).await.unwrap().is_some());
}

async fn the_next_owner_begins_where_the_last_one_stopped(world: World) {
    let first = claim(&world, "a", LONG).await;
    let untouched = first.ledger_unix_ms;
    world.ledger.writer_numbers.release("a", &first, untouched).await.unwrap();
    let second = claim(&world, "b", LONG).await;
    assert_eq!((second.grant.writer, second.epoch), (first.grant.writer, first.epoch + 1));
    assert_eq!(second.grant.floor_unix_ms, untouched);
    // One that was minted ahead of the clock waits; another number is given meanwhile.
    let ahead = second.ledger_unix_ms + 60_000;
    world.ledger.writer_numbers.release("b", &second, ahead).await.unwrap();
    let third = claim(&world, "c", LONG).await;
    assert_ne!(third.grant.writer, second.grant.writer);
    // What was not the owner's to release is not released.
    world.ledger.writer_numbers.release("b", &third, 0).await.unwrap();
    assert!(world.ledger.writer_numbers.renew("c", &third, 0, LONG).await.unwrap().is_some());
}

async fn a_number_is_free_when_its_ceiling_has_passed(world: World) {
    let dead = claim(&world, "dead", SHORT).await;
    assert_ne!(claim(&world, "other", LONG).await.grant.writer, dead.grant.writer);
    let successor = wait::until("the number of a dead pod", async || {
        let lease = claim(&world, "heir", SHORT).await;
        world.ledger.writer_numbers.release("heir", &lease, lease.ledger_unix_ms + 60_000).await.unwrap();
        (lease.grant.writer == dead.grant.writer).then_some(lease)
    })
    .await;
    assert_eq!(successor.epoch, dead.epoch + 1);
    assert!(successor.grant.floor_unix_ms >= dead.grant.ceiling_unix_ms, "{dead:?}, then {successor:?}");
    assert!(successor.ledger_unix_ms >= dead.grant.ceiling_unix_ms, "{dead:?}, then {successor:?}");
}
