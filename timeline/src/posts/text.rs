//! The text of a post.

use unicode_segmentation::UnicodeSegmentation as _;

/// How long a text may be, as people count: a family emoji is one character, whatever it is made of.
const TEXT_CHARACTERS_MAX: usize = 300;
/// One character can be made of many marks; this bounds them.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// A text that can be posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(String);

/// What was given cannot be posted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidText {
    #[error("must not be empty: 1 to {TEXT_CHARACTERS_MAX} characters")]
    Empty,
    #[error("must be at most {TEXT_CHARACTERS_MAX} characters, and has {0}")]
    TooLong(usize),
    #[error("must be at most {TEXT_BYTES_MAX} bytes, and has {0}")]
    TooManyBytes(usize),
    #[error("must not contain the character NUL (U+0000)")]
    Nul,
}

impl Text {
    pub(super) fn new(text: String) -> Result<Self, InvalidText> {
        if text.trim().is_empty() {
            return Err(InvalidText::Empty);
        }
        if text.contains('\0') {
            return Err(InvalidText::Nul);
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(InvalidText::TooManyBytes(text.len()));
        }
        let characters = text.graphemes(true).count();
        if characters > TEXT_CHARACTERS_MAX {
            return Err(InvalidText::TooLong(characters));
        }
        Ok(Self(text))
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_as_people_count_them() {
        for one in ["a", "é", "e\u{301}", "👩‍👩‍👧‍👦", "🇯🇵", "한"] {
            Text::new(one.repeat(300)).unwrap();
            assert_eq!(Text::new(one.repeat(301)), Err(InvalidText::TooLong(301)), "{one}");
        }
    }

    #[test]
    fn nothing_is_no_text_and_marks_without_end_are_refused() {
        for text in ["", " ", "\n\t"] {
            assert_eq!(Text::new(text.into()), Err(InvalidText::Empty));
        }
        let text = format!("e{}", "\u{301}".repeat(TEXT_BYTES_MAX));
        assert!(matches!(Text::new(text), Err(InvalidText::TooManyBytes(_))));
    }
}
