//! Against guessing: how often passwords may be tried, over all pods, and never so that a stranger shuts a person out.
//!
//! A try counts when it was wrong. Whoever comes from a known source, that is from a device or an address from which the
//! person has come in before, has tries of their own that nobody elsewhere can use up. Everybody else has tries by address,
//! whomever they name, and by address and account. When an account has had many wrong tries from unknown addresses, each of
//! these still has one: so a guesser with many addresses is slowed down, and the person who knows the password gets in from a
//! new place at the first try, however long that goes on.

use std::{net::IpAddr, str::FromStr, sync::Arc, time::Duration};

use chassis::{Error, Random, Reason, config::Keys};
use proto::UserId;
use sha2::{Digest as _, Sha256};
use store::sets::{self, Limit};

/// For how long a source is known after the person came in from it.
const KNOWN_MS: i64 = 90 * 24 * 3600 * 1000;
/// How many tries an unknown address has at an account that has had too many.
const HOT_TRIES_MAX: u32 = 1;
/// How much of an IPv6 address counts: a household, or a rented server, has all addresses below it.
const IPV6_PREFIX_BITS: u32 = 64;

/// How often passwords may be tried.
#[derive(Clone, Debug)]
pub(super) struct Config {
    window: Duration,
    pair_max: u32,
    account_max: u32,
    address_max: u32,
}

impl Config {
    pub(super) fn read(keys: &mut Keys) -> Self {
        let second = Duration::from_secs(1);
        let about = "for how long a wrong password counts";
        let window = keys.duration("people.attempts_window", 900 * second, second..=86_400 * second, about);
        let mut tries =
            |key, default, about| u32::try_from(keys.number(key, default, 1..=10_000, about)).unwrap_or(u32::MAX);
        let about = "wrong passwords within that time, for one account from one address or known device";
        let pair_max = tries("people.attempts_pair_max", 10, about);
        let about = "wrong passwords within that time, for one account, until unknown addresses have one try each";
        let account_max = tries("people.attempts_account_max", 50, about);
        let about = "wrong passwords within that time, from one address, whatever the account";
        let address_max = tries("people.attempts_address_max", 100, about);
        Self { window, pair_max, account_max, address_max }
    }
}

/// Whose password is tried. It need not be anybody's.
pub(super) struct Who(String);

impl Who {
    pub(super) fn with_handle(handle: &str) -> Self {
        Self(digest(&handle.to_ascii_lowercase()))
    }
}

/// From where a person comes.
pub(super) struct Source {
    pub(super) address: Address,
    pub(super) device: Option<DeviceSecret>,
}

/// An address, as far as it tells one person from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address(String);

/// What was given is no address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be the IP address from which the person comes")]
pub(super) struct InvalidAddress;

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let address: IpAddr = text.parse().map_err(|_| InvalidAddress)?;
        Ok(Self(match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => (address.to_bits() >> (u128::BITS - IPV6_PREFIX_BITS)).to_string(),
        }))
    }
}

/// What a device is known by: 256 random bits that it keeps from one sign-in to the next.
#[derive(Clone)]
pub(super) struct DeviceSecret(String);

impl DeviceSecret {
    pub(super) fn new(random: &dyn Random) -> Self {
        Self(random.secret())
    }

    /// The secret that a device sends; what cannot be one is none.
    pub(super) fn claimed(text: String) -> Option<Self> {
        let is_one = text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        is_one.then_some(Self(text))
    }
}

impl From<DeviceSecret> for String {
    fn from(secret: DeviceSecret) -> Self {
        secret.0
    }
}

/// A try that has begun: the places that it has taken.
pub(super) struct Ticket {
    number: u64,
    windows: Vec<String>,
}

impl Ticket {
    /// Ends a try. Only one that was wrong goes on counting: not one that was right, nor one that nobody could judge.
    pub(super) async fn judge<T>(
        self,
        attempts: &Attempts,
        checked: Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        if matches!(checked, Ok(None)) {
            return checked;
        }
        let given_back = attempts.give_back(&self).await;
        let checked = checked?;
        given_back?;
        Ok(checked)
    }
}

