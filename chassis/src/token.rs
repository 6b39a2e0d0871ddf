//! Internal tokens: short-lived signed JWTs that say who calls, as a person or as a service. Keys come from config; the first
//! one signs and all are accepted, so that a key is rotated by adding the new one behind, then moving it to the front, then
//! taking the old one away.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, decode_header, encode};
use proto::{
    UserId,
    access::{Access, Rule},
};
use serde::{Deserialize, Serialize};

use crate::{Clock, Error, Reason};

const ISSUER: &str = "freshet";
const AUDIENCE: &str = "freshet-internal";
const KEY_BYTES_MIN: usize = 32;
/// How far two pods' clocks may be apart before a fresh token looks as if it came from the future.
const LEEWAY_S: i64 = 2;
/// The longest life of a token, in seconds: a stolen one is soon worthless.
pub const TTL_MAX: Duration = Duration::from_secs(24 * 3600);
/// The life of the tokens that pods make for each other's calls.
pub const CALL_TTL: Duration = Duration::from_secs(60);

/// What [`Keyring::parse`] takes, for error messages.
pub const KEYS_ALLOWED: &str =
    "a comma-separated list of NAME:SECRET, the signing key first; SECRET is base64url of at least 32 bytes";

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A person.
    User(UserId),
    /// A service, by its name.
    Service(String),
}

impl Caller {
    /// Checks the method's rule against a request: a person acts for themselves only, a service for anyone.
    pub fn may<Q: Access>(&self, request: &Q) -> Result<(), Error> {
        let Self::User(user) = self else { return Ok(()) };
        match Q::RULE {
            Rule::Anyone => Ok(()),
            Rule::Service => Err(Error::new(Reason::NotAllowed, "only services may call this method")),
            Rule::ActsFor(field) => {
                let subject: UserId =
                    request.subject().unwrap_or_default().parse().map_err(|rule| Error::invalid(field, rule))?;
                if subject == *user {
                    return Ok(());
                }
                Err(Error::new(Reason::NotAllowed, format!("{field} must be the token's own user, {user}")))
            }
        }
    }

    /// Whose eyes a read is for: a person's own; for a service those of whom it names, or nobody's in particular.
    pub fn viewer(&self, viewer_id: Option<&str>) -> Result<Option<UserId>, Error> {
        let named = viewer_id.map(str::parse).transpose().map_err(|rule| Error::invalid("viewer_id", rule))?;
        match self {
            Self::Service(_) => Ok(named),
            Self::User(user) if named.is_none_or(|named| named == *user) => Ok(Some(*user)),
            Self::User(user) => {
                Err(Error::new(Reason::NotAllowed, format!("viewer_id must be the token's own user, {user}")))
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: String,
    act: Act,
    iat: i64,
    exp: i64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Act {
    User,
    Service,
}

#[derive(Clone)]
struct Key {
    name: String,
    encoding: EncodingKey,
    decoding: DecodingKey,
}

/// The keys that tokens are signed with. Without keys nothing can be signed and every token is refused.
#[derive(Clone)]
pub struct Keyring {
    keys: Vec<Key>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.name)).finish()
    }
}

impl Keyring {
    /// Keys in the form of the config; `None` when it is not that form.
    #[must_use]
    pub fn parse(text: &str, clock: Arc<dyn Clock>) -> Option<Self> {
        let keys = text.split(',').map(|one| parse_key(one.trim())).collect::<Option<Vec<_>>>()?;
        let names: BTreeSet<_> = keys.iter().map(|key| &key.name).collect();
        (names.len() == keys.len()).then_some(Self { keys, clock })
    }

    /// Signs a token for a caller.
    pub fn sign(&self, caller: &Caller, ttl: Duration) -> Result<String, Error> {
        let key = self.keys.first().ok_or_else(|| Error::internal("there is no key to sign tokens with"))?;
        let (act, sub) = match caller {
            Caller::User(user) => (Act::User, user.to_string()),
            Caller::Service(name) => (Act::Service, name.clone()),
        };
        let iat = self.clock.unix_ms() / 1000;
        let exp = iat + i64::try_from(ttl.min(TTL_MAX).as_secs()).unwrap_or_default();
        let claims = Claims { iss: ISSUER.into(), aud: AUDIENCE.into(), sub, act, iat, exp };
        let header = Header { kid: Some(key.name.clone()), ..Header::new(Algorithm::HS256) };
        encode(&header, &claims, &key.encoding).map_err(Error::internal)
    }

