//! Language tags as BCP 47 has them (RFC 5646): language, then script, region, variants, extensions and private use. They are
//! checked for their form, which tells nonsense from a tag, and written in the usual case; no registry is asked.

const LANGUAGE_CHARACTERS_MAX: usize = 35;

/// A well-formed tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Language(String);

/// What was given is no tag.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a BCP 47 tag of at most {LANGUAGE_CHARACTERS_MAX} characters, such as en, pt-BR or zh-Hant-TW")]
pub(super) struct InvalidLanguage;

impl Language {
    pub(super) fn new(text: &str) -> Result<Self, InvalidLanguage> {
        if text.len() > LANGUAGE_CHARACTERS_MAX || !text.is_ascii() {
            return Err(InvalidLanguage);
        }
        let small = text.to_ascii_lowercase();
        let mut parts: Vec<String> = small.split('-').map(str::to_owned).collect();
        let is_part = |part: &String| (1..=8).contains(&part.len()) && all(part, |byte| byte.is_ascii_alphanumeric());
        if !parts.iter().all(is_part) || !is_language(&parts[0]) {
            return Err(InvalidLanguage);
        }
        let mut at = 1;
        if let Some(script) = parts.get_mut(at).filter(|part| part.len() == 4 && all(part, is_letter)) {
            script[..1].make_ascii_uppercase();
            at += 1;
        }
        if let Some(region) = parts.get_mut(at).filter(|part| is_region(part)) {
            region.make_ascii_uppercase();
            at += 1;
        }
        while parts.get(at).is_some_and(|part| is_variant(part)) {
            at += 1;
        }
        if has_good_extensions(&parts[at..]) { Ok(Self(parts.join("-"))) } else { Err(InvalidLanguage) }
    }
}

impl From<Language> for String {
    fn from(language: Language) -> Self {
        language.0
    }
}

/// Each begins with a single letter or digit and has at least one part; after an x anything of 1 to 8 may come.
fn has_good_extensions(parts: &[String]) -> bool {
    let mut rest = parts;
    while let [first, behind @ ..] = rest {
        if first.len() != 1 || behind.is_empty() {
            return false;
        }
        if first == "x" {
            return true;
        }
        let length = behind.iter().take_while(|part| part.len() > 1).count();
        if length == 0 {
            return false;
        }
        rest = &behind[length..];
    }
    true
}

fn is_language(part: &str) -> bool {
    matches!(part.len(), 2 | 3) && all(part, is_letter)
}

fn is_region(part: &str) -> bool {
    part.len() == 2 && all(part, is_letter) || part.len() == 3 && all(part, |byte| byte.is_ascii_digit())
}

fn is_variant(part: &str) -> bool {
    part.len() >= 5 || part.len() == 4 && part.as_bytes()[0].is_ascii_digit()
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}

fn all(part: &str, is: impl Fn(u8) -> bool) -> bool {
    part.bytes().all(is)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tags_are_known_by_their_form_and_written_in_the_usual_case() {
        let tags = [
            ("en", "en"),
            ("PT-br", "pt-BR"),
            ("zh-hant-tw", "zh-Hant-TW"),
            ("es-419", "es-419"),
            ("sl-rozaj-biske", "sl-rozaj-biske"),
            ("de-CH-1901", "de-CH-1901"),
            ("en-u-ca-gregory-x-mine", "en-u-ca-gregory-x-mine"),
            ("yue", "yue"),
        ];
        for (given, written) in tags {
            assert_eq!(Language::new(given).map(String::from).as_deref(), Ok(written));
        }
        let no_tags =
            ["", "e", "english", "en_US", "en-", "-en", "en--us", "12", "en-x", "en-u", "en-a-b", "日本", "en-US-us"];
        for given in no_tags {
            assert_eq!(Language::new(given), Err(InvalidLanguage), "{given:?}");
        }
        assert!(Language::new("en-x-123456789").is_err(), "a part has at most 8");
        assert!(Language::new(&format!("en-x-{}", ["abcdefgh"; 4].join("-"))).is_err(), "more than 35");
    }

    proptest! {
        #[test]
        fn whatever_is_taken_is_taken_again_as_it_is(given in "[a-zA-Z0-9-]{0,36}|\\PC{0,8}") {
            if let Ok(once) = Language::new(&given).map(String::from) {
                prop_assert!(once.eq_ignore_ascii_case(&given));
                prop_assert_eq!(Language::new(&once).map(String::from), Ok(once));
            }
        }
    }
}
