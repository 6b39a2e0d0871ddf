//! Which relays there are, in Redis.

use async_trait::async_trait;

use super::{Redis, script::Call};
use crate::{
    Error,
    sets::{PodName, RelayMembers},
};

#[async_trait]
impl RelayMembers for Redis {
    async fn ping(&self, member: &str, ttl_ms: i64) -> Result<Vec<PodName>, Error> {
        let call = Call::default().key(self.keys.relay_members()).arg(member).arg(ttl_ms);
        let mut members: Vec<PodName> = self.scripts.ping_relay.call(&self.link, &call).await?;
        members.sort_unstable();
        Ok(members)
    }

    async fn leave(&self, member: &str) -> Result<(), Error> {
        let mut leave = redis::cmd("ZREM");
        self.link.ask(leave.arg(self.keys.relay_members()).arg(member)).await
    }
}
