//! Authors of other servers, as another server tells of them.

use chassis::Error;
use proto::freshet::event::v1::{RemoteAuthorUpserted, envelope::Payload};
use store::ledger::{Account, Event, RemoteAuthor};

use super::Graph;
use crate::people::name::DisplayName;

const ORIGIN_CHARACTERS_MAX: usize = 253;
const REMOTE_ID_CHARACTERS_MAX: usize = 2048;
const HANDLE_CHARACTERS_MAX: usize = 64;

/// The host name of another server.
pub(in crate::people) struct Origin(String);

/// An author's id at another server.
pub(in crate::people) struct RemoteId(String);

/// An author's handle at another server.
pub(in crate::people) struct RemoteHandle(String);

/// What was given is none of these.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::people) enum InvalidRemote {
    #[error(
        "must be a host name: 1 to {ORIGIN_CHARACTERS_MAX} of a-z, 0-9, - and dots, which begins with a letter or digit"
    )]
    Origin,
    #[error("must be 1 to {REMOTE_ID_CHARACTERS_MAX} visible ASCII characters, without spaces")]
    Id,
    #[error("must be 1 to {HANDLE_CHARACTERS_MAX} of a-z, 0-9, _, - and dots")]
    Handle,
}

impl Origin {
    pub(in crate::people) fn new(text: &str) -> Result<Self, InvalidRemote> {
        let text = text.to_ascii_lowercase();
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        let begins = text.starts_with(|first: char| first.is_ascii_alphanumeric());
        let is_host = begins && text.len() <= ORIGIN_CHARACTERS_MAX && text.bytes().all(fits);
        if is_host { Ok(Self(text)) } else { Err(InvalidRemote::Origin) }
    }
}

impl RemoteId {
    pub(in crate::people) fn new(text: String) -> Result<Self, InvalidRemote> {
        let fits = (1..=REMOTE_ID_CHARACTERS_MAX).contains(&text.len());
        let fits = fits && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text)) } else { Err(InvalidRemote::Id) }
    }
}

impl RemoteHandle {
    pub(in crate::people) fn new(text: &str) -> Result<Self, InvalidRemote> {
        let text = text.to_ascii_lowercase();
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.');
        let is_handle = (1..=HANDLE_CHARACTERS_MAX).contains(&text.len()) && text.bytes().all(fits);
        if is_handle { Ok(Self(text)) } else { Err(InvalidRemote::Handle) }
    }

    pub(in crate::people) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Graph {
    /// The handle here cannot be a local one: those have no @.
    pub(in crate::people) async fn upsert_remote(
        &self,
        (Origin(origin), RemoteId(remote_id)): (Origin, RemoteId),
        RemoteHandle(handle): RemoteHandle,
        name: DisplayName,
    ) -> Result<Account, Error> {
        let event = self.ids.mint()?;
        let author = RemoteAuthor {
            id: self.ids.mint()?,
            handle: format!("{handle}@{origin}"),
            display_name: name.into(),
            origin: origin.clone(),
            remote_id: remote_id.clone(),
        };
        let compose = |row: &Account| {
            Payload::RemoteAuthorUpserted(RemoteAuthorUpserted {
                user_id: row.id.to_string(),
                origin: origin.clone(),
                remote_id: remote_id.clone(),
                handle: row.handle.clone(),
                display_name: row.display_name.clone(),
            })
        };
        Ok(self.remote.upsert(author, Event { id: event, compose: &compose }).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_author_is_named_by_host_id_and_handle() {
        assert_eq!(Origin::new("Mastodon.Example").map(|origin| origin.0).as_deref(), Ok("mastodon.example"));
        for text in ["", ".", "-a", "a b", "a/b", "ä.example", &"a".repeat(254)] {
            assert!(Origin::new(text).is_err(), "{text:?}");
        }
        assert!(RemoteId::new("https://a.example/users/1".to_owned()).is_ok());
        for text in ["", " ", "a b", "é", &"a".repeat(2049)] {
            assert!(RemoteId::new(text.to_owned()).is_err(), "{text:?}");
        }
        assert_eq!(RemoteHandle::new("Ada.L").map(|handle| handle.0).as_deref(), Ok("ada.l"));
        for text in ["", "a@b", "a b", &"a".repeat(65)] {
            assert!(RemoteHandle::new(text).is_err(), "{text:?}");
        }
    }
}
