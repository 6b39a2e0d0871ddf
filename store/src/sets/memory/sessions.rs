//! Who is signed in, in the process.

use async_trait::async_trait;
use proto::UserId;

use super::{Memory, State};
use crate::{
    Error,
    sets::{SESSIONS_A_PERSON_MAX, Session, SessionHash, SessionId, Sessions, sessions::sort},
};

impl State {
    fn live_session(&self, hash: SessionHash, now_ms: i64) -> Option<&Session> {
        self.sessions.get(&hash).filter(|session| session.expires_at_ms() > now_ms)
    }

    fn sessions_of(&self, user: UserId) -> impl Iterator<Item = (SessionHash, &Session)> {
        let all = self.sessions.iter().map(|(hash, session)| (*hash, session));
        all.filter(move |(_, session)| session.user == user)
    }
}

#[async_trait]
impl Sessions for Memory {
    async fn open(&self, hash: SessionHash, session: Session) -> Result<(), Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        state.sessions.retain(|_, session| session.expires_at_ms() > now);
        let user = session.user;
        state.sessions.insert(hash, session);
        let mut mine: Vec<_> = state.sessions_of(user).filter(|(one, _)| *one != hash).collect();
        if mine.len() < SESSIONS_A_PERSON_MAX {
            return Ok(());
        }
        mine.sort_unstable_by_key(|(hash, session)| (session.last_seen_at_ms, *hash));
        let past = mine.len() + 1 - SESSIONS_A_PERSON_MAX;
        let ended: Vec<_> = mine.into_iter().take(past).map(|(hash, _)| hash).collect();
        state.sessions.retain(|hash, _| !ended.contains(hash));
        Ok(())
    }

    async fn find(&self, hash: SessionHash) -> Result<Option<Session>, Error> {
        Ok(self.state().live_session(hash, self.clock.unix_ms()).cloned())
    }

    async fn renew(&self, hash: SessionHash, seen_at_ms: i64) -> Result<(), Error> {
        let now = self.clock.unix_ms();
        if let Some(session) = self.state().sessions.get_mut(&hash).filter(|session| session.expires_at_ms() > now) {
            session.last_seen_at_ms = session.last_seen_at_ms.max(seen_at_ms);
        }
        Ok(())
    }

    async fn end(&self, hash: SessionHash) -> Result<(), Error> {
        self.state().sessions.remove(&hash);
        Ok(())
    }

    async fn of_user(&self, user: UserId) -> Result<Vec<(SessionId, Session)>, Error> {
        let now = self.clock.unix_ms();
        let state = self.state();
        let live = state.sessions_of(user).filter(|(_, session)| session.expires_at_ms() > now);
        let mut found: Vec<_> = live.map(|(hash, session)| (hash.id(), session.clone())).collect();
        sort(&mut found);
        Ok(found)
    }

    async fn end_one(&self, user: UserId, id: SessionId) -> Result<bool, Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        let found = state.sessions_of(user).map(|(hash, _)| hash).find(|hash| hash.id() == id);
        let ended = found.and_then(|hash| state.sessions.remove(&hash));
        Ok(ended.is_some_and(|session| session.expires_at_ms() > now))
    }

    async fn end_all(&self, user: UserId, keep: Option<SessionId>) -> Result<u32, Error> {
        let now = self.clock.unix_ms();
        let mut ended = 0;
        self.state().sessions.retain(|hash, session| {
            let stays = session.user != user || keep == Some(hash.id());
            ended += u32::from(!stays && session.expires_at_ms() > now);
            stays
        });
        Ok(ended)
    }
}
