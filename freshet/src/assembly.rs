//! Puts roles together from their parts. `freshet dev` assembles one pod of each role, `freshet ROLE` a single one; tests
//! assemble as many as they like.

use std::sync::Arc;

use chassis::{Clock, Pod, Random, token::Keyring};
use store::{Stores, event_log::EventLog, ledger::Ledger, sets::Sets};
use tokio::net::TcpListener;

use crate::settings::Settings;

/// What all pods of a process share.
#[derive(Clone)]
pub struct Assembly {
    /// Everything that can be set.
    pub settings: Settings,
    /// The keys of internal tokens.
    pub keyring: Keyring,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

impl Assembly {
    /// A new pod. A name is never used twice: what an earlier pod of the same role left behind is not this one's.
    #[must_use]
    pub fn pod(&self, role: &str) -> Pod {
        Pod::new(format!("{role}-{:016x}", self.random.number()))
    }

    /// What stores run on: their background work is this pod's.
    #[must_use]
    pub fn store_parts(&self, pod: &Pod) -> store::Parts {
        store::Parts { pod: pod.clone(), clock: self.clock.clone(), random: self.random.clone() }
    }

    /// Starts the timeline role in a pod.
    pub async fn timeline(&self, pod: &Pod, stores: Stores, listener: TcpListener) -> Result<(), chassis::Error> {
        let parts = timeline::Parts {
            pod: pod.clone(),
            stores,
            clock: self.clock.clone(),
            random: self.random.clone(),
            keyring: self.keyring.clone(),
            grpc: self.settings.grpc.clone(),
            config: self.settings.timeline.clone(),
        };
        timeline::start(parts, listener).await
    }

    /// Starts the relay role in a pod.
    pub fn relay(&self, pod: &Pod, stores: Stores, listener: TcpListener) -> Result<(), chassis::Error> {
        let parts = relay::Parts {
            pod: pod.clone(),
            stores,
            clock: self.clock.clone(),
            keyring: self.keyring.clone(),
            grpc: self.settings.grpc.clone(),
        };
        relay::start(parts, listener)
    }

    /// Starts the ranking role in a pod.
    pub fn ranking(
        &self,
        pod: &Pod,
        (ledger, sets, event_log): (Ledger, Sets, Arc<dyn EventLog>),
        listener: TcpListener,
    ) -> Result<(), chassis::Error> {
        let parts = ranking::Parts {
            pod: pod.clone(),
            ledger,
            sets,
            event_log,
            clock: self.clock.clone(),
            keyring: self.keyring.clone(),
            grpc: self.settings.grpc.clone(),
            config: self.settings.ranking.clone(),
        };
        ranking::start(parts, listener)
    }

    /// Starts the edge role in a pod; it calls the timeline role at this URL.
    pub fn edge(
        &self,
        pod: &Pod,
        sets: Sets,
        listener: TcpListener,
        timeline_url: String,
    ) -> Result<(), chassis::Error> {
        let parts = edge::Parts {
            pod: pod.clone(),
            sets,
            clock: self.clock.clone(),
            random: self.random.clone(),
            keyring: self.keyring.clone(),
            timeline_url,
            config: self.settings.edge.clone(),
        };
        edge::start(parts, listener)
    }
}
