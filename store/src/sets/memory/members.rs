//! Which relays there are, in the process.

use async_trait::async_trait;

use super::Memory;
use crate::{
    Error,
    sets::{PodName, RelayMembers},
};

#[async_trait]
impl RelayMembers for Memory {
    async fn ping(&self, member: &str, ttl_ms: i64) -> Result<Vec<PodName>, Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        state.relays.insert(member.to_owned(), now + ttl_ms);
        state.relays.retain(|_, expires_ms| *expires_ms > now);
        Ok(state.relays.keys().cloned().collect())
    }

    async fn leave(&self, member: &str) -> Result<(), Error> {
        self.state().relays.remove(member);
        Ok(())
    }
}
