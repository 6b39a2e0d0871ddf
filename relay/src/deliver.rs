//! From the event log to readers: a handler a type of event. Every step can be done again without harm.

mod follows;
mod marks;
mod posts;

use std::{fmt::Display, str::FromStr, sync::Arc};

use chassis::Clock;
use follows::Followed;
use marks::Marked;
use posts::PostCreated;
use proto::event::kind;
use store::{
    Stores,
    consumer::{Event, Failure, Handlers},
};

/// What the relay does with each type of event.
pub(crate) fn handlers(stores: &Stores, clock: Arc<dyn Clock>) -> Handlers {
    Handlers::default()
        .on(kind::POST_CREATED, Arc::new(PostCreated::new(stores, clock)))
        .on(kind::FOLLOWED, Arc::new(Followed::new(stores)))
        .on(kind::MARK, Arc::new(Marked::new(stores)))
}

fn parse<Id: FromStr<Err: Display>>(field: &str, text: &str) -> Result<Id, Failure> {
    text.parse().map_err(|cause| Failure::Final(format!("{field} {cause}")))
}

/// An event whose type says one thing and whose payload another.
fn mismatch(event: &Event) -> Failure {
    Failure::Final(format!("it is said to be {:?} and carries something else", event.envelope.r#type))
}
