//! Where data lives: one small trait a concern, its adapters beside it. Only this crate names a database's driver.
//!
//! The ledger (SQL) and the event log are the truth; the archive and the sets are derived from them and can be lost.

pub mod archive;
pub mod consumer;
pub mod error;
pub mod event_log;
pub mod ledger;
pub mod sets;
pub mod shard;
mod stores;
pub mod writer;

pub use error::{Entity, Error};
pub use shard::Shard;
pub use stores::{Config, OpenError, Stores};
