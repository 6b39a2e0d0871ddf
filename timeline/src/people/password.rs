//! Passwords: argon2id, hashed off the async threads and few at a time, so that a flood of sign-ins does not stall reads.

use std::{fmt, sync::Arc};

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher as _, PasswordVerifier as _},
};
use chassis::{Error, Random, config::Keys};
use tokio::sync::Semaphore;

const CHARACTERS_MIN: usize = 10;
const CHARACTERS_MAX: usize = 256;
const SALT_BYTES: usize = 16;

/// How passwords are hashed. The defaults are OWASP's.
#[derive(Clone, Debug)]
pub(super) struct Config {
    memory_kib: u32,
    iterations: u32,
    at_once: usize,
}

impl Config {
    pub(super) fn read(keys: &mut Keys) -> Self {
        let memory = keys.number("people.argon2_memory_kib", 19 * 1024, 8..=1 << 22, "KiB of memory a password hash");
        let iterations = keys.number("people.argon2_iterations", 2, 1..=1000, "passes over that memory");
        let at_once = keys.number("people.hashings_max", 2, 1..=1024, "passwords hashed at the same time");
        Self {
            memory_kib: u32::try_from(memory).unwrap_or(u32::MAX),
            iterations: u32::try_from(iterations).unwrap_or(u32::MAX),
            at_once: usize::try_from(at_once).unwrap_or(usize::MAX),
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

/// What was given cannot be a password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {CHARACTERS_MIN} to {CHARACTERS_MAX} characters")]
pub(super) struct InvalidPassword;

impl Password {
    /// A password that someone chooses.
    pub(super) fn chosen(text: String) -> Result<Self, InvalidPassword> {
        let fits = (CHARACTERS_MIN..=CHARACTERS_MAX).contains(&text.chars().count());
        if fits { Ok(Self(text)) } else { Err(InvalidPassword) }
    }

    /// A password that someone claims to have. Only its length is limited: whether it could be one is not told.
    pub(super) fn claimed(text: String) -> Result<Self, InvalidPassword> {
        if text.chars().count() <= CHARACTERS_MAX { Ok(Self(text)) } else { Err(InvalidPassword) }
    }
}

/// Hashes and verifies.
pub(super) struct Hasher {
    argon2: Argon2<'static>,
    random: Arc<dyn Random>,
    permits: Arc<Semaphore>,
    /// What an unknown handle is verified against.
    nobodys_hash: String,
}

impl Hasher {
    pub(super) fn new(config: &Config, random: Arc<dyn Random>) -> Result<Self, Error> {
        let params = Params::new(config.memory_kib, config.iterations, 1, None).map_err(Error::internal)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let nobodys_hash = hash(&argon2, b"nobody", &salt(&*random))?;
        Ok(Self { argon2, random, permits: Arc::new(Semaphore::new(config.at_once)), nobodys_hash })
    }

    /// The hash to store.
    pub(super) async fn hash(&self, password: Password) -> Result<String, Error> {
        let (argon2, salt) = (self.argon2.clone(), salt(&*self.random));
        self.off_thread(move || hash(&argon2, password.0.as_bytes(), &salt)).await?
    }

    /// Whether the password fits the hash. Without one it does the same work and says no.
    pub(super) async fn verify(&self, password: Password, hash: Option<String>) -> Result<bool, Error> {
        let (argon2, known) = (self.argon2.clone(), hash.is_some());
        let hash = hash.unwrap_or_else(|| self.nobodys_hash.clone());
        let fits =
            self.off_thread(move || argon2.verify_password(password.0.as_bytes(), hash.as_str()).is_ok()).await?;
        Ok(known && fits)
    }

    async fn off_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let permit = self.permits.clone().acquire_owned().await.map_err(Error::internal)?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        done.await.map_err(Error::internal)
    }
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

    fn hasher() -> Hasher {
        let config = Config { memory_kib: 64, iterations: 1, at_once: 1 };
        Hasher::new(&config, Arc::new(chassis::random::Seeded::new(1))).unwrap()
    }

    fn password(text: &str) -> Password {
        Password::chosen(text.into()).unwrap()
    }

    #[tokio::test]
    async fn a_password_fits_its_own_hash_only() {
        let hasher = hasher();
        let hash = hasher.hash(password("correct horse")).await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{hash}");
        assert!(hasher.verify(password("correct horse"), Some(hash.clone())).await.unwrap());
        assert!(!hasher.verify(password("battery staple"), Some(hash.clone())).await.unwrap());
        assert!(!hasher.verify(password("correct horse"), None).await.unwrap());
        assert_ne!(hasher.hash(password("correct horse")).await.unwrap(), hash, "each hash has its own salt");
    }

    #[test]
    fn passwords_have_a_length_and_are_not_shown() {
        assert_eq!(Password::chosen("x".repeat(9)).unwrap_err(), InvalidPassword);
        assert_eq!(Password::chosen("x".repeat(257)).unwrap_err(), InvalidPassword);
        assert_eq!(Password::claimed("x".repeat(257)).unwrap_err(), InvalidPassword);
        assert_eq!(format!("{:?}", password("correct horse")), "(redacted)");
    }
}
