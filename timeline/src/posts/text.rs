//! The text and the title of a post. Both are in Unicode's form NFC, so that what looks the same is the same.

use unicode_normalization::UnicodeNormalization as _;
use unicode_segmentation::UnicodeSegmentation as _;

/// One character can be made of many marks; this bounds them.
const TEXT_BYTES_MAX: usize = 8 * 1024;
const TITLE_CHARACTERS_MAX: usize = 200;
/// The same for a title.
const TITLE_BYTES_MAX: usize = 4 * 1024;

/// A text that can be posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(String);

/// What was given cannot be posted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidText {
    #[error("must not be empty: 1 to {max} characters")]
    Empty { max: usize },
    #[error("must be at most {max} characters, and has {found}")]
    TooLong { max: usize, found: usize },
    #[error("must be at most {max} bytes, and has {found}")]
    TooManyBytes { max: usize, found: usize },
    #[error("must not contain control characters{but}, and has U+{found:04X}")]
    Control { but: &'static str, found: u32 },
}

impl Text {
    /// A text of 1 to `max` characters as people count: a family emoji is one character, whatever it is made of.
    pub(super) fn new(text: &str, max: usize) -> Result<Self, InvalidText> {
        let but = " but line feeds and tabs";
        checked(text, (max, TEXT_BYTES_MAX), but, |letter| matches!(letter, '\n' | '\t')).map(Self)
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

/// A title that a post can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Title(String);

impl Title {
    pub(super) fn new(text: &str) -> Result<Self, InvalidText> {
        checked(text.trim(), (TITLE_CHARACTERS_MAX, TITLE_BYTES_MAX), "", |_| false).map(Self)
    }
}

impl From<Title> for String {
    fn from(title: Title) -> Self {
        title.0
    }
}

fn checked(
    text: &str,
    (max, bytes_max): (usize, usize),
    but: &'static str,
    is_allowed: impl Fn(char) -> bool,
) -> Result<String, InvalidText> {
    // Before anything that costs more: a request may have a megabyte.
    if text.len() > bytes_max {
        return Err(InvalidText::TooManyBytes { max: bytes_max, found: text.len() });
    }
    // How some systems end their lines is no business of readers.
    let text: String = text.replace("\r\n", "\n").nfc().collect();
    if text.trim().is_empty() {
        return Err(InvalidText::Empty { max });
    }
    if let Some(found) = text.chars().find(|letter| letter.is_control() && !is_allowed(*letter)) {
        return Err(InvalidText::Control { but, found: found.into() });
    }
    // A few letters become longer by the form.
    if text.len() > bytes_max {
        return Err(InvalidText::TooManyBytes { max: bytes_max, found: text.len() });
    }
    let found = text.graphemes(true).count();
    if found > max { Err(InvalidText::TooLong { max, found }) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_normalization::is_nfc;

    use super::*;

    const MAX: usize = 300;

    fn text(text: &str) -> Result<String, InvalidText> {
        Text::new(text, MAX).map(String::from)
    }

    #[test]
    fn characters_are_counted_as_people_count_them() {
        for one in ["a", "é", "e\u{301}", "👩‍👩‍👧‍👦", "🇯🇵", "한"] {
            text(&one.repeat(300)).unwrap();
            assert_eq!(text(&one.repeat(301)), Err(InvalidText::TooLong { max: MAX, found: 301 }), "{one}");
        }
        assert_eq!(Text::new("abc", 2), Err(InvalidText::TooLong { max: 2, found: 3 }));
    }

    #[test]
    fn nothing_is_no_text_and_marks_without_end_are_refused() {
        for empty in ["", " ", "\n\t"] {
            assert_eq!(text(empty), Err(InvalidText::Empty { max: MAX }));
        }
        let marks = format!("e{}", "\u{301}".repeat(TEXT_BYTES_MAX));
        assert!(matches!(text(&marks), Err(InvalidText::TooManyBytes { .. })));
    }

    #[test]
    fn what_looks_the_same_is_the_same_and_lines_end_one_way() {
        assert_eq!(text("Cafe\u{301}"), Ok("Café".to_owned()));
        assert_eq!(text("one\r\ntwo\n\tthree"), Ok("one\ntwo\n\tthree".to_owned()));
        for (refused, found) in [("a\0b", 0), ("a\rb", 0x0D), ("bell \u{7}", 7), ("\u{85}x", 0x85), ("x\u{7f}", 0x7F)] {
            let but = " but line feeds and tabs";
            assert_eq!(text(refused), Err(InvalidText::Control { but, found }));
        }
    }

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(Title::new(" News ").map(String::from), Ok("News".to_owned()));
        assert!(matches!(Title::new("two\nlines"), Err(InvalidText::Control { found: 0x0A, .. })));
        assert!(Title::new(&"x".repeat(200)).is_ok());
        assert_eq!(Title::new(&"x".repeat(201)), Err(InvalidText::TooLong { max: 200, found: 201 }));
        assert_eq!(Title::new(" "), Err(InvalidText::Empty { max: 200 }));
    }

    proptest! {
        #[test]
        fn whatever_is_taken_is_in_one_form_and_taken_again_as_it_is(given in "\\PC{0,40}|[\\s\\S]{0,40}|(e\u{301}|\r\n|ﬁ|각|\u{1100}\u{1161}){0,40}") {
            if let Ok(once) = text(&given) {
                prop_assert!(is_nfc(&once));
                prop_assert!(!once.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')));
                prop_assert_eq!(text(&once), Ok(once));
            }
        }
    }
}
