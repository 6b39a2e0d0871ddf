//! Links, handles and tags in a text. They are found by the text alone, each time it is shown: nothing is stored, and nobody
//! is looked up. Offsets are in Unicode code points, which every client's language can count; bytes and UTF-16 units differ
//! from one to the next.

use proto::freshet::post::v1::{Entity, entity::What};
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

const HANDLE_CHARACTERS_MIN: usize = 3;
const HANDLE_CHARACTERS_MAX: usize = 30;
const TAG_CHARACTERS_MAX: usize = 100;
const SCHEMES: [&str; 2] = ["https://", "http://"];

/// All of them, in the order of the text; none overlaps another.
pub(super) fn entities(text: &str) -> Vec<Entity> {
    let letters: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    while at < letters.len() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let rest = &letters[at..];
        let here = link(before, rest).or_else(|| handle(before, rest)).or_else(|| tag(before, rest));
        match here {
            Some((length, what)) => {
                found.push(Entity { start: offset(at), end: offset(at + length), what: Some(what) });
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// A text's length is limited far below.
fn offset(at: usize) -> i32 {
    i32::try_from(at).unwrap_or(i32::MAX)
}

/// From http:// or https:// to the next space; what closes a sentence or a bracket around it is no part of it.
fn link(before: Option<char>, rest: &[char]) -> Option<(usize, What)> {
    if before.is_some_and(is_of_a_word) {
        return None;
    }
    let begins = |scheme: &str| {
        rest.len() > scheme.len()
            && scheme.chars().zip(rest).all(|(wanted, found)| wanted == found.to_ascii_lowercase())
    };
    let scheme = SCHEMES.into_iter().find(|scheme| begins(scheme))?.len();
    let ends = |letter: &char| letter.is_whitespace() || letter.is_control() || matches!(letter, '<' | '>' | '"');
    let mut length = rest.iter().position(ends).unwrap_or(rest.len());
    while length > scheme && is_closing(&rest[..length]) {
        length -= 1;
    }
    rest[scheme..length].first().filter(|first| first.is_alphanumeric() || **first == '[')?;
    Some((length, What::Url(rest[..length].iter().collect())))
}

/// Whether a link's last letter closes what stands around it. A bracket that was opened within the link belongs to it.
fn is_closing(link: &[char]) -> bool {
    let count = |wanted: char| link.iter().filter(|letter| **letter == wanted).count();
    match link.last() {
        Some('.' | ',' | ';' | ':' | '!' | '?' | '\'' | '…' | '。' | '、' | '»' | '”' | '’') => true,
        Some(')') => count(')') > count('('),
        Some(']') => count(']') > count('['),
        Some('}') => count('}') > count('{'),
        _ => false,
    }
}

/// @name, or @name@server for someone of another server.
fn handle(before: Option<char>, rest: &[char]) -> Option<(usize, What)> {
    let is_name = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
    if rest[0] != '@' || before.is_some_and(|before| is_of_a_word(before) || matches!(before, '@' | '/' | '.')) {
        return None;
    }
    let name = rest[1..].iter().take_while(|letter| is_name(letter)).count();
    let end = 1 + name;
    // A name goes on in another script: it is no handle of ours.
    let goes_on = rest.get(end).is_some_and(|letter| is_of_a_word(*letter));
    if !(HANDLE_CHARACTERS_MIN..=HANDLE_CHARACTERS_MAX).contains(&name) || goes_on {
        return None;
    }
    let end = end + server(&rest[end..]);
    Some((end, What::Handle(rest[1..end].iter().collect::<String>().to_ascii_lowercase())))
}

/// The length of @server behind a name: names with dots between them; 0 when there is none.
fn server(rest: &[char]) -> usize {
    if rest.first() != Some(&'@') {
        return 0;
    }
    let is_host = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.');
    let mut length = rest[1..].iter().take_while(|letter| is_host(letter)).count();
    while length > 0 && !rest[length].is_ascii_alphanumeric() {
        length -= 1;
    }
    let host: String = rest[1..=length].iter().collect();
    let is_good = host.contains('.') && host.split('.').all(|name| !name.is_empty());
    if is_good { 1 + length } else { 0 }
}

/// # and letters, digits, marks and underscores of any script; not digits alone, which number something.
fn tag(before: Option<char>, rest: &[char]) -> Option<(usize, What)> {
    if rest[0] != '#' || before.is_some_and(|before| is_of_a_word(before) || matches!(before, '#' | '&' | '/')) {
        return None;
    }
    let length = rest[1..].iter().take_while(|letter| is_of_a_word(**letter)).count();
    let name = &rest[1..=length];
    let says_something = name.iter().any(|letter| letter.is_alphabetic());
    if !says_something || length > TAG_CHARACTERS_MAX || is_combining_mark(name[0]) {
        return None;
    }
    Some((1 + length, What::Tag(name.iter().collect::<String>().to_lowercase().nfc().collect())))
}

fn is_of_a_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || is_combining_mark(letter)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was found, each as the text has it and as it is told.
    fn found(text: &str) -> Vec<(String, String)> {
        let letters: Vec<_> = text.chars().collect();
        let place = |offset: i32| usize::try_from(offset).unwrap();
        let told = |entity: Entity| {
            let part = letters[place(entity.start)..place(entity.end)].iter().collect();
            match entity.what.unwrap() {
                What::Url(url) => (part, format!("url {url}")),
                What::Handle(handle) => (part, format!("handle {handle}")),
                What::Tag(tag) => (part, format!("tag {tag}")),
            }
        };
        entities(text).into_iter().map(told).collect()
    }

    fn one(text: &str) -> Option<(String, String)> {
        let mut found = found(text);
        assert!(found.len() < 2, "{found:?}");
        found.pop()
    }

    #[test]
    fn each_is_found_where_it_stands() {
        let text = "🌊 @Ada_1 wrote #Größe: see https://example.com/a(b)?c=1#d, and @eve@far.example.";
        let expected = [
            ("@Ada_1", "handle ada_1"),
            ("#Größe", "tag größe"),
            ("https://example.com/a(b)?c=1#d", "url https://example.com/a(b)?c=1#d"),
            ("@eve@far.example", "handle eve@far.example"),
        ];
        assert_eq!(found(text), expected.map(|(part, told)| (part.to_owned(), told.to_owned())));
        // In code points: the wave is one, as the letters are.
        assert_eq!((entities(text)[0].start, entities(text)[0].end), (2, 8));
    }

    #[test]
    fn what_closes_a_sentence_is_no_part_of_a_link() {
        for around in ["X", "(X)", "X.", "see X!", "«X»", "X…", "[X]", "\"X\"", "X\n"] {
            let link = "http://example.com/path_(of)_it";
            let (part, _) = one(&around.replace('X', link)).unwrap_or_else(|| panic!("{around}"));
            assert_eq!(part, link, "{around}");
        }
        for nothing in ["http://", "https:// x", "xhttp://a.b", "ftp://a.b", "http:/a", "http://."] {
            assert_eq!(one(nothing), None, "{nothing}");
        }
        assert_eq!(one("HTTPS://Example.COM").unwrap().1, "url HTTPS://Example.COM");
    }

    #[test]
    fn what_only_looks_like_one_is_left_alone() {
        let none =
            ["a@example.com", "@ad", "@", "#", "#1", "a#b", "##x#", "&#x27;", "@@ada", "@наша", "@adaж", "#_", "@-ada"];
        for text in none {
            assert_eq!(found(text), [], "{text}");
        }
        assert_eq!(one(&format!("@{}", "a".repeat(31))), None);
        assert_eq!(one(&format!("#{}", "a".repeat(101))), None);
        assert_eq!(one("#2026in").unwrap().1, "tag 2026in");
        assert_eq!(one("#日本語。").unwrap().0, "#日本語");
        assert_eq!(one("#हिन्दी").unwrap().0, "#हिन्दी");
        assert_eq!(one("@ada@x").unwrap().1, "handle ada");
    }

    proptest! {
        #[test]
        fn whatever_the_text_parts_are_in_order_and_never_overlap(
            text in "([@#]|https?://|[a-z_.]{1,4}|\\PC|[ \\n()]){0,60}",
        ) {
            let (mut last, length) = (0, i32::try_from(text.chars().count()).unwrap());
            for entity in entities(&text) {
                prop_assert!(last <= entity.start && entity.start < entity.end && entity.end <= length, "{:?}", entity);
                prop_assert!(entity.what.is_some());
                last = entity.end;
            }
        }
    }
}
