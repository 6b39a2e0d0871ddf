//! Passwords: argon2id, hashed off the async threads, few at a time and with few waiting, so that a flood of sign-ins does
//! not stall reads.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher as _, PasswordVerifier as _},
};
use chassis::{Error, Random, Reason, config::Keys};
use tokio::sync::Semaphore;

const CHARACTERS_MIN: usize = 10;
const CHARACTERS_MAX: usize = 256;
const SALT_BYTES: usize = 16;
/// After how long somebody for whom there was no place may find one.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What many people use, in small letters. A guesser tries these first.
static COMMON: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| include_str!("common_passwords.txt").lines().collect());

/// How passwords are hashed. The defaults are OWASP's.
#[derive(Clone, Debug)]
pub(super) struct Config {
    memory_kib: u32,
    iterations: u32,
    lanes: u32,
    at_once: usize,
    waiting: usize,
}

impl Config {
    pub(super) fn read(keys: &mut Keys) -> Self {
        let memory = keys.number("people.argon2_memory_kib", 19 * 1024, 8..=1 << 22, "KiB of memory a password hash");
        let iterations = keys.number("people.argon2_iterations", 2, 1..=1000, "passes over that memory");
        let lanes =
            keys.number("people.argon2_lanes", 1, 1..=64, "lanes of a password hash, each of 8 KiB at the least");
        if lanes.saturating_mul(8) > memory {
            keys.refuse(format!("people.argon2_lanes = {lanes}: needs 8 KiB of people.argon2_memory_kib for each"));
        }
        let at_once = keys.number("people.hashings_max", 2, 1..=1024, "passwords hashed at the same time");
        let about = "passwords that wait to be hashed; past it callers are told to come back";
        let waiting = keys.number("people.hashings_waiting_max", 128, 0..=65_536, about);
        Self {
            memory_kib: u32::try_from(memory).unwrap_or(u32::MAX),
            iterations: u32::try_from(iterations).unwrap_or(u32::MAX),
            lanes: u32::try_from(lanes).unwrap_or(u32::MAX),
            at_once: usize::try_from(at_once).unwrap_or(usize::MAX),
            waiting: usize::try_from(waiting).unwrap_or(usize::MAX),
        }
    }
}

/// A password in clear, on its way to the hasher. It is never shown.
pub(super) struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(redacted)")
    }
}

/// Why a password is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidPassword {
    #[error("must be {CHARACTERS_MIN} to {CHARACTERS_MAX} characters")]
    Length,
    #[error("must be another one: this is among those that most people use, and that are guessed first")]
    Common,
}

impl Password {
    /// A password that someone chooses.
    pub(super) fn chosen(text: String) -> Result<Self, InvalidPassword> {
        if !(CHARACTERS_MIN..=CHARACTERS_MAX).contains(&text.chars().count()) {
            return Err(InvalidPassword::Length);
        }
        let is_common = COMMON.contains(text.to_lowercase().as_str());
        if is_common { Err(InvalidPassword::Common) } else { Ok(Self(text)) }
    }

    /// A password that someone claims to have. Only its length is limited: whether it could be one is not told.
    pub(super) fn claimed(text: String) -> Result<Self, InvalidPassword> {
        if text.chars().count() <= CHARACTERS_MAX { Ok(Self(text)) } else { Err(InvalidPassword::Length) }
    }
}

/// What became of a password that someone claimed to have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Whether it fits.
    pub(super) fits: bool,
    /// Another hash of it, where it fits and its hash was not made as hashes are made now.
    pub(super) better: Option<String>,
}

/// Hashes and verifies.
pub(super) struct Hasher {
    argon2: Argon2<'static>,
    random: Arc<dyn Random>,
    /// Of those who are hashed and those who wait.
    places: Arc<Semaphore>,
    permits: Arc<Semaphore>,
    /// What an unknown handle is verified against.
    nobodys_hash: String,
}

impl Hasher {
    pub(super) fn new(config: &Config, random: Arc<dyn Random>) -> Result<Self, Error> {
        let params = Params::new(config.memory_kib, config.iterations, config.lanes, None).map_err(Error::internal)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let nobodys_hash = hash(&argon2, b"nobody", &salt(&*random))?;
        let places = Arc::new(Semaphore::new(config.at_once + config.waiting));
        Ok(Self { argon2, random, places, permits: Arc::new(Semaphore::new(config.at_once)), nobodys_hash })
    }

    /// The hash to store.
    pub(super) async fn hash(&self, password: Password) -> Result<String, Error> {
        let (argon2, salt) = (self.argon2.clone(), salt(&*self.random));
        self.off_thread(move || hash(&argon2, password.0.as_bytes(), &salt)).await?
    }

    /// Whether the password fits the hash. Without one it does the same work and says no.
    pub(super) async fn verify(&self, password: Password, stored: Option<String>) -> Result<Verdict, Error> {
        let (argon2, known, salt) = (self.argon2.clone(), stored.is_some(), salt(&*self.random));
        let as_now = parameters(&self.nobodys_hash).to_owned();
        let stored = stored.unwrap_or_else(|| self.nobodys_hash.clone());
        let work = move || {
            let fits = argon2.verify_password(password.0.as_bytes(), stored.as_str()).is_ok() && known;
            let outdated = fits && parameters(&stored) != as_now;
            let better = outdated.then(|| hash(&argon2, password.0.as_bytes(), &salt)).transpose()?;
            Ok(Verdict { fits, better })
        };
        self.off_thread(work).await?
    }

