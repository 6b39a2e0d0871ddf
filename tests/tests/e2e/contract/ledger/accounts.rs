//! People.

use futures_util::future::join_all;
use proto::{
    UserId,
    freshet::event::v1::{UserChanged, UserDeleted, envelope::Payload},
};
use store::{
    Error,
    ledger::{Account, Event, OwnAccount, ProfileChange},
};

use tests::wait;

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    a_person_is_found_by_id_and_by_handle,
    a_handle_is_one_persons,
    of_many_who_want_a_handle_one_gets_it,
    an_email_address_is_one_persons_without_regard_to_case,
    of_many_who_want_an_email_address_one_gets_it,
    a_profile_changes_by_what_is_named_and_its_version_rises,
    a_password_changes_once_for_those_who_knew_the_old_one,
    a_better_hash_replaces_the_one_that_was_read_only,
    whoever_is_deleted_is_gone_and_keeps_the_handle,
    nothing_is_written_in_the_name_of_one_who_was_deleted,
});

impl World {
    pub(super) async fn update(&self, user: UserId, change: ProfileChange) -> Result<OwnAccount, Error> {
        let compose = |row: &Account| {
            Payload::UserChanged(UserChanged {
                user_id: row.id.to_string(),
                handle: row.handle.clone(),
                display_name: row.display_name.clone(),
                bio: row.bio.clone(),
            })
        };
        self.ledger.accounts.update(user, change, Event { id: self.id(), compose: &compose }).await
    }

    pub(super) async fn delete_account(&self, user: UserId) -> Result<bool, Error> {
        let compose = |(): &()| Payload::UserDeleted(UserDeleted { user_id: user.to_string() });
        self.ledger.accounts.delete(user, Event { id: self.id(), compose: &compose }).await
    }
}

fn email(address: &str) -> ProfileChange {
    ProfileChange { email: Some(Some(address.to_owned())), ..ProfileChange::default() }
}

