//! Days in the declared time zone.

use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use proto::{
    PostId,
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};

/// For how many days a list is kept, today's included.
pub(crate) const DAYS_KEPT: i64 = 7;

/// A day in the declared time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day(Date);

/// What was given is no day.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a day as YYYY-MM-DD, such as 2026-02-28")]
pub(crate) struct InvalidDay;

impl Day {
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidDay> {
        let date: Date = text.parse().map_err(|_| InvalidDay)?;
        // The parser takes other spellings too; one day has one spelling here.
        if date.to_string() == text { Ok(Self(date)) } else { Err(InvalidDay) }
    }

    /// Whether its list is kept: today's, and those of the days before.
    pub(crate) fn is_kept(self, today: Self) -> bool {
        let oldest = today.0.saturating_sub(SignedDuration::from_hours(24 * (DAYS_KEPT - 1)));
        (oldest..=today.0).contains(&self.0)
    }

    /// Its name in the sets: `YYYYMMDD`.
    pub(crate) fn key(self) -> String {
        self.0.strftime("%Y%m%d").to_string()
    }
}

/// Which moment belongs to which day.
#[derive(Clone, Debug)]
pub(crate) struct Calendar(TimeZone);

impl Calendar {
    pub(crate) fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    pub(crate) fn of_zone(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self)
    }

    pub(crate) fn day_at(&self, unix_ms: i64) -> Day {
        let moment = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        Day(moment.to_zoned(self.0.clone()).date())
    }

    /// A post counts for the day it was written.
    pub(crate) fn day_of(&self, post: PostId) -> Day {
        self.day_at(post.unix_ms())
    }

    /// The ids that are minted on a day: from the first to before the second.
    pub(crate) fn ids_of(&self, day: Day) -> (i64, i64) {
        let starts = |date: Date| {
            let ms = date.to_zoned(self.0.clone()).map_or(0, |start| start.timestamp().as_millisecond());
            (ms - EPOCH_UNIX_MS).max(0) << (WRITER_BITS + SEQUENCE_BITS)
        };
        (starts(day.0), starts(day.0.saturating_add(SignedDuration::from_hours(24))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_of_its_zone() {
        let seoul = Calendar::of_zone("Asia/Seoul").unwrap();
        let late: Timestamp = "2026-02-28T15:00:00Z".parse().unwrap();
        assert_eq!(seoul.day_at(late.as_millisecond()).key(), "20260301");
        assert_eq!(seoul.day_at(late.as_millisecond() - 1).key(), "20260228");
        assert_eq!(Calendar::utc().day_at(late.as_millisecond()).key(), "20260228");
        assert!(Calendar::of_zone("Mars/Olympus").is_none());
    }

    #[test]
    fn a_days_ids_are_those_of_its_moments_also_when_it_has_23_hours() {
        let berlin = Calendar::of_zone("Europe/Berlin").unwrap();
        for (day, hours) in [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)] {
            let day = Day::parse(day).unwrap();
            let (from, until) = berlin.ids_of(day);
            assert_eq!(until - from, (hours * 3_600_000_i64) << (WRITER_BITS + SEQUENCE_BITS));
            assert_eq!(berlin.day_of(PostId::new(from).unwrap()), day);
            assert_eq!(berlin.day_of(PostId::new(until - 1).unwrap()), day);
            assert_ne!(berlin.day_of(PostId::new(until).unwrap()), day);
        }
    }

    #[test]
    fn seven_days_are_kept_and_none_of_the_future() {
        let today = Day::parse("2026-03-03").unwrap();
        for (day, kept) in [("2026-03-03", true), ("2026-02-25", true), ("2026-02-24", false), ("2026-03-04", false)] {
            assert_eq!(Day::parse(day).unwrap().is_kept(today), kept, "{day}");
        }
    }

    #[test]
    fn a_day_has_one_spelling() {
        for text in ["", "today", "2026-02-30", "20260228", "2026-2-8", "2026-02-28T00:00"] {
            assert_eq!(Day::parse(text), Err(InvalidDay), "{text:?}");
        }
    }
}
