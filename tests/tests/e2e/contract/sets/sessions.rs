//! Who is signed in.

use proto::UserId;
use store::sets::{SESSIONS_A_PERSON_MAX, Session, SessionHash, SessionId, Sets};
use tests::wait;

use super::{now_ms, open, user};

sets_contract!({
    a_session_lasts_until_it_is_ended,
    a_session_runs_out,
    a_session_that_is_used_lasts_longer_but_not_for_ever,
    what_is_ended_does_not_come_back_by_being_used,
    a_person_sees_and_ends_their_own_sessions_only,
    all_sessions_end_but_the_one_that_is_kept,
    past_the_limit_the_session_that_was_not_seen_for_longest_ends,
});

const HOUR_MS: i64 = 3_600_000;

fn session(user: UserId, device: &str) -> Session {
    let now = now_ms();
    let (created_at_ms, last_seen_at_ms) = (now, now);
    Session {
        user,
        device: device.into(),
        created_at_ms,
        last_seen_at_ms,
        idle_ms: HOUR_MS,
        ends_at_ms: now + 9 * HOUR_MS,
    }
}

async fn sign_in(sets: &Sets, secret: &str, session: &Session) -> SessionHash {
    let hash = SessionHash::of(secret);
    sets.sessions.open(hash, session.clone()).await.unwrap();
    hash
}

async fn ids(sets: &Sets, user: UserId) -> Vec<SessionId> {
    sets.sessions.of_user(user).await.unwrap().into_iter().map(|(id, _)| id).collect()
}

async fn a_session_lasts_until_it_is_ended(sets: Sets) {
    let session = session(user(7), "Ada's phone, 手机 \r\n");
    let hash = sign_in(&sets, "secret", &session).await;
    assert_eq!(sets.sessions.find(hash).await.unwrap(), Some(session.clone()));
    assert_eq!(sets.sessions.find(SessionHash::of("another")).await.unwrap(), None);
    assert_eq!(sets.sessions.of_user(user(7)).await.unwrap(), [(hash.id(), session)]);
    for _ in 0..2 {
        sets.sessions.end(hash).await.unwrap();
        assert_eq!(sets.sessions.find(hash).await.unwrap(), None);
        assert_eq!(ids(&sets, user(7)).await, []);
    }
}

async fn a_session_runs_out(sets: Sets) {
    let (now, whole) = (now_ms(), session(user(7), ""));
    let unused = sign_in(&sets, "unused", &Session { idle_ms: 60, ..whole.clone() }).await;
    let old = sign_in(&sets, "old", &Session { ends_at_ms: now + 60, ..whole.clone() }).await;
    let past = sign_in(&sets, "past", &Session { ends_at_ms: now - 1000, ..whole.clone() }).await;
    let long = sign_in(&sets, "long", &whole).await;
    assert_eq!(sets.sessions.find(past).await.unwrap(), None);
    for hash in [unused, old] {
        wait::until("the end of a session", async || sets.sessions.find(hash).await.unwrap().is_none().then_some(()))
            .await;
    }
    assert_eq!(sets.sessions.find(long).await.unwrap(), Some(whole));
    assert_eq!(ids(&sets, user(7)).await, [long.id()]);
    assert!(!sets.sessions.end_one(user(7), unused.id()).await.unwrap());
    assert_eq!(sets.sessions.end_all(user(7), None).await.unwrap(), 1);
}

async fn a_session_that_is_used_lasts_longer_but_not_for_ever(sets: Sets) {
    let (now, whole) = (now_ms(), session(user(7), ""));
    let short = sign_in(&sets, "short", &Session { idle_ms: 5_000, ..whole.clone() }).await;
    let ending = sign_in(&sets, "ending", &Session { ends_at_ms: now + 300, ..whole.clone() }).await;
    for hash in [short, ending] {
        // As if it were used later; and an earlier use that is told late changes nothing.
        sets.sessions.renew(hash, now + HOUR_MS).await.unwrap();
        sets.sessions.renew(hash, now + 1).await.unwrap();
    }
    let renewed = sets.sessions.find(short).await.unwrap().expect("a session");
    assert_eq!((renewed.last_seen_at_ms, renewed.expires_at_ms()), (now + HOUR_MS, now + HOUR_MS + 5_000));
    wait::until("the end of all use", async || sets.sessions.find(ending).await.unwrap().is_none().then_some(())).await;
}

