//! Where data lives: one small trait a concern, its adapters beside it. Only this crate names a database's driver.
//!
//! The ledger (SQL) and the event log are the truth; the archive and the sets are derived from them and can be lost.

pub mod archive;
mod config;
pub mod consumer;
pub mod error;
pub mod event_log;
pub mod ledger;
pub mod migrate;
mod open;
pub mod sets;
pub mod shard;
pub mod writer;

pub use config::Config;
pub use error::{Entity, Error};
pub use open::{OpenError, Parts, Stores};
pub use shard::Shard;
