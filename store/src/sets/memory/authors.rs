//! What readers' authors are to them, in the process. It lies in the home itself, and cannot be lost apart from it.

use async_trait::async_trait;
use proto::UserId;

use super::Memory;
use crate::{
    Error,
    sets::{AuthorState, Authors, FollowVersion, Special},
};

impl Memory {
    /// The time, unless it is too late.
    pub(super) fn in_time(&self, not_after_unix_ms: i64) -> Result<i64, Error> {
        let now = self.clock.unix_ms();
        if now <= not_after_unix_ms {
            return Ok(now);
        }
        let cause = "what is to be written was learnt too long ago".to_owned();
        Err(Error::Unavailable { store: "the sets", cause })
    }
}

#[async_trait]
impl Authors for Memory {
    async fn set(&self, reader: UserId, states: &[AuthorState], not_after_unix_ms: i64) -> Result<(), Error> {
        self.in_time(not_after_unix_ms)?;
        if let Some(home) = self.state().homes.get_mut(&reader) {
            for state in states {
                home.set_state(*state);
            }
        }
        Ok(())
    }

    async fn scrub(&self, unfollowed: FollowVersion) -> Result<(), Error> {
        let FollowVersion { reader, author, version } = unfollowed;
        let state = AuthorState::new(author, Special::Unfollowed, true, version);
        self.state().homes.get_mut(&reader).map_or(Ok(()), |home| home.scrub(state))
    }
}
