//! How a role consumes the event log. Lanes are read side by side, each in order; a lane's events are given to the handlers of
//! their types in batches, and committed when they are done. What may pass is tried again for as long as it takes, and its
//! lane waits; what never will becomes a dead letter, and only its key waits.

mod driver;
mod handlers;
mod job;
mod retry;

use std::sync::Arc;

use async_trait::async_trait;
use chassis::{Pod, Stop};
use driver::Driver;
pub use handlers::{Event, Failure, Handler, Handlers};
use proto::event::Topic;

use crate::{
    Error, Stores,
    event_log::{EventLog, Lane},
    ledger::{DeadLetters, Ledger},
};

/// A group of consumers: whichever pods run it divide the lanes of its topics among them.
pub struct Group {
    name: &'static str,
    topics: &'static [Topic],
    handlers: Handlers,
    sinks: Option<Arc<dyn Sinks>>,
}

/// What events are applied to, where that can go back in time: a copy that was behind took over, or an old one was restored.
#[async_trait]
pub trait Sinks: Send + Sync {
    /// Notes how far a lane is applied. Answers up to where it is applied really, when that is less: from there on events
    /// must be applied again. `None` as the position only asks.
    async fn note(&self, lane: Lane, position: Option<i64>) -> Result<Option<i64>, Error>;
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
        Self { name, topics, handlers, sinks: None }
    }

    /// The group, which applies its events to sinks that can go back in time.
    #[must_use]
    pub fn to(self, sinks: Arc<dyn Sinks>) -> Self {
        Self { sinks: Some(sinks), ..self }
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
