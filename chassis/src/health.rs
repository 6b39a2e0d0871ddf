//! A pod's health, as probes ask for it: over gRPC per service; at the edge, over HTTP. A pod that is ready can still be
//! degraded: a part of it waits for something, and it says for what.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

/// Whether a pod takes work, and what troubles it. It starts as not ready.
#[derive(Clone, Debug)]
pub struct Health {
    ready: watch::Sender<bool>,
    troubles: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Default for Health {
    fn default() -> Self {
        Self { ready: watch::Sender::new(false), troubles: Arc::default() }
    }
}

impl Health {
    /// Says whether the pod takes work.
    pub fn set_ready(&self, ready: bool) {
        self.ready.send_replace(ready);
    }

    /// Whether it does.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Says that a part of the pod waits, and for what. True when it did not wait before.
    pub fn degrade(&self, part: &str, cause: String) -> bool {
        self.lock().insert(part.to_owned(), cause).is_none()
    }

    /// Says that a part goes on. True when it had waited.
    pub fn recover(&self, part: &str) -> bool {
        self.lock().remove(part).is_some()
    }

    /// The parts that wait, each with what for; none when the pod is well.
    #[must_use]
    pub fn troubles(&self) -> Vec<(String, String)> {
        self.lock().clone().into_iter().collect()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
