//! What readers' authors are to them, in Redis: a hash beside the home, with the token of the home's build.

use async_trait::async_trait;
use proto::UserId;

use super::{Redis, error::unavailable, script::Call};
use crate::{
    Error,
    sets::{AuthorState, Authors, BuildToken, FollowVersion, Special},
};

/// The field that holds the token.
const TOKEN: &[u8] = b"token";
pub(super) const TOO_LATE: &str = "what is to be written was learnt too long ago";

/// The states that hold, of a reader's hash; `None` when it does not belong to the build with this token.
pub(super) fn read(hash: &[Vec<u8>], token: BuildToken) -> Result<Option<Vec<AuthorState>>, Error> {
    let (mut is_of_build, mut states) = (false, Vec::new());
    for pair in hash.chunks_exact(2) {
        match &pair[0][..] {
            TOKEN => is_of_build = pair[1] == token.0.to_be_bytes(),
            field => states.push(AuthorState::from_hash(field, &pair[1])?),
        }
    }
    states.retain(|state| state.until_ms != AuthorState::OVER);
    Ok(is_of_build.then_some(states))
}

#[async_trait]
impl Authors for Redis {
    async fn set(&self, reader: UserId, states: &[AuthorState], not_after_unix_ms: i64) -> Result<(), Error> {
        let mut call = Call::default().key(self.keys.authors(reader)).arg(not_after_unix_ms);
        for state in states {
            call.add_arg(&state.field());
            call.add_arg(&state.value());
        }
        let set: Option<i64> = self.scripts.set_states.call(&self.link, &call).await?;
        set.map(|_| ()).ok_or_else(|| unavailable(TOO_LATE))
    }

    async fn scrub(&self, unfollowed: FollowVersion) -> Result<(), Error> {
        let FollowVersion { reader, author, version } = unfollowed;
        let state = AuthorState::new(author, Special::Unfollowed, true, version);
        let call = Call::default().key(self.keys.home(reader)).key(self.keys.authors(reader));
        let call = call.arg(&state.field()).arg(&state.value()).arg(&author.get().to_be_bytes());
        self.scripts.scrub.call(&self.link, &call).await
    }
}
