//! The binary as a library: subcommands, and the assembly of roles. Only the assembly knows which stores there are.

pub mod assembly;
mod command;
mod deadletters;
mod dev;
mod rebuild;
mod relay_status;
mod role;
mod run;
pub mod settings;
mod token_key;

pub use command::main;
