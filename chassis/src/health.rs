//! A pod's health, as probes ask for it: over gRPC per service; at the edge, over HTTP.

use tokio::sync::watch;

/// Whether a pod takes work. It starts as not ready.
#[derive(Clone, Debug)]
pub struct Health(watch::Sender<bool>);

impl Default for Health {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Health {
    /// Says whether the pod takes work.
    pub fn set_ready(&self, ready: bool) {
        self.0.send_replace(ready);
    }

    /// Whether it does.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }
}
