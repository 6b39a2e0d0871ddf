//! Values as people write them.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads `250ms`, `5s`, `10m`, `2h`, `7d`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, ms) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(ms).map(Duration::from_millis)
}

/// Writes a time span in the largest unit that is exact.
#[must_use]
pub fn duration_text(span: Duration) -> String {
    let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (unit, size) =
        UNITS.into_iter().rev().find(|(_, size)| ms >= *size && ms.is_multiple_of(*size)).unwrap_or(UNITS[0]);
    format!("{}{unit}", ms / size)
}

/// A URL for people to read: `scheme://user:(redacted)@host`.
#[must_use]
pub fn without_password(url: &str) -> String {
    let redacted = || {
        let (scheme, rest) = url.split_once("://")?;
        // The last @ before the path: a password may contain one that was not escaped.
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let (credentials, _) = authority.rsplit_once('@')?;
        let (user, _) = credentials.split_once(':')?;
        Some(format!("{scheme}://{user}:(redacted){}", &rest[credentials.len()..]))
    };
    redacted().unwrap_or_else(|| url.to_owned())
}
