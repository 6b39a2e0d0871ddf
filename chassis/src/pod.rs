//! A pod: a running instance of a role, with its name, its tasks, its health and its metrics.

use tracing::Span;

use crate::{Tasks, health::Health, metrics::Metrics};

/// What every role is given to run in.
#[derive(Clone)]
pub struct Pod {
    name: String,
    span: Span,
    /// Where it spawns.
    pub tasks: Tasks,
    /// Whether it is ready.
    pub health: Health,
    /// What it counts.
    pub metrics: Metrics,
}

impl Pod {
    /// A pod with a name that no other living pod has.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        // At the error level, so that no filter takes the pod's name off its lines.
        let span = tracing::error_span!("pod", pod = %name);
        let metrics = Metrics::default();
        Self { tasks: Tasks::new(span.clone(), metrics.clone()), health: Health::default(), metrics, span, name }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The span under which all that it does is logged.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.span
    }
}
