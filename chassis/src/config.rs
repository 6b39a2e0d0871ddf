//! Config in layers: defaults < file (TOML) < environment (`FRESHET_…`) < flags. A part reads its keys by name, default,
//! rule and purpose, all in one place; what nobody reads is unknown. All problems are told at once.

mod layers;
mod value;

use std::{fmt, net::SocketAddr, ops::RangeInclusive, time::Duration};

pub use layers::{Flag, Layers, Unreadable};
pub use value::{duration_text, parse_duration, without_password};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The config file.
    File(String),
    /// This variable.
    Environment(String),
    /// This flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "file {path}"),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// One value that counts, and why.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Its dotted name.
    pub key: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// The value as text; of a secret, only whether there is one.
    pub shown: String,
    /// Where it came from.
    pub origin: Origin,
}

/// All that is wrong with a config.
#[derive(Debug, thiserror::Error)]
#[error("the config has {}:{}", count(.0.len()), .0.iter().map(|problem| format!("\n  - {problem}")).collect::<String>())]
pub struct Invalid(pub Vec<String>);

fn count(problems: usize) -> String {
    if problems == 1 { "a problem".to_owned() } else { format!("{problems} problems") }
}

/// Reads keys, and gathers what is wrong with them.
#[derive(Debug)]
pub struct Keys {
    layers: Layers,
    settings: Vec<Setting>,
    problems: Vec<String>,
}

impl Keys {
    /// Reads from these layers.
    #[must_use]
    pub fn new(layers: Layers) -> Self {
        Self { layers, settings: Vec::new(), problems: Vec::new() }
    }

    /// A number within a range.
    pub fn number(&mut self, key: &'static str, default: u64, range: RangeInclusive<u64>, about: &'static str) -> u64 {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.value(key, default, default.to_string(), &allowed, about, |text| {
            text.parse().ok().filter(|number| range.contains(number))
        })
    }

    /// A time span within a range, such as `250ms`, `5s`, `10m`, `7d`.
    pub fn duration(
        &mut self,
        key: &'static str,
        default: Duration,
        range: RangeInclusive<Duration>,
        about: &'static str,
    ) -> Duration {
        let allowed = format!(
            "a time span from {} to {}, such as 250ms, 5s, 10m, 7d",
            duration_text(*range.start()),
            duration_text(*range.end())
        );
        self.value(key, default, duration_text(default), &allowed, about, |text| {
            parse_duration(text).filter(|span| range.contains(span))
        })
    }

    /// An address to listen on; port 0 takes a free one.
    pub fn address(&mut self, key: &'static str, default: SocketAddr, about: &'static str) -> SocketAddr {
        let allowed = "an IP address and a port, such as 127.0.0.1:7700 or [::1]:0";
        self.value(key, default, default.to_string(), allowed, about, |text| text.parse().ok())
    }

    /// Yes or no.
    pub fn flag(&mut self, key: &'static str, default: bool, about: &'static str) -> bool {
        self.value(key, default, default.to_string(), "true or false", about, |text| text.parse().ok())
    }

    /// A URL: it is shown without the password in it.
    pub fn url<T>(
        &mut self,
        key: &'static str,
        (default, default_text): (T, String),
        allowed: &str,
        about: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let Some((text, origin)) = self.layers.take(key) else {
            self.settings.push(Setting { key, about, shown: default_text, origin: Origin::Default });
            return default;
        };
        let shown = without_password(&text);
        let value = parse(&text).unwrap_or_else(|| {
            self.problems.push(format!("{key} = {shown:?} (by {origin}): must be {allowed}"));
            default
        });
        self.settings.push(Setting { key, about, shown, origin });
        value
    }

    /// A value by a rule of its own.
    pub fn value<T>(
        &mut self,
        key: &'static str,
        default: T,
        default_text: String,
        allowed: &str,
        about: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let found = self.layers.take(key);
        let (text, origin) = found.unwrap_or((default_text, Origin::Default));
        let value = if origin == Origin::Default {
            default
        } else {
            parse(&text).unwrap_or_else(|| {
                self.problems.push(format!("{key} = {text:?} (by {origin}): must be {allowed}"));
                default
            })
        };
        self.settings.push(Setting { key, about, shown: text, origin });
        value
    }

    /// A value that nobody may see. Empty when it is not given.
    pub fn secret<T>(
        &mut self,
        key: &'static str,
        none: T,
        allowed: &str,
        about: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> T {
        let Some((text, origin)) = self.layers.take(key) else {
            self.settings.push(Setting { key, about, shown: String::new(), origin: Origin::Default });
            return none;
        };
        let value = parse(&text).unwrap_or_else(|| {
            self.problems.push(format!("{key} = (redacted) (by {origin}): must be {allowed}"));
            none
        });
        self.settings.push(Setting { key, about, shown: "(redacted)".to_owned(), origin });
        value
    }

    /// Refuses what is wrong between keys.
    pub fn refuse(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    /// The settings in the order in which they were read, unless anything is wrong.
    pub fn finish(mut self) -> Result<Vec<Setting>, Invalid> {
        let known: Vec<_> = self.settings.iter().map(|setting| setting.key).collect();
        self.problems.extend(self.layers.unknown(&known));
        if self.problems.is_empty() { Ok(self.settings) } else { Err(Invalid(self.problems)) }
    }
}

#[cfg(test)]
mod tests;