async fn a_person_is_found_by_id_and_by_handle(world: World) {
    let accounts = &world.ledger.accounts;
    let (ada, stranger) = (world.sign_up("ada").await.unwrap(), UserId::new(1).unwrap());
    assert!(accounts.exists(ada).await.unwrap());
    assert!(!accounts.exists(stranger).await.unwrap());
    let credentials = accounts.credentials("ada").await.unwrap().expect("ada");
    let account = credentials.account.clone();
    assert_eq!((account.id, account.display_name.as_str(), account.bio.as_str()), (ada, "ADA", ""));
    assert_eq!(credentials.password_hash, "hash");
    assert!(account.created_at_ms > 1_700_000_000_000);
    assert_eq!(accounts.credentials_of(ada).await.unwrap(), Some(credentials));
    assert_eq!(accounts.by_handle("ada").await.unwrap().as_ref(), Some(&account));
    assert_eq!(accounts.batch(&[stranger, ada, ada]).await.unwrap(), std::slice::from_ref(&account));
    assert_eq!(accounts.batch(&[]).await.unwrap(), []);
    let own = OwnAccount { account: account.clone(), email: None };
    assert_eq!(accounts.own(ada).await.unwrap(), Some(own));

    assert_eq!(accounts.credentials("Ada").await.unwrap(), None);
    assert_eq!(accounts.by_handle("Ada").await.unwrap(), None);
    assert_eq!(accounts.credentials_of(stranger).await.unwrap(), None);
    assert_eq!(accounts.own(stranger).await.unwrap(), None);
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

async fn an_email_address_is_one_persons_without_regard_to_case(world: World) {
    let ada = world.sign_up_with("ada", Some("Ada@Example.com")).await.unwrap();
    let lin = world.sign_up_with("lin", Some("lin@example.com")).await.unwrap();
    let own = world.ledger.accounts.own(ada).await.unwrap().expect("ada");
    assert_eq!(own.email.as_deref(), Some("Ada@Example.com"), "as she wrote it");

    assert!(matches!(world.sign_up_with("max", Some("ada@example.COM")).await, Err(Error::EmailTaken)));
    assert!(matches!(world.sign_up_with("lin", Some("ada@example.com")).await, Err(Error::HandleTaken)));
    assert!(matches!(world.update(lin, email("ADA@example.com")).await, Err(Error::EmailTaken)));
    assert_eq!(world.rows().await.len(), 2, "nothing of that is left");
    // Her own, in other letters; none at all, twice; and then it is free.
    world.update(ada, email("ada@example.com")).await.unwrap();
    for person in [ada, lin] {
        let none = ProfileChange { email: Some(None), ..ProfileChange::default() };
        assert_eq!(world.update(person, none).await.unwrap().email, None);
    }
    world.sign_up_with("max", Some("ada@example.com")).await.unwrap();
}

async fn of_many_who_want_an_email_address_one_gets_it(world: World) {
    let people = world.people(10).await;
    let handles: Vec<_> = (0..10).map(|number| format!("new{number}")).collect();
    let updates = join_all(people.iter().map(|person| world.update(*person, email("we@example.com"))));
    let sign_ups = join_all(handles.iter().map(|handle| world.sign_up_with(handle, Some("WE@example.com"))));
    let (updates, sign_ups) = tokio::join!(updates, sign_ups);
    let got = updates.iter().filter(|one| one.is_ok()).count() + sign_ups.iter().filter(|one| one.is_ok()).count();
    assert_eq!(got, 1);
    assert!(updates.iter().filter_map(|one| one.as_ref().err()).all(|error| matches!(error, Error::EmailTaken)));
    assert!(sign_ups.iter().filter_map(|one| one.as_ref().err()).all(|error| matches!(error, Error::EmailTaken)));
}

async fn a_profile_changes_by_what_is_named_and_its_version_rises(world: World) {
    let ada = world.sign_up_with("ada", Some("ada@example.com")).await.unwrap();
    let bio = ProfileChange { bio: Some("counts".into()), ..ProfileChange::default() };
    let after = world.update(ada, bio.clone()).await.unwrap();
    assert_eq!((after.account.display_name.as_str(), after.account.bio.as_str()), ("ADA", "counts"));
    assert_eq!(after.email.as_deref(), Some("ada@example.com"));
    assert_eq!(world.ledger.accounts.own(ada).await.unwrap(), Some(after.clone()));
    assert_eq!(world.update(ada, bio).await.unwrap(), after);
    assert_eq!(world.update(ada, ProfileChange::default()).await.unwrap(), after);
    assert_eq!(world.events("user.changed").await.len(), 1, "only what changes is told");

    let names =
        (0..10).map(|number| ProfileChange { display_name: Some(format!("Ada {number}")), ..Default::default() });
    join_all(names.map(|change| world.update(ada, change))).await.into_iter().for_each(|one| drop(one.unwrap()));
    let events = world.events("user.changed").await;
    let versions: std::collections::BTreeSet<_> = events.iter().map(|event| event.version).collect();
    assert_eq!(versions.len(), 11, "each change has a version of its own");
    let created = world.events("user.created").await[0].version;
    assert!(versions.iter().all(|version| *version > created));
    let newest = events.iter().max_by_key(|event| event.version).and_then(|event| event.payload.clone());
    let Some(Payload::UserChanged(newest)) = newest else { panic!("{newest:?}") };
    let own = world.ledger.accounts.own(ada).await.unwrap().expect("ada");
    assert_eq!((newest.display_name, newest.bio.as_str()), (own.account.display_name, "counts"));
}

async fn a_password_changes_once_for_those_who_knew_the_old_one(world: World) {
    let ada = world.sign_up("ada").await.unwrap();
    let accounts = &world.ledger.accounts;
    let before = accounts.credentials_of(ada).await.unwrap().expect("ada");
    let hashes: Vec<_> = (0..10).map(|number| format!("new {number}")).collect();
    let set = join_all(hashes.iter().map(|hash| accounts.set_password(&before, hash))).await;
    assert_eq!(set.into_iter().filter(|one| *one.as_ref().unwrap()).count(), 1);
    let after = accounts.credentials_of(ada).await.unwrap().expect("ada");
    assert!(after.changed_us > before.changed_us);
    assert!(hashes.contains(&after.password_hash));
    assert!(accounts.set_password(&after, "newer").await.unwrap());
    assert_eq!(accounts.credentials("ada").await.unwrap().expect("ada").password_hash, "newer");
    assert_eq!(world.rows().await.len(), 1, "nobody is told of passwords");
}

async fn a_better_hash_replaces_the_one_that_was_read_only(world: World) {
    let ada = world.sign_up("ada").await.unwrap();
    let accounts = &world.ledger.accounts;
    let before = accounts.credentials_of(ada).await.unwrap().expect("ada");
    accounts.rehash(&before, "better").await.unwrap();
    accounts.rehash(&before, "too late").await.unwrap();
    let better = accounts.credentials_of(ada).await.unwrap().expect("ada");
    assert_eq!((better.password_hash.as_str(), better.changed_us), ("better", before.changed_us));
    assert!(accounts.set_password(&before, "another").await.unwrap(), "it is still the same password");
    accounts.rehash(&better, "of the old password").await.unwrap();
    assert_eq!(accounts.credentials_of(ada).await.unwrap().expect("ada").password_hash, "another");
}

async fn whoever_is_deleted_is_gone_and_keeps_the_handle(world: World) {
    let (accounts, lin) = (&world.ledger.accounts, world.sign_up("lin").await.unwrap());
    let ada = world.sign_up_with("ada", Some("ada@example.com")).await.unwrap();
    let credentials = accounts.credentials_of(ada).await.unwrap().expect("ada");
    let deleted = join_all((0..5).map(|_| world.delete_account(ada))).await;
    assert_eq!(deleted.into_iter().filter(|one| *one.as_ref().unwrap()).count(), 1);
    assert!(matches!(world.delete_account(UserId::new(1).unwrap()).await, Err(Error::NotFound(_))));

    assert!(!accounts.exists(ada).await.unwrap());
    assert_eq!(accounts.batch(&[ada, lin]).await.unwrap().len(), 1);
    assert_eq!(accounts.by_handle("ada").await.unwrap(), None);
    assert_eq!(accounts.own(ada).await.unwrap(), None);
    assert_eq!(accounts.credentials("ada").await.unwrap(), None);
    assert_eq!(accounts.credentials_of(ada).await.unwrap(), None);
    assert!(!accounts.set_password(&credentials, "new").await.unwrap());
    assert!(matches!(world.update(ada, email("ada@example.com")).await, Err(Error::NotFound(_))));
    assert!(matches!(world.sign_up("ada").await, Err(Error::HandleTaken)));
    world.sign_up_with("max", Some("ada@example.com")).await.expect("the address is free");
    let (events, created) = (world.events("user.deleted").await, world.events("user.created").await);
    assert_eq!(events.len(), 1);
    let of_ada = created.iter().find(|event| event.key == ada.to_string()).expect("her sign-up");
    assert!(events[0].version > of_ada.version);
}

async fn nothing_is_written_in_the_name_of_one_who_was_deleted(world: World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let theirs = world.post(lin, "hello").await.unwrap().id;
    let hers = async || {
        let posts = world.events("post.created").await.into_iter().filter(|event| event.key == ada.to_string()).count();
        (posts, world.events("post.liked").await.len(), world.events("graph.followed").await.len())
    };
    // Many at once, before, beside and after it: what was written at all was there when the deletion was answered.
    let writes = join_all((0..20).map(async |number| {
        for turn in 0..5 {
            _ = world.post(ada, &format!("post {number} {turn}")).await;
            _ = world.like(ada, theirs).await;
            _ = world.follow(lin, ada).await;
        }
    }));
    let deletion = async {
        wait::until("a first post", async || (hers().await.0 > 0).then_some(())).await;
        assert!(world.delete_account(ada).await.unwrap());
        hers().await
    };
    let (_, when_it_was_answered) = tokio::join!(writes, deletion);
    assert_eq!(hers().await, when_it_was_answered);
    let missing = |error| matches!(error, Error::NotFound(_));
    assert!(missing(world.post(ada, "late").await.unwrap_err()));
    assert!(missing(world.follow(lin, ada).await.unwrap_err()));
    assert!(missing(world.follow(ada, lin).await.unwrap_err()));
    assert!(missing(world.like(ada, theirs).await.unwrap_err()));
}
