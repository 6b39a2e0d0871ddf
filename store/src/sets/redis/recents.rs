//! Authors' newest posts in Redis.

use async_trait::async_trait;
use proto::UserId;

use super::{Redis, script::Call};
use crate::{
    Error,
    sets::{Entry, RECENT_MEMBERS_MAX, Recents},
};

#[async_trait]
impl Recents for Redis {
    async fn push(&self, entry: Entry) -> Result<(), Error> {
        let call = Call::default().key(self.keys.recent(entry.author)).arg(entry.score()).arg(&entry.member());
        self.scripts.push_recent.call(&self.link, &call.arg(RECENT_MEMBERS_MAX)).await
    }

    async fn newest(&self, author: UserId, limit: usize) -> Result<Vec<Entry>, Error> {
        // In Redis a last place of -1 means all of them.
        let Some(last) = limit.min(RECENT_MEMBERS_MAX).checked_sub(1) else { return Ok(Vec::new()) };
        let mut newest = redis::cmd("ZRANGE");
        let members: Vec<Vec<u8>> = self.link.ask(newest.arg(self.keys.recent(author)).arg(0).arg(last)).await?;
        members.iter().map(|member| Entry::from_member(member)).collect()
    }
}
