//! How a role consumes the event log. Lanes are read side by side, each in order; a lane's events are given to the handlers of
//! their types in batches, and committed when they are done. What may pass is tried again for as long as it takes, and its
//! lane waits; what never will becomes a dead letter, and only its key waits.

mod driver;
mod handlers;
mod job;
mod retry;

use std::sync::Arc;

use chassis::{Pod, Stop};
use driver::Driver;
pub use handlers::{Event, Failure, Handler, Handlers};
use proto::event::Topic;

use crate::{
    Error, Stores,
    event_log::EventLog,
    ledger::{DeadLetters, Ledger},
    sets::Progress,
};

/// A group of consumers: whichever pods run it divide the lanes of its topics among them.
pub struct Group {
    name: &'static str,
    topics: &'static [Topic],
    handlers: Handlers,
    progress: Option<Arc<dyn Progress>>,
}

/// What consuming needs.
#[derive(Clone)]
pub struct Consumption {
    pod: Pod,
    log: Arc<dyn EventLog>,
    letters: Arc<dyn DeadLetters>,
    group: Arc<Group>,
}

impl Group {
    /// A group that applies the events of these topics by these handlers.
    #[must_use]
    pub fn new(name: &'static str, topics: &'static [Topic], handlers: Handlers) -> Self {
        Self { name, topics, handlers, progress: None }
    }

    /// The group, which applies its events to sets that can go back in time, and then again.
    #[must_use]
    pub fn noting(self, progress: Arc<dyn Progress>) -> Self {
        Self { progress: Some(progress), ..self }
    }
}

impl Consumption {
    /// By a group in a pod, of this log; dead letters go to this ledger.
    #[must_use]
    pub fn new(pod: &Pod, log: Arc<dyn EventLog>, ledger: &Ledger, group: Group) -> Self {
        Self { pod: pod.clone(), log, letters: ledger.dead_letters.clone(), group: Arc::new(group) }
    }

    /// By a group in a pod, on these stores.
    #[must_use]
    pub fn on(pod: &Pod, stores: &Stores, group: Group) -> Self {
        Self::new(pod, stores.event_log.clone(), &stores.ledger, group)
    }

    /// Consumes as a member of the group until the pod drains.
    pub async fn run(&self, stop: Stop) -> Result<(), Error> {
        let consumer = self.log.join(self.group.name, self.group.topics).await?;
        Driver::new(self, consumer, stop).run().await
    }
}