/// Counts tries.
pub(super) struct Attempts {
    store: Arc<dyn sets::Attempts>,
    random: Arc<dyn Random>,
    config: Config,
}

impl Attempts {
    pub(super) fn new(store: Arc<dyn sets::Attempts>, random: Arc<dyn Random>, config: Config) -> Self {
        Self { store, random, config }
    }

    /// Begins a try at somebody's password. It counts from now on, so that many at once are no more than may be.
    pub(super) async fn begin(&self, who: &Who, source: &Source) -> Result<Ticket, Error> {
        let mut ticket = Ticket { number: self.random.number(), windows: Vec::new() };
        let Err(wait_ms) = self.try_begin(&mut ticket, who, source).await? else { return Ok(ticket) };
        self.give_back(&ticket).await?;
        Err(come_back(wait_ms))
    }

    /// Begins a try at the own password, by someone who is signed in.
    pub(super) async fn begin_own(&self, user: UserId) -> Result<Ticket, Error> {
        let mut ticket = Ticket { number: self.random.number(), windows: Vec::new() };
        match self.take(&mut ticket, format!("own:{user}"), self.config.pair_max).await? {
            Ok(()) => Ok(ticket),
            Err(wait_ms) => Err(come_back(wait_ms)),
        }
    }

    /// Notes that somebody came in from a source.
    pub(super) async fn remember(&self, who: &Who, address: &Address, device: &DeviceSecret) -> Result<(), Error> {
        for source in [address_source(address), device_source(device)] {
            self.store.remember(&who.0, &source, KNOWN_MS).await?;
        }
        Ok(())
    }

    /// Takes a place in each window that counts; where one is full, in how many milliseconds to come back.
    async fn try_begin(&self, ticket: &mut Ticket, who: &Who, source: &Source) -> Result<Result<(), i64>, Error> {
        let address = address_source(&source.address);
        let device = source.device.as_ref().map(device_source);
        let sources: Vec<_> = device.into_iter().chain([address.clone()]).collect();
        let known = self.store.knows(&who.0, &sources).await?;
        if let Some((known, _)) = sources.iter().zip(known).find(|(_, known)| *known) {
            return self.take(ticket, pair(who, known), self.config.pair_max).await;
        }
        if let Err(wait_ms) = self.take(ticket, address.clone(), self.config.address_max).await? {
            return Ok(Err(wait_ms));
        }
        let hot = self.take(ticket, format!("account:{}", who.0), self.config.account_max).await?.is_err();
        let max = if hot { HOT_TRIES_MAX } else { self.config.pair_max };
        self.take(ticket, pair(who, &address), max).await
    }

    async fn take(&self, ticket: &mut Ticket, window: String, tries_max: u32) -> Result<Result<(), i64>, Error> {
        let span_ms = i64::try_from(self.config.window.as_millis()).unwrap_or(i64::MAX / 4);
        let full = self.store.take(&window, ticket.number, Limit { tries_max, span_ms }).await?;
        if full.is_none() {
            ticket.windows.push(window);
        }
        Ok(full.map_or(Ok(()), Err))
    }

    async fn give_back(&self, ticket: &Ticket) -> Result<(), Error> {
        for window in &ticket.windows {
            self.store.give_back(window, ticket.number).await?;
        }
        Ok(())
    }
}

fn pair(who: &Who, source: &str) -> String {
    format!("pair:{}:{source}", who.0)
}

fn address_source(address: &Address) -> String {
    format!("address:{}", digest(&address.0))
}

fn device_source(device: &DeviceSecret) -> String {
    format!("device:{}", digest(&device.0))
}

fn come_back(wait_ms: i64) -> Error {
    let after = Duration::from_millis(wait_ms.unsigned_abs());
    let message = format!("too many passwords were tried: come back in {} s", after.as_secs() + 1);
    Error::new(Reason::TooManyAttempts, message).with_retry_after(after)
}

/// What is kept in the sets of what people give: of one length, and not to be read there.
fn digest(text: &str) -> String {
    let digest: [u8; 32] = Sha256::digest(text).into();
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
