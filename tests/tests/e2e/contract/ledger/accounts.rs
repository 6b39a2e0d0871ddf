//! People.

use futures_util::future::join_all;
use proto::UserId;
use store::Error;

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    a_person_is_found_by_id_and_by_handle,
    a_handle_is_one_persons,
    of_many_who_want_a_handle_one_gets_it,
});

async fn a_person_is_found_by_id_and_by_handle(world: World) {
    let ada = world.sign_up("ada").await.unwrap();
    assert!(world.ledger.accounts.exists(ada).await.unwrap());
    assert!(!world.ledger.accounts.exists(UserId::new(1).unwrap()).await.unwrap());
    let (account, hash) = world.ledger.accounts.credentials("ada").await.unwrap().expect("ada");
    assert_eq!((account.id, account.display_name.as_str(), hash.as_str()), (ada, "ADA", "hash"));
    assert!(account.created_at_ms > 1_700_000_000_000);
    assert_eq!(world.ledger.accounts.credentials("Ada").await.unwrap(), None);
    let events = world.events("user.created").await;
    assert_eq!(events.len(), 1);
    assert!(events[0].version / 1000 >= account.created_at_ms);
}

async fn a_handle_is_one_persons(world: World) {
    world.sign_up("ada").await.unwrap();
    assert!(matches!(world.sign_up("ada").await, Err(Error::HandleTaken)));
    assert_eq!(world.rows().await.len(), 1);
}

async fn of_many_who_want_a_handle_one_gets_it(world: World) {
    let all = join_all((0..20).map(|_| world.sign_up("ada"))).await;
    assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1);
    assert_eq!(all.iter().filter(|one| matches!(one, Err(Error::HandleTaken))).count(), 19);
    assert_eq!(world.rows().await.len(), 1);
}
