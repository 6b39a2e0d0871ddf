//! E-mail addresses.

const BYTES_MAX: usize = 254;
const LOCAL_BYTES_MAX: usize = 64;
const LABEL_BYTES_MAX: usize = 63;
/// What an address has only in a quoted form that nobody uses, or when it is really a list or a name with an address.
const REFUSED: &str = "@,;:<>()[]\\\"";

/// An address that mail can be sent to, as far as its form tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Email(String);

/// What was given is no e-mail address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address of at most {BYTES_MAX} bytes, such as ada@example.com")]
pub(super) struct InvalidEmail;

impl Email {
    /// The address; none where there is only space.
    pub(super) fn optional(text: &str) -> Result<Option<Self>, InvalidEmail> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(None);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail)?;
        let fits = text.len() <= BYTES_MAX && is_local(local) && is_domain(domain);
        if fits { Ok(Some(Self(text.to_owned()))) } else { Err(InvalidEmail) }
    }
}

impl From<Email> for String {
    fn from(email: Email) -> Self {
        email.0
    }
}

fn is_local(text: &str) -> bool {
    let is_allowed = |one: char| !one.is_whitespace() && !one.is_control() && !REFUSED.contains(one);
    (1..=LOCAL_BYTES_MAX).contains(&text.len()) && text.chars().all(is_allowed)
}

/// At least two labels: mail to a name without a dot stays within somebody's own network.
fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.chars().all(|one| one.is_alphanumeric() || one == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.contains('.') && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_people_have_are_taken() {
        for text in ["ada@example.com", "a.b+c@mail.example.co.uk", "o'neil@example.ie", "用户@例子.公司", "x@1.de"]
        {
            assert_eq!(Email::optional(text), Ok(Some(Email(text.into()))));
        }
        assert_eq!(Email::optional(" Ada@Example.com "), Ok(Some(Email("Ada@Example.com".into()))));
        assert_eq!(Email::optional("  "), Ok(None));
        let longest = format!("a@{}.{}.{}.{}", "b".repeat(63), "c".repeat(63), "d".repeat(63), "e".repeat(60));
        assert_eq!(longest.len(), 254);
        assert!(Email::optional(&longest).is_ok());
        assert_eq!(Email::optional(&format!("{longest}e")), Err(InvalidEmail));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "ada",
            "@example.com",
            "ada@",
            "ada@localhost",
            "ada@example.",
            "ada@.com",
            "ada@-example.com",
            "a b@example.com",
            "ada@exam ple.com",
            "ada@@example.com",
            "ada@example.com, lin@example.com",
            "Ada <ada@example.com>",
            "ada@example.com\nBcc: lin@example.com",
            "a\0b@example.com",
            &format!("{}@example.com", "a".repeat(65)),
        ] {
            assert_eq!(Email::optional(text), Err(InvalidEmail), "{text:?}");
        }
    }
}
