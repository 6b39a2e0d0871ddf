//! The end-to-end suites, in one binary. Each test is a story on a sandbox or a process of its own.
#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

mod access;
mod bad_input;
mod commands;
mod contract;
mod dead_letters;
mod docs;
mod edge;
mod faults;
mod graph;
mod letter_copies;
mod modes;
mod oracle;
mod people;
mod posts;
mod process;
mod publish;
mod story;
mod telemetry;
mod tree;
mod wire;

/// The product with failpoints compiled in.
const BINARY: &str = env!("CARGO_BIN_EXE_freshet-with-failpoints");
