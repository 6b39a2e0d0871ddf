//! Names of people.

use unicode_segmentation::UnicodeSegmentation as _;

const HANDLE_CHARACTERS_MIN: usize = 3;
const HANDLE_CHARACTERS_MAX: usize = 30;
const DISPLAY_NAME_CHARACTERS_MAX: usize = 60;
/// One character can be made of many marks; this bounds them.
const DISPLAY_NAME_BYTES_MAX: usize = 1024;

/// A unique name, in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handle(String);

/// What was given is no handle.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {HANDLE_CHARACTERS_MIN} to {HANDLE_CHARACTERS_MAX} characters of a-z, 0-9 and _")]
pub(super) struct InvalidHandle;

impl Handle {
    pub(super) fn new(text: &str) -> Result<Self, InvalidHandle> {
        let small = text.to_ascii_lowercase();
        let fits = (HANDLE_CHARACTERS_MIN..=HANDLE_CHARACTERS_MAX).contains(&small.len())
            && small.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if fits { Ok(Self(small)) } else { Err(InvalidHandle) }
    }
}

impl From<Handle> for String {
    fn from(handle: Handle) -> Self {
        handle.0
    }
}

/// What is shown of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DisplayName(String);

/// What was given cannot be shown.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be at most {DISPLAY_NAME_CHARACTERS_MAX} characters ({DISPLAY_NAME_BYTES_MAX} bytes), without control characters"
)]
pub(super) struct InvalidDisplayName;

impl DisplayName {
    /// The given name; the handle when there is none.
    pub(super) fn new(text: &str, handle: &Handle) -> Result<Self, InvalidDisplayName> {
        Self::or(text, &handle.0)
    }

    /// The given name; something else when there is none.
    pub(super) fn or(text: &str, other: &str) -> Result<Self, InvalidDisplayName> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self(other.to_owned()));
        }
        let fits = text.len() <= DISPLAY_NAME_BYTES_MAX
            && text.graphemes(true).count() <= DISPLAY_NAME_CHARACTERS_MAX
            && !text.chars().any(char::is_control);
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidDisplayName) }
    }
}

impl From<DisplayName> for String {
    fn from(name: DisplayName) -> Self {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_small_letters_digits_and_underscores() {
        assert_eq!(String::from(Handle::new("Ada_1").unwrap()), "ada_1");
        for text in ["", "ab", "a b", "ada!", "ädä", "a-d-a", &"a".repeat(31)] {
            assert_eq!(Handle::new(text), Err(InvalidHandle), "{text:?}");
        }
        Handle::new(&"a".repeat(30)).unwrap();
    }

    #[test]
    fn a_display_name_is_the_handle_when_there_is_none() {
        let handle = Handle::new("ada").unwrap();
        assert_eq!(String::from(DisplayName::new("  ", &handle).unwrap()), "ada");
        assert_eq!(String::from(DisplayName::new(" Ada L. ", &handle).unwrap()), "Ada L.");
        DisplayName::new(&"👩‍🚀".repeat(60), &handle).unwrap();
        for text in ["a\u{7}b", &"x".repeat(61), &format!("e{}", "\u{301}".repeat(2000))] {
            assert_eq!(DisplayName::new(text, &handle), Err(InvalidDisplayName), "{text:?}");
        }
    }
}
