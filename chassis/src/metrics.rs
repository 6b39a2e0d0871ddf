//! The chassis' own metrics: names, units, help. A pod has its own registry, so that several pods fit into one process.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Task {
    task: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    method: String,
}

/// A pod's metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    task_deaths: Family<Task, Counter>,
    handler_panics: Family<Method, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("freshet");
        let task_deaths = Family::default();
        registry.register("task_deaths", "Tasks that ended by an error or a panic", task_deaths.clone());
        let handler_panics = Family::default();
        registry.register("handler_panics", "Calls whose handler panicked", handler_panics.clone());
        Self { registry: Arc::new(Mutex::new(registry)), task_deaths, handler_panics }
    }
}

impl Metrics {
    /// Adds a crate's own metrics.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// How many calls of a method panicked.
    #[must_use]
    pub fn panics_of(&self, method: &str) -> u64 {
        self.handler_panics.get_or_create(&Method { method: method.to_owned() }).get()
    }

    /// All of them in the text form that Prometheus scrapes.
    #[must_use]
    pub fn exposition(&self) -> String {
        let mut page = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if text::encode(&mut page, &registry).is_err() {
            tracing::error!("cannot write the metrics page");
        }
        page
    }

    pub(crate) fn task_died(&self, task: &'static str) {
        self.task_deaths.get_or_create(&Task { task }).inc();
    }

    /// Counts a call whose handler panicked.
    pub fn handler_panicked(&self, method: &str) {
        self.handler_panics.get_or_create(&Method { method: method.to_owned() }).inc();
    }
}
