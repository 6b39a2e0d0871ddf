//! What every pod stands on: config, clock, randomness, ids, tasks with kinds, drain, the gRPC set-up, internal tokens,
//! telemetry.
//!
//! It knows neither where data lives nor what a role does.

pub mod clock;
pub mod config;
pub mod drain;
pub mod error;
pub mod failpoint;
pub mod grpc;
pub mod health;
pub mod id;
pub mod metrics;
pub mod page;
pub mod pod;
pub mod random;
pub mod tasks;
pub mod telemetry;
pub mod token;
pub mod trace;

pub use clock::Clock;
pub use error::{Error, Reason};
pub use pod::Pod;
pub use random::Random;
pub use tasks::{OnFailure, Stage, Stop, Tasks};
