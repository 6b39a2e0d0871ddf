//! Names of people, and what they say of themselves.

use unicode_segmentation::UnicodeSegmentation as _;

const HANDLE_CHARACTERS_MIN: usize = 3;
const HANDLE_CHARACTERS_MAX: usize = 30;
const DISPLAY_NAME_CHARACTERS_MAX: usize = 60;
/// One character can be made of many marks; this bounds them.
const DISPLAY_NAME_BYTES_MAX: usize = 1024;
const BIO_CHARACTERS_MAX: usize = 300;
/// The same for a bio.
const BIO_BYTES_MAX: usize = 8 * 1024;
/// Names that would pass for the product, those who run it, or one of its pages; a line each.
const RESERVED_HANDLES: &str = include_str!("reserved_handles.txt");

/// A unique name, in small letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handle(String);

/// Why a handle is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidHandle {
    #[error("must be {HANDLE_CHARACTERS_MIN} to {HANDLE_CHARACTERS_MAX} characters of a-z, 0-9 and _")]
    Form,
    #[error("must be another one: {0} is reserved")]
    Reserved(String),
}

impl Handle {
    /// A handle that someone chooses.
    pub(super) fn chosen(text: &str) -> Result<Self, InvalidHandle> {
        let handle = Self::new(text)?;
        // Underscores do not tell one from another at a glance.
        let at_a_glance = handle.0.replace('_', "");
        let reserved = RESERVED_HANDLES.lines().any(|word| word == at_a_glance || word == handle.0);
        if reserved { Err(InvalidHandle::Reserved(handle.0)) } else { Ok(handle) }
    }

    /// A handle that someone may have.
    pub(super) fn new(text: &str) -> Result<Self, InvalidHandle> {
        let small = text.to_ascii_lowercase();
        let fits = (HANDLE_CHARACTERS_MIN..=HANDLE_CHARACTERS_MAX).contains(&small.len())
            && small.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if fits { Ok(Self(small)) } else { Err(InvalidHandle::Form) }
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
        Ok(Self::optional(text)?.unwrap_or_else(|| Self(other.to_owned())))
    }

    /// The given name, if there is one.
    pub(super) fn optional(text: &str) -> Result<Option<Self>, InvalidDisplayName> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let fits = text.len() <= DISPLAY_NAME_BYTES_MAX
            && text.graphemes(true).count() <= DISPLAY_NAME_CHARACTERS_MAX
            && !text.chars().any(char::is_control);
        if fits { Ok(Some(Self(text.to_owned()))) } else { Err(InvalidDisplayName) }
    }
}

impl From<DisplayName> for String {
    fn from(name: DisplayName) -> Self {
        name.0
    }
}

/// What people say of themselves; may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bio(String);

/// What was given cannot be a bio.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be at most {BIO_CHARACTERS_MAX} characters ({BIO_BYTES_MAX} bytes), without control characters but new lines"
)]
pub(super) struct InvalidBio;

impl Bio {
    pub(super) fn new(text: &str) -> Result<Self, InvalidBio> {
        let text = text.trim();
        let fits = text.len() <= BIO_BYTES_MAX
            && text.graphemes(true).count() <= BIO_CHARACTERS_MAX
            && !text.chars().any(|one| one.is_control() && one != '\n');
        if fits { Ok(Self(text.to_owned())) } else { Err(InvalidBio) }
    }
}

impl From<Bio> for String {
    fn from(bio: Bio) -> Self {
        bio.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_small_letters_digits_and_underscores() {
        assert_eq!(String::from(Handle::new("Ada_1").unwrap()), "ada_1");
        for text in ["", "ab", "a b", "ada!", "ädä", "a-d-a", &"a".repeat(31)] {
            assert_eq!(Handle::new(text), Err(InvalidHandle::Form), "{text:?}");
        }
        Handle::new(&"a".repeat(30)).unwrap();
    }

    #[test]
    fn reserved_words_are_nobodys_and_still_handles() {
        for text in ["admin", "Admin", "_admin_", "ad_min", "freshet", "support", "root", "api"] {
            assert!(matches!(Handle::chosen(text), Err(InvalidHandle::Reserved(_))), "{text:?}");
            Handle::new(text).unwrap();
        }
        assert_eq!(Handle::chosen("ab"), Err(InvalidHandle::Form));
        Handle::chosen("administrator_of_nothing").unwrap();
        for word in RESERVED_HANDLES.lines() {
            assert!(Handle::new(word).is_ok(), "{word:?} could be nobody's handle anyway");
        }
    }

    #[test]
    fn a_bio_has_up_to_300_characters_and_lines() {
        assert_eq!(String::from(Bio::new(" writes\nsometimes ").unwrap()), "writes\nsometimes");
        assert_eq!(String::from(Bio::new("").unwrap()), "");
        Bio::new(&"👩‍🚀".repeat(300)).unwrap();
        for text in [&"x".repeat(301), "a\u{7}b", &format!("e{}", "\u{301}".repeat(5000))] {
            assert_eq!(Bio::new(text), Err(InvalidBio), "{text:?}");
        }
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
