//! Dead letters: events that could not be published or applied, kept whole with the reason, until somebody drives them again
//! or discards them.

use std::fmt;

use async_trait::async_trait;
use proto::event::Topic;

use crate::{
    Error,
    event_log::{Lane, Received},
};

/// How many keys of a lane may have dead letters. Past it the fault is in the consumer rather than in the events, and it
/// stands still instead of putting everything aside.
pub const PARKED_KEYS_MAX: usize = 10_000;

/// The kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// It is no event of ours.
    Undecodable,
    /// Nobody here knows its type: a newer release may.
    UnknownType,
    /// It says what cannot be.
    BrokenRule,
    /// It waits behind an earlier event of its key.
    Parked,
    /// The event log does not take it.
    Refused,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Undecodable, Self::UnknownType, Self::BrokenRule, Self::Parked, Self::Refused];

    /// How it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecodable => "undecodable",
            Self::UnknownType => "unknown_type",
            Self::BrokenRule => "broken_rule",
            Self::Parked => "parked",
            Self::Refused => "refused",
        }
    }

    /// The cause that is written so.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

/// A letter that is being put aside.
#[derive(Clone, Debug)]
pub struct NewLetter<'a> {
    /// Whose consumer could not apply it; empty when the event log refused it.
    pub group: &'a str,
    /// The event, with its place in the log. Where the log refused it, its position is its number in the outbox.
    pub event: &'a Received,
    /// The kind of reason.
    pub cause: Cause,
    /// The reason.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Who tried.
    pub pod: &'a str,
}

/// A letter that was put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Its number.
    pub id: i64,
    /// Whose consumer could not apply it; empty when the event log refused it.
    pub group: String,
    /// The event. Where the log refused it, its position is its number in the outbox.
    pub event: Received,
    /// The kind of reason.
    pub cause: Cause,
    /// The reason.
    pub error: String,
    /// How often it was tried.
    pub attempts: u32,
    /// Who tried last.
    pub pod: String,
    /// The release that tried last.
    pub release: String,
    /// When it was put aside, in milliseconds since 1970.
    pub buried_at_ms: i64,
    /// Whether somebody has asked to drive it again.
    pub redrive: bool,
}

/// Which letters. What is left out does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// By their numbers.
    pub ids: Option<Vec<i64>>,
    /// Of this consumer group.
    pub group: Option<String>,
    /// Of this topic.
    pub topic: Option<Topic>,
    /// Of this type.
    pub kind: Option<String>,
    /// Of this key.
    pub key: Option<String>,
    /// For this kind of reason.
    pub cause: Option<Cause>,
    /// Whose reason contains this.
    pub error: Option<String>,
    /// Put aside before this moment, in milliseconds since 1970.
    pub buried_before_ms: Option<i64>,
    /// Put aside at this moment or after.
    pub buried_from_ms: Option<i64>,
}

impl fmt::Display for Filter {
    /// As the options of the command are written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.ids.as_ref().map(|ids| ids.iter().map(i64::to_string).collect::<Vec<_>>().join(" "));
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let said = [
            ("", ids),
            ("--group ", self.group.clone()),
            ("--topic ", self.topic.map(|topic| topic.name().to_owned())),
            ("--type ", self.kind.clone()),
            ("--key ", self.key.clone()),
            ("--cause ", self.cause.map(|cause| cause.name().to_owned())),
            ("--error ", self.error.as_ref().map(|error| format!("{error:?}"))),
            ("buried before ", number(self.buried_before_ms)),
            ("buried from ", number(self.buried_from_ms)),
        ];
        let said: Vec<_> = said.into_iter().filter_map(|(name, value)| Some(format!("{name}{}", value?))).collect();
        if said.is_empty() { f.write_str("all") } else { f.write_str(&said.join(" ")) }
    }
}

/// How many letters have a reason in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// Of which group.
    pub group: String,
    /// Of which topic.
    pub topic: String,
    /// Of which type.
    pub kind: String,
    /// The kind of reason.
    pub cause: String,
    /// The reason of one of them.
    pub error: String,
    /// How many.
    pub letters: u64,
    /// When the first was put aside, in milliseconds since 1970.
    pub first_at_ms: i64,
    /// When the last was.
    pub last_at_ms: i64,
}

/// What somebody's order came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// Letters that the filter names.
    pub matched: u64,
    /// Letters of the same keys that wait behind them and go on with them.
    pub followers: u64,
}

/// Something that was done by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// By whom.
    pub who: String,
    /// What.
    pub what: String,
}

/// Dead letters.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Puts an event aside. Twice is once.
    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error>;

    /// Puts an event aside behind earlier letters of its key. False, and nothing is done, when there are none any more.
    async fn park(&self, letter: &NewLetter<'_>) -> Result<bool, Error>;

    /// The keys of a lane that have letters, up to one more than [`PARKED_KEYS_MAX`].
    async fn parked_keys(&self, group: &str, lane: Lane) -> Result<Vec<String>, Error>;

    /// The lanes in which letters wait to be driven again.
    async fn lanes_to_redrive(&self, group: &str) -> Result<Vec<Lane>, Error>;

    /// A lane's first letters that somebody wants to be driven again, in the order of the log.
    async fn to_redrive(&self, group: &str, lane: Lane, limit: u32) -> Result<Vec<DeadLetter>, Error>;

    /// Takes a letter away that was applied at last.
    async fn resolve(&self, id: i64) -> Result<(), Error>;

    /// Keeps a letter that failed again, with the new reason; it and those behind it wait for the next order.
    async fn keep(&self, letter: &DeadLetter, cause: Cause, error: &str, pod: &str) -> Result<(), Error>;

    /// Orders that letters of a lane be driven again which an older release put aside because it did not know their types.
    /// Tells how many.
    async fn redrive_known(&self, group: &str, lane: Lane, kinds: &[&str]) -> Result<u64, Error>;

    /// Letters with numbers above `after`, in order.
    async fn page(&self, filter: &Filter, after: i64, limit: u32) -> Result<Vec<DeadLetter>, Error>;

    /// How many letters there are, and how many of them wait to be driven again.
    async fn count(&self, filter: &Filter) -> Result<(u64, u64), Error>;

    /// Letters by their reasons, the most frequent first.
    async fn alike(&self, filter: &Filter, limit: u32) -> Result<Vec<Alike>, Error>;

    /// Orders that letters be driven again, each with all that waits behind it. What the log refused goes back to the outbox
    /// at once.
    async fn redrive(&self, filter: &Filter, who: &str) -> Result<Ordered, Error>;

    /// Takes letters away for good. What only waited behind them is driven again.
    async fn discard(&self, filter: &Filter, who: &str) -> Result<Ordered, Error>;

    /// What was done by hand, the last first.
    async fn audit(&self, limit: u32) -> Result<Vec<AuditLine>, Error>;
}
