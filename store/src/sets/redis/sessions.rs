//! Sessions in Redis, which forgets them by itself when they end. A session and the list of its owner's sessions lie in
//! different slots of a Cluster, so no step changes both. The order makes up for it: a session is in the list before it is
//! there, and leaves the list after it is gone. So what is open can always be found by its owner, and what is listed and not
//! there is only swept up.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use proto::UserId;

use super::{Redis, error::STORE, script::Call};
use crate::{
    Error,
    error::damaged,
    sets::{SESSION_SEEN_MS, SESSIONS_A_PERSON_MAX, Session, SessionHash, SessionId, Sessions, sessions::sort},
};

const FIELDS: [&str; 6] = ["user", "device", "created", "seen", "idle", "ends"];

/// Whose a session is.
fn owner(user: i64) -> Result<UserId, Error> {
    UserId::new(user).map_err(|_| damaged(STORE, "a session of nobody"))
}

impl Redis {
    /// Puts a session on its owner's list. Tells how many are on it.
    async fn list(&self, user: UserId, hash: SessionHash, created_at_ms: i64, ends_at_ms: i64) -> Result<usize, Error> {
        let call = Call::default().key(self.keys.sessions_of(user));
        self.scripts.list_session.call(&self.link, &call.arg(&hash.0).arg(created_at_ms).arg(ends_at_ms)).await
    }

    /// All that a person's list has, whether it is still there or not.
    async fn listed(&self, user: UserId) -> Result<Vec<SessionHash>, Error> {
        let mut all = redis::cmd("ZRANGE");
        let hashes: Vec<Vec<u8>> = self.link.ask(all.arg(self.keys.sessions_of(user)).arg(0).arg(-1)).await?;
        let bad = |_| damaged(STORE, "a session's hash of another length");
        hashes.into_iter().map(|hash| hash.try_into().map(SessionHash).map_err(bad)).collect()
    }

    /// Those that are there, and the others are taken off the list.
    async fn live(&self, user: UserId) -> Result<Vec<(SessionHash, Session)>, Error> {
        let listed = self.listed(user).await?;
        let found = try_join_all(listed.iter().map(|hash| self.find(*hash))).await?;
        let (mut live, mut gone) = (Vec::new(), Vec::new());
        for (hash, session) in listed.into_iter().zip(found) {
            match session {
                Some(session) => live.push((hash, session)),
                None => gone.push(hash),
            }
        }
        if !gone.is_empty() {
            // One that is being opened is listed and not there yet: the young ones stay.
            let mut sweep = Call::default().key(self.keys.sessions_of(user)).arg(SESSION_SEEN_MS);
            gone.iter().for_each(|hash| sweep.add_arg(&hash.0));
            self.scripts.sweep_sessions.call::<()>(&self.link, &sweep).await?;
        }
        Ok(live)
    }

    /// Whether it was there.
    async fn take_away(&self, user: UserId, hash: SessionHash) -> Result<bool, Error> {
        let there: bool = self.link.ask(redis::cmd("DEL").arg(self.keys.session(hash))).await?;
        let mut unlist = redis::cmd("ZREM");
        self.link.ask::<()>(unlist.arg(self.keys.sessions_of(user)).arg(&hash.0)).await?;
        Ok(there)
    }
}

#[async_trait]
impl Sessions for Redis {
    async fn open(&self, hash: SessionHash, session: Session) -> Result<(), Error> {
        let listed = self.list(session.user, hash, session.created_at_ms, session.ends_at_ms).await?;
        let key = self.keys.session(hash);
        let mut open = redis::pipe();
        open.atomic().cmd("HSET").arg(&key).arg("user").arg(session.user.get()).arg("device").arg(&session.device);
        open.arg("created").arg(session.created_at_ms).arg("seen").arg(session.last_seen_at_ms);
        open.arg("idle").arg(session.idle_ms).arg("ends").arg(session.ends_at_ms).ignore();
        open.cmd("PEXPIREAT").arg(&key).arg(session.expires_at_ms()).ignore();
        self.link.ask_all::<()>(&open).await?;

        if listed > SESSIONS_A_PERSON_MAX {
            let mut others = self.live(session.user).await?;
            others.retain(|(one, _)| *one != hash);
            others.sort_unstable_by_key(|(hash, session)| (session.last_seen_at_ms, *hash));
            let past = (others.len() + 1).saturating_sub(SESSIONS_A_PERSON_MAX);
            try_join_all(others.iter().take(past).map(|(hash, _)| self.take_away(session.user, *hash))).await?;
        }
        Ok(())
    }

    async fn find(&self, hash: SessionHash) -> Result<Option<Session>, Error> {
        let mut find = redis::cmd("HMGET");
        find.arg(self.keys.session(hash)).arg(&FIELDS);
        type Found = (Option<i64>, Option<String>, Option<i64>, Option<i64>, Option<i64>, Option<i64>);
        let found: Found = self.link.ask(&find).await?;
        let (Some(user), Some(device), Some(created_at_ms), Some(last_seen_at_ms), Some(idle_ms), Some(ends_at_ms)) =
            found
        else {
            return Ok(None);
        };
        Ok(Some(Session { user: owner(user)?, device, created_at_ms, last_seen_at_ms, idle_ms, ends_at_ms }))
    }

    async fn renew(&self, hash: SessionHash, seen_at_ms: i64) -> Result<(), Error> {
        let call = Call::default().key(self.keys.session(hash)).arg(seen_at_ms);
        let renewed: Option<(i64, i64, i64)> = self.scripts.renew_session.call(&self.link, &call).await?;
        if let Some((user, created_at_ms, ends_at_ms)) = renewed {
            // The list may have been lost, and the session not: what is used is listed again.
            self.list(owner(user)?, hash, created_at_ms, ends_at_ms).await?;
        }
        Ok(())
    }

    async fn end(&self, hash: SessionHash) -> Result<(), Error> {
        let Some(session) = self.find(hash).await? else { return Ok(()) };
        self.take_away(session.user, hash).await.map(|_| ())
    }

    async fn of_user(&self, user: UserId) -> Result<Vec<(SessionId, Session)>, Error> {
        let live = self.live(user).await?;
        let mut found: Vec<_> = live.into_iter().map(|(hash, session)| (hash.id(), session)).collect();
        sort(&mut found);
        Ok(found)
    }

    async fn end_one(&self, user: UserId, id: SessionId) -> Result<bool, Error> {
        match self.listed(user).await?.into_iter().find(|hash| hash.id() == id) {
            Some(hash) => self.take_away(user, hash).await,
            None => Ok(false),
        }
    }

    async fn end_all(&self, user: UserId, keep: Option<SessionId>) -> Result<u32, Error> {
        let mut listed = self.listed(user).await?;
        listed.retain(|hash| Some(hash.id()) != keep);
        let ended = try_join_all(listed.iter().map(|hash| self.take_away(user, *hash))).await?;
        Ok(ended.into_iter().map(u32::from).sum())
    }
}
