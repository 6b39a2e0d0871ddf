//! From the event log to readers: a handler a type of event. Every step can be done again without harm.

mod edits;
mod follows;
mod hidden;
mod marks;
mod modes;
mod posts;

use std::{fmt::Display, str::FromStr, sync::Arc};

use chassis::Clock;
use edits::Edits;
use follows::Follows;
use hidden::Hidden;
use marks::Marked;
use modes::ModeChanged;
use posts::PostCreated;
use proto::event::kind;
use store::{
    Stores,
    consumer::{Event, Failure, Handlers},
};
use tokio::time::Instant;

/// What the relay does with each type of event.
pub(crate) fn handlers(stores: &Stores, clock: Arc<dyn Clock>) -> Handlers {
    let follows = Arc::new(Follows::new(stores, clock.clone()));
    let hidden = Arc::new(Hidden::new(stores, clock.clone()));
    let edits = Arc::new(Edits::new(stores, clock.clone()));
    Handlers::default()
        .on(kind::MODE_CHANGED, Arc::new(ModeChanged::new(stores, clock.clone())))
        .on(kind::POST_CREATED, Arc::new(PostCreated::new(stores, clock)))
        .on(kind::POST_UPDATED, edits.clone())
        .on(kind::POST_DELETED, edits)
        .on(kind::FOLLOWED, follows.clone())
        .on(kind::UNFOLLOWED, follows)
        .on(kind::BLOCKED, hidden.clone())
        .on(kind::UNBLOCKED, hidden.clone())
        .on(kind::MUTED, hidden.clone())
        .on(kind::UNMUTED, hidden)
        // Whoever is to be told of requests reads them from the ledger.
        .ignoring(kind::FOLLOW_REQUESTED)
        .ignoring(kind::FOLLOW_ACCEPTED)
        .ignoring(kind::FOLLOW_REJECTED)
        .ignoring(kind::FOLLOW_WITHDRAWN)
        .on(kind::MARK, Arc::new(Marked::new(stores)))
}

/// Until when the sets may take what was fetched, by their clock.
fn deadline_ms(clock: &dyn Clock, not_after: Instant) -> i64 {
    let left_ms = not_after.saturating_duration_since(Instant::now()).as_millis();
    clock.unix_ms() + i64::try_from(left_ms).unwrap_or(i64::MAX / 2)
}

fn parse<Id: FromStr<Err: Display>>(field: &str, text: &str) -> Result<Id, Failure> {
    text.parse().map_err(|cause| Failure::Final(format!("{field} {cause}")))
}

/// An event whose type says one thing and whose payload another.
fn mismatch(event: &Event) -> Failure {
    Failure::Final(format!("it is said to be {:?} and carries something else", event.envelope.r#type))
}
