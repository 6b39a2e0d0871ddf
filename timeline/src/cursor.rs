//! Cursors of lists: a place, in a form that says nothing to callers.

use std::{fmt, str::FromStr};

use proto::UserId;
use store::ledger::Place;

const NUMBER_DIGITS: usize = 16;

/// Where a page goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) Place);

/// What was given is no cursor.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no cursor: pass next_cursor of an earlier page as it is, or leave it out")]
pub(crate) struct InvalidCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}", self.0.version, self.0.user.get())
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 2 * NUMBER_DIGITS || !text.bytes().all(plain) {
            return Err(InvalidCursor);
        }
        let (version, user) = text.split_at(NUMBER_DIGITS);
        let number = |digits| i64::from_str_radix(digits, 16).map_err(|_| InvalidCursor);
        let user = UserId::new(number(user)?).map_err(|_| InvalidCursor)?;
        Ok(Self(Place { version: number(version)?, user }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_cursor_is_read_as_it_was_given(version in 0..=i64::MAX, user in 1..=i64::MAX) {
            let cursor = Cursor(Place { version, user: UserId::new(user).unwrap() });
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }

        #[test]
        fn what_is_read_was_given(text in "[0-9a-gA-F+-]{0,33}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string(), text);
            }
        }
    }
}
