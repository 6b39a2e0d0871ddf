//! Sessions: what their owners see of them, and how they end.

use chassis::{Reason, token::Caller};
use http::StatusCode;
use proto::freshet::user::v1::SignInRequest;
use tests::{Pods, Sandbox, Stream, person::PASSWORD, stream::sign_in, wait};

const NEW_PASSWORD: &str = "a better password";

async fn is_open(world: &Sandbox, cookie: &str) -> bool {
    match Stream::open(world.edge(), cookie).await {
        Ok(_) => true,
        Err(refused) => {
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
            false
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_where_they_are_signed_in_and_ends_what_they_do_not_know() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let (handle, device) = ("ada".to_owned(), "Ada's\u{7} phone".to_owned());
    let (password, address, device_secret) = (PASSWORD.to_owned(), "2001:db8::1".to_owned(), String::new());
    let request = SignInRequest { handle, password, address, device, device_secret };
    let phone = service.sign_in(request).await.unwrap();
    let cookie = sign_in(world.edge(), "ada", PASSWORD).await.expect("a session");
    lin.signs_in().await;

    let sessions = ada.sessions().await;
    assert_eq!(sessions.len(), 2);
    let on_phone = sessions.iter().find(|session| session.id == phone.session_id).expect("the phone's");
    assert_eq!(on_phone.device, "Ada's phone");
    assert_eq!((on_phone.created_at, on_phone.expires_at), (on_phone.last_seen_at, phone.expires_at));
    assert!(phone.ends_at.unwrap().seconds > phone.expires_at.unwrap().seconds);
    assert!(!format!("{sessions:?}").contains(&phone.session_secret), "a list must not open doors");

    let other = sessions.iter().find(|session| session.id != phone.session_id).expect("the browser's");
    assert_eq!(lin.tries_to_revoke(&other.id).await.unwrap_err().reason(), Reason::SessionNotFound);
    assert!(is_open(&world, &cookie).await);
    ada.tries_to_revoke(&other.id).await.unwrap();
    assert!(!is_open(&world, &cookie).await);
    assert_eq!(ada.tries_to_revoke(&other.id).await.unwrap_err().reason(), Reason::SessionNotFound);
    assert_eq!(ada.session_ids().await, std::slice::from_ref(&phone.session_id));

    ada.signs_out(&phone).await;
    ada.signs_out(&phone).await;
    assert_eq!(ada.session_ids().await, Vec::<String>::new());
    assert_eq!(lin.session_ids().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_sessions_end_at_once_but_the_one_that_is_kept() {
    let world = Sandbox::start().await;
    let [ada, lin] = world.people(["ada", "lin"]).await;
    let (first, _second, lins) = (ada.signs_in().await, ada.signs_in().await, lin.signs_in().await);
    let cookie = sign_in(world.edge(), "ada", PASSWORD).await.expect("a session");
    assert_eq!(ada.tries_to_revoke_all(&first.session_id).await.unwrap(), 2);
    assert_eq!(ada.session_ids().await, [first.session_id]);
    assert!(!is_open(&world, &cookie).await);
    assert_eq!(ada.tries_to_revoke_all("").await.unwrap(), 1);
    assert_eq!(lin.session_ids().await, [lins.session_id]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_ends_all_other_sessions_and_the_old_password() {
    let world = Sandbox::with(Pods::TWO).await;
    let [ada] = world.people(["ada"]).await;
    let (kept, _other) = (ada.signs_in().await, ada.signs_in().await);
    let cookie = sign_in(world.edge(), "ada", PASSWORD).await.expect("a session");

    let wrong = ada.tries_to_change_password("not her password", NEW_PASSWORD, "").await.unwrap_err();
    assert_eq!(wrong.reason(), Reason::CredentialsWrong);
    assert_eq!(ada.session_ids().await.len(), 3, "nothing has happened");
    ada.tries_to_change_password(PASSWORD, NEW_PASSWORD, &kept.session_id).await.unwrap();

    assert_eq!(ada.session_ids().await, [kept.session_id]);
    assert!(!is_open(&world, &cookie).await);
    let old = ada.tries_to_sign_in(PASSWORD, "192.0.2.1").await.unwrap_err();
    assert_eq!(old.reason(), Reason::CredentialsWrong);
    ada.tries_to_sign_in(NEW_PASSWORD, "192.0.2.1").await.expect("a session");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_slips_in_by_the_old_password_while_it_is_changed() {
    let world = Sandbox::with_settings(Pods::TWO, &[("people.attempts_pair_max", "1000")]).await;
    let [ada] = world.people(["ada"]).await;
    let sign_ins = futures_util::future::join_all((0..40).map(|_| ada.tries_to_sign_in(PASSWORD, "192.0.2.1")));
    let (opened, changed) = tokio::join!(sign_ins, ada.tries_to_change_password(PASSWORD, NEW_PASSWORD, ""));
    changed.unwrap();
    assert_eq!(ada.session_ids().await, Vec::<String>::new(), "whatever was answered, none is left");
    assert!(opened.iter().filter_map(|one| one.as_ref().err()).all(|error| error.reason() == Reason::CredentialsWrong));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_used_lasts_and_one_that_is_not_ends() {
    let settings = [("people.session_ttl", "2s"), ("people.session_max", "6s")];
    let world = Sandbox::with_settings(Pods::ONE, &settings).await;
    let [ada] = world.people(["ada"]).await;
    let unused = ada.signs_in().await;
    let cookie = sign_in(world.edge(), "ada", PASSWORD).await.expect("a session");
    let began = std::time::Instant::now();
    wait::until("the unused session to end", async || {
        assert!(is_open(&world, &cookie).await, "it is in use");
        (!ada.session_ids().await.contains(&unused.session_id)).then_some(())
    })
    .await;
    wait::until("the used session to end", async || (!is_open(&world, &cookie).await).then_some(())).await;
    assert!(began.elapsed().as_millis() > 4_000, "it lasted longer than it would have without being used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hash_of_other_parameters_is_replaced_when_its_owner_signs_in() {
    let hash = "SELECT hash FROM passwords";
    // The same password, hashed with parameters of another time.
    let past = Sandbox::with_settings(Pods::ONE, &[("people.argon2_iterations", "3")]).await;
    past.people(["ada"]).await;
    let [old] = &past.sql().await.texts(hash).await[..] else { panic!("one password") };

    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let mut sql = world.sql().await;
    sql.run(&format!("UPDATE passwords SET hash = '{old}'")).await;
    ada.tries_to_sign_in("not her password", "192.0.2.1").await.unwrap_err();
    assert_eq!(sql.texts(hash).await, std::slice::from_ref(old));
    ada.signs_in().await;
    let [new] = &sql.texts(hash).await[..] else { panic!("one password") };
    assert!(new.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{new}");
    ada.signs_in().await;
    assert_eq!(sql.texts(hash).await, std::slice::from_ref(new));
}