    /// Who the bearer of a token is.
    pub fn verify(&self, token: &str) -> Result<Caller, Error> {
        let invalid = |why: &str| Error::new(Reason::TokenInvalid, format!("the token is not valid: {why}"));
        let header = decode_header(token).map_err(|_| invalid("it is no signed JWT"))?;
        let name = header.kid.unwrap_or_default();
        let key = self.keys.iter().find(|key| key.name == name).ok_or_else(|| invalid("its key is not known here"))?;
        let claims = decode::<Claims>(token, &key.decoding, &validation())
            .map_err(|cause| invalid(&cause.to_string().to_lowercase()))?
            .claims;
        let now = self.clock.unix_ms() / 1000;
        if claims.exp <= now {
            return Err(Error::new(Reason::TokenExpired, "the token has expired; get a new one"));
        }
        if claims.iat > now + LEEWAY_S {
            return Err(invalid("it was made in the future"));
        }
        match claims.act {
            Act::User => claims.sub.parse().map(Caller::User).map_err(|_| invalid("its subject is no user id")),
            Act::Service => Ok(Caller::Service(claims.sub)),
        }
    }
}

fn parse_key(text: &str) -> Option<Key> {
    let (name, secret) = text.split_once(':')?;
    let secret = URL_SAFE_NO_PAD.decode(secret.trim_end_matches('=')).ok()?;
    let fits = !name.is_empty() && secret.len() >= KEY_BYTES_MIN;
    let (encoding, decoding) = (EncodingKey::from_secret(&secret), DecodingKey::from_secret(&secret));
    fits.then(|| Key { name: name.to_owned(), encoding, decoding })
}

fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    validation.set_required_spec_claims(&["iss", "aud", "sub", "exp"]);
    // The time is checked against our own clock.
    validation.validate_exp = false;
    validation
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Manual;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn secret(byte: u8) -> String {
        URL_SAFE_NO_PAD.encode([byte; 32])
    }

    fn keyring(keys: &str, clock: &Manual) -> Keyring {
        Keyring::parse(keys, Arc::new(clock.clone())).unwrap()
    }

    #[test]
    fn a_token_says_who_calls_until_it_expires() {
        let clock = Manual::at_unix_ms(NOW_MS);
        let ring = keyring(&format!("a:{}", secret(1)), &clock);
        for caller in [Caller::User(UserId::new(42).unwrap()), Caller::Service("edge".into())] {
            let token = ring.sign(&caller, Duration::from_secs(60)).unwrap();
            assert_eq!(ring.verify(&token), Ok(caller));
        }
        let token = ring.sign(&Caller::Service("edge".into()), Duration::from_secs(60)).unwrap();
        clock.turn_ms(59_000);
        assert!(ring.verify(&token).is_ok());
        clock.turn_ms(1_000);
        assert_eq!(ring.verify(&token).unwrap_err().reason(), Reason::TokenExpired);
    }

    #[test]
    fn keys_rotate_without_a_moment_of_refusal() {
        let clock = Manual::at_unix_ms(NOW_MS);
        let (old, new) = (format!("old:{}", secret(1)), format!("new:{}", secret(2)));
        let stages =
            [old.clone(), format!("{old},{new}"), format!("{new},{old}"), new].map(|keys| keyring(&keys, &clock));
        for pair in stages.windows(2) {
            for (signer, verifier) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
                let token = signer.sign(&Caller::Service("edge".into()), CALL_TTL).unwrap();
                assert!(verifier.verify(&token).is_ok());
            }
        }
        let token = stages[0].sign(&Caller::Service("edge".into()), CALL_TTL).unwrap();
        assert_eq!(stages[3].verify(&token).unwrap_err().reason(), Reason::TokenInvalid);
    }

    #[test]
    fn forged_and_foreign_tokens_are_refused() {
        let clock = Manual::at_unix_ms(NOW_MS);
        let ring = keyring(&format!("a:{}", secret(1)), &clock);
        let other = keyring(&format!("a:{}", secret(9)), &clock);
        let foreign = other.sign(&Caller::Service("edge".into()), CALL_TTL).unwrap();
        let key = EncodingKey::from_secret(&[1; 32]);
        let header = Header { kid: Some("a".into()), ..Header::new(Algorithm::HS256) };
        let exp = NOW_MS / 1000 + 60;
        let mut claims =
            Claims { iss: ISSUER.into(), aud: "elsewhere".into(), sub: "x".into(), act: Act::Service, iat: 0, exp };
        let wrong_audience = encode(&header, &claims, &key).unwrap();
        claims.aud = AUDIENCE.into();
        claims.iat = NOW_MS / 1000 + 3600;
        let from_the_future = encode(&header, &claims, &key).unwrap();
        for token in [foreign.as_str(), &wrong_audience, &from_the_future, "", "a.b.c"] {
            assert_eq!(ring.verify(token).unwrap_err().reason(), Reason::TokenInvalid, "{token}");
        }
    }

    #[test]
    fn keys_of_another_form_are_refused() {
        let clock: Arc<dyn Clock> = Arc::new(Manual::at_unix_ms(NOW_MS));
        let (good, short) = (secret(1), URL_SAFE_NO_PAD.encode([1; 31]));
        for text in ["", "a", "a:", &format!("a:{short}"), &format!(":{good}"), &format!("a:{good},a:{good}"), "a:!!"] {
            assert!(Keyring::parse(text, clock.clone()).is_none(), "{text}");
        }
    }
}