    /// The place and the permit go with the work: a caller that gave up has stopped waiting, and not the hashing.
    async fn off_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let full = |_| {
            let message = "too many people sign in at the moment: come back in a second";
            Error::new(Reason::Overloaded, message).with_retry_after(RETRY_AFTER)
        };
        let place = self.places.clone().try_acquire_owned().map_err(full)?;
        let permit = self.permits.clone().acquire_owned().await.map_err(Error::internal)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop((permit, place));
            done
        });
        done.await.map_err(Error::internal)
    }
}

/// How a hash was made: `$argon2id$v=19$m=19456,t=2,p=1` of the whole.
fn parameters(hash: &str) -> &str {
    hash.match_indices('$').nth(3).map_or(hash, |(end, _)| &hash[..end])
}

fn salt(random: &dyn Random) -> [u8; SALT_BYTES] {
    let mut salt = [0; SALT_BYTES];
    random.fill(&mut salt);
    salt
}

fn hash(argon2: &Argon2<'_>, password: &[u8], salt: &[u8]) -> Result<String, Error> {
    argon2.hash_password_with_salt(password, salt).map(|hash| hash.to_string()).map_err(Error::internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config { memory_kib: 64, iterations: 1, lanes: 1, at_once: 1, waiting: 1 };

    fn hasher(config: &Config) -> Hasher {
        Hasher::new(config, Arc::new(chassis::random::Seeded::new(1))).unwrap()
    }

    fn password(text: &str) -> Password {
        Password::chosen(text.into()).unwrap()
    }

    #[tokio::test]
    async fn a_password_fits_its_own_hash_only() {
        let hasher = hasher(&CONFIG);
        let hash = hasher.hash(password("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{hash}");
        let verify = async |text, hash: Option<&String>| hasher.verify(password(text), hash.cloned()).await.unwrap();
        assert_eq!(verify("correct horse", Some(&hash)).await, Verdict { fits: true, better: None });
        let no = Verdict { fits: false, better: None };
        assert_eq!(verify("battery staple", Some(&hash)).await, no);
        assert_eq!(verify("correct horse", None).await, no);
        assert_ne!(hasher.hash(password("correct horse")).await.unwrap(), hash, "each hash has its own salt");
    }

    #[tokio::test]
    async fn a_hash_of_other_parameters_still_fits_and_is_replaced() {
        let now = hasher(&CONFIG);
        for config in
            [Config { iterations: 2, ..CONFIG }, Config { memory_kib: 128, ..CONFIG }, Config { lanes: 2, ..CONFIG }]
        {
            let old = hasher(&config).hash(password("correct horse")).await.unwrap();
            let verdict = now.verify(password("correct horse"), Some(old.clone())).await.unwrap();
            assert!(verdict.fits);
            let better = verdict.better.expect("another hash");
            assert!(better.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{better}");
            assert!(now.verify(password("correct horse"), Some(better)).await.unwrap().fits);
            // Only whoever has the password can have it hashed.
            let verdict = now.verify(password("battery staple"), Some(old)).await.unwrap();
            assert_eq!(verdict, Verdict { fits: false, better: None });
        }
    }

    #[tokio::test]
    async fn whoever_finds_no_place_to_wait_is_told_when_to_come_back() {
        let hasher = hasher(&CONFIG);
        let busy = hasher.permits.clone().acquire_owned().await.unwrap();
        let (first, second) = (hasher.hash(password("correct horse")), hasher.hash(password("correct horse")));
        let (mut first, mut second) = (Box::pin(first), Box::pin(second));
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
        let refused = hasher.hash(password("correct horse")).await.unwrap_err();
        assert_eq!((refused.reason(), refused.retry_after()), (Reason::Overloaded, Some(RETRY_AFTER)));
        drop(busy);
        assert!(first.await.is_ok() && second.await.is_ok());
        assert!(hasher.hash(password("correct horse")).await.is_ok());
    }

    #[test]
    fn passwords_have_a_length_and_are_not_shown() {
        assert_eq!(Password::chosen("x".repeat(9)).unwrap_err(), InvalidPassword::Length);
        assert_eq!(Password::chosen("x".repeat(257)).unwrap_err(), InvalidPassword::Length);
        assert_eq!(Password::claimed("x".repeat(257)).unwrap_err(), InvalidPassword::Length);
        assert_eq!(format!("{:?}", password("correct horse")), "(redacted)");
    }

    #[test]
    fn what_most_people_use_is_refused() {
        for text in ["1234567890", "QWERTYUIOP", "Password123", "iLoveYou123", "xxxxxxxxxx"] {
            assert_eq!(Password::chosen(text.into()).unwrap_err(), InvalidPassword::Common, "{text}");
            Password::claimed(text.into()).unwrap();
        }
        assert!(COMMON.len() > 5000);
        for common in &*COMMON {
            assert_eq!(*common, common.to_lowercase(), "it would never be found");
            assert!(common.chars().count() >= CHARACTERS_MIN, "{common} is too short anyway");
        }
    }
}
