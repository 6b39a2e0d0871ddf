//! Sessions in Redis, which forgets them by itself when they end.

use async_trait::async_trait;
use proto::UserId;

use super::{Redis, error::STORE};
use crate::{
    Error,
    error::damaged,
    sets::{Session, SessionHash, Sessions},
};

#[async_trait]
impl Sessions for Redis {
    async fn open(&self, hash: SessionHash, session: Session) -> Result<(), Error> {
        let key = self.keys.session(hash);
        let mut open = redis::pipe();
        open.atomic().cmd("HSET").arg(&key).arg("user").arg(session.user.get());
        open.arg("expires_at_ms").arg(session.expires_at_ms).ignore();
        open.cmd("PEXPIREAT").arg(&key).arg(session.expires_at_ms).ignore();
        self.link.ask_all(&open).await
    }

    async fn find(&self, hash: SessionHash) -> Result<Option<Session>, Error> {
        let mut find = redis::cmd("HMGET");
        find.arg(self.keys.session(hash)).arg("user").arg("expires_at_ms");
        let (Some(user), Some(expires_at_ms)) = self.link.ask(&find).await? else { return Ok(None) };
        let user = UserId::new(user).map_err(|_| damaged(STORE, "a session of nobody"))?;
        Ok(Some(Session { user, expires_at_ms }))
    }

    async fn end(&self, hash: SessionHash) -> Result<(), Error> {
        self.link.ask(redis::cmd("DEL").arg(self.keys.session(hash))).await
    }
}
