//! Sessions: which there are, and how they end.

use chassis::{Error, Reason};
use proto::UserId;
use store::sets::{Session, SessionHash, SessionId};
use unicode_segmentation::UnicodeSegmentation as _;

use super::People;

const DEVICE_CHARACTERS_MAX: usize = 200;
/// One character can be made of many marks; this bounds them.
const DEVICE_BYTES_MAX: usize = 1024;

/// What a device says that it is. Nobody types it, so it is cut and cleaned rather than refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Device(String);

impl Device {
    pub(super) fn new(text: &str) -> Self {
        let clean: String = text.chars().filter(|one| !one.is_control()).collect();
        let mut cut = String::new();
        for character in clean.trim().graphemes(true).take(DEVICE_CHARACTERS_MAX) {
            if cut.len() + character.len() > DEVICE_BYTES_MAX {
                break;
            }
            cut.push_str(character);
        }
        Self(cut)
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.0
    }
}

impl People {
    /// Ends the session of a secret. No event tells of it: a session is no row of the ledger, and what is not in its
    /// transaction must not be in its outbox.
    pub(super) async fn sign_out(&self, secret: &str) -> Result<(), Error> {
        Ok(self.sessions.end(SessionHash::of(secret)).await?)
    }

    pub(super) async fn list_sessions(&self, user: UserId) -> Result<Vec<(SessionId, Session)>, Error> {
        Ok(self.sessions.of_user(user).await?)
    }

    pub(super) async fn revoke_session(&self, user: UserId, id: SessionId) -> Result<(), Error> {
        if self.sessions.end_one(user, id).await? {
            return Ok(());
        }
        Err(Error::new(Reason::SessionNotFound, "there is no such session"))
    }

    pub(super) async fn revoke_all_sessions(&self, user: UserId, keep: Option<SessionId>) -> Result<u32, Error> {
        Ok(self.sessions.end_all(user, keep).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_says_is_cut_and_cleaned() {
        assert_eq!(String::from(Device::new(" Mozilla/5.0\r\n\t(X11) ")), "Mozilla/5.0(X11)");
        assert_eq!(String::from(Device::new(&"👩‍🚀".repeat(40))), "👩‍🚀".repeat(40));
        assert_eq!(String::from(Device::new(&"x".repeat(500))), "x".repeat(DEVICE_CHARACTERS_MAX));
        assert_eq!(String::from(Device::new(&format!("e{}", "\u{301}".repeat(2000)))), "");
    }
}
