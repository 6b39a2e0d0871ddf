//! What the end-to-end suites stand on: a sandbox of pods in one process, people who use them, real processes, tools.

pub mod collector;
pub mod grpc;
pub mod logs;
pub mod person;
pub mod process;
pub mod sandbox;
pub mod servers;
pub mod stream;
pub mod tools;
pub mod wait;

pub use person::Person;
pub use process::Process;
pub use sandbox::{Pods, Sandbox};
pub use stream::Stream;
