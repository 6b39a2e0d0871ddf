//! Puts roles together from their parts. `freshet dev` assembles one pod of each role; tests assemble as many as they like.

use std::sync::Arc;

use chassis::{Clock, Pod, Random, token::Keyring};
use store::Stores;
use tokio::net::TcpListener;

use crate::settings::Settings;

/// What all pods of a process share.
#[derive(Clone)]
pub struct Assembly {
    /// Everything that can be set.
    pub settings: Settings,
    /// Where data lives.
    pub stores: Stores,
    /// The keys of internal tokens.
    pub keyring: Keyring,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn Random>,
}

impl Assembly {
    /// A pod of the timeline role.
    pub async fn timeline(&self, listener: TcpListener) -> Result<Pod, chassis::Error> {
        let pod = self.pod("timeline");
        let parts = timeline::Parts {
            pod: pod.clone(),
            stores: self.stores.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            keyring: self.keyring.clone(),
            grpc: self.settings.grpc.clone(),
            config: self.settings.timeline.clone(),
        };
        timeline::start(parts, listener).await?;
        Ok(pod)
    }

    /// A pod of the relay role.
    pub fn relay(&self, listener: TcpListener) -> Result<Pod, chassis::Error> {
        let pod = self.pod("relay");
        let parts = relay::Parts {
            pod: pod.clone(),
            stores: self.stores.clone(),
            clock: self.clock.clone(),
            keyring: self.keyring.clone(),
            grpc: self.settings.grpc.clone(),
        };
        relay::start(parts, listener)?;
        Ok(pod)
    }

    /// A pod of the ranking role.
    pub fn ranking(&self, listener: TcpListener) -> Result<Pod, chassis::Error> {
        let pod = self.pod("ranking");
        let parts = ranking::Parts {
            pod: pod.clone(),
            stores: self.stores.clone(),
            clock: self.clock.clone(),
            keyring: self.keyring.clone(),
            grpc: self.settings.grpc.clone(),
            config: self.settings.ranking.clone(),
        };
        ranking::start(parts, listener)?;
        Ok(pod)
    }

    /// A pod of the edge role, which calls the timeline role at this URL.
    pub fn edge(&self, listener: TcpListener, timeline_url: String) -> Result<Pod, chassis::Error> {
        let pod = self.pod("edge");
        let parts = edge::Parts {
            pod: pod.clone(),
            stores: self.stores.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            keyring: self.keyring.clone(),
            timeline_url,
            config: self.settings.edge.clone(),
        };
        edge::start(parts, listener)?;
        Ok(pod)
    }

    /// A name is never used twice: what an earlier pod of the same role left behind is not this one's.
    fn pod(&self, role: &str) -> Pod {
        Pod::new(format!("{role}-{:016x}", self.random.number()))
    }
}