async fn what_is_ended_does_not_come_back_by_being_used(sets: Sets) {
    let hash = sign_in(&sets, "secret", &session(user(7), "")).await;
    sets.sessions.end(hash).await.unwrap();
    sets.sessions.renew(hash, now_ms() + HOUR_MS).await.unwrap();
    assert_eq!(sets.sessions.find(hash).await.unwrap(), None);
    assert_eq!(ids(&sets, user(7)).await, []);
}

async fn a_person_sees_and_ends_their_own_sessions_only(sets: Sets) {
    let now = now_ms();
    let phone = sign_in(&sets, "phone", &session(user(7), "phone")).await;
    let seen_later = Session { last_seen_at_ms: now + 5, ..session(user(7), "desk") };
    let desk = sign_in(&sets, "desk", &seen_later).await;
    let lins = sign_in(&sets, "lin", &session(user(8), "")).await;
    assert_eq!(ids(&sets, user(7)).await, [desk.id(), phone.id()], "the one that was seen last first");
    sets.sessions.renew(phone, now + 60_000).await.unwrap();
    assert_eq!(ids(&sets, user(7)).await, [phone.id(), desk.id()]);

    assert!(!sets.sessions.end_one(user(8), phone.id()).await.unwrap(), "it is not that person's");
    assert!(sets.sessions.end_one(user(7), phone.id()).await.unwrap());
    assert!(!sets.sessions.end_one(user(7), phone.id()).await.unwrap());
    assert_eq!(sets.sessions.find(phone).await.unwrap(), None);
    assert!(sets.sessions.find(desk).await.unwrap().is_some());
    assert!(sets.sessions.find(lins).await.unwrap().is_some());
}

async fn all_sessions_end_but_the_one_that_is_kept(sets: Sets) {
    let mut hashes = Vec::new();
    for number in 0..20 {
        hashes.push(sign_in(&sets, &format!("secret {number}"), &session(user(7), "")).await);
    }
    let lins = sign_in(&sets, "lin", &session(user(8), "")).await;
    assert_eq!(sets.sessions.end_all(user(7), Some(hashes[3].id())).await.unwrap(), 19);
    assert_eq!(ids(&sets, user(7)).await, [hashes[3].id()]);
    assert!(sets.sessions.find(hashes[3]).await.unwrap().is_some());
    assert_eq!(sets.sessions.end_all(user(7), Some(lins.id())).await.unwrap(), 1);
    assert_eq!(sets.sessions.end_all(user(7), None).await.unwrap(), 0);
    assert!(sets.sessions.find(lins).await.unwrap().is_some());
}

async fn past_the_limit_the_session_that_was_not_seen_for_longest_ends(sets: Sets) {
    let now = now_ms();
    let mut hashes = Vec::new();
    for number in 0..SESSIONS_A_PERSON_MAX as i64 {
        let seen = Session { last_seen_at_ms: now + number, ..session(user(7), "") };
        hashes.push(sign_in(&sets, &format!("secret {number}"), &seen).await);
    }
    // The first one is the oldest, and is in use.
    sets.sessions.renew(hashes[0], now + HOUR_MS).await.unwrap();
    let new = sign_in(&sets, "new", &session(user(7), "")).await;
    assert_eq!(ids(&sets, user(7)).await.len(), SESSIONS_A_PERSON_MAX);
    for (hash, lives) in [(hashes[0], true), (hashes[1], false), (hashes[2], true), (new, true)] {
        assert_eq!(sets.sessions.find(hash).await.unwrap().is_some(), lives);
    }
}
