//! The sets: what timelines, sessions, connections, pod streams and hot lists promise, in the process and in Redis.

use proto::UserId;
use store::sets::{Session, SessionHash, Sets};
use tests::servers::{self, Adapter};

async fn open(adapter: Adapter) -> Option<Sets> {
    let data = tempfile::tempdir().expect("a folder");
    let config = servers::config(&servers::settings(&[adapter], data.path()).await?);
    Some(config.open_sets(&servers::parts()).await.expect("sets"))
}

store_contract!(open: [
    memory = tests::servers::Adapter::Memory,
] {
    a_session_lasts_until_it_is_ended,
});

fn user(id: i64) -> UserId {
    UserId::new(id).expect("an id")
}

async fn a_session_lasts_until_it_is_ended(sets: Sets) {
    let (hash, other) = (SessionHash::of("secret"), SessionHash::of("another"));
    let session = Session { user: user(7), expires_at_ms: i64::MAX / 2 };
    sets.sessions.open(hash, session.clone()).await.unwrap();
    assert_eq!(sets.sessions.find(hash).await.unwrap(), Some(session));
    assert_eq!(sets.sessions.find(other).await.unwrap(), None);
    sets.sessions.end(hash).await.unwrap();
    assert_eq!(sets.sessions.find(hash).await.unwrap(), None);
}
