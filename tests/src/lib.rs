//! What the end-to-end suites stand on: a sandbox of pods in one process, people who use them, real processes, tools.

pub mod bench;
pub mod cluster;
pub mod collector;
pub mod cql;
pub mod crowd;
pub mod grpc;
pub mod journal;
pub mod logs;
pub mod oracle;
pub mod person;
pub mod process;
pub mod proxy;
pub mod sandbox;
pub mod servers;
pub mod sql;
pub mod stream;
pub mod tools;
pub mod wait;
pub mod walkthrough;
pub mod watcher;

pub use person::Person;
pub use process::{Dev, Process};
pub use sandbox::{Pods, Sandbox};
pub use stream::Stream;
