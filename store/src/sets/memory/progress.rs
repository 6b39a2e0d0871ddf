//! How far events are applied, in the process: the sets live and die with it, and never go back.

use async_trait::async_trait;

use super::Memory;
use crate::{Error, event_log::Lane, sets::Progress};

#[async_trait]
impl Progress for Memory {
    async fn note(&self, _lane: Lane, _position: Option<i64>) -> Result<Option<i64>, Error> {
        Ok(None)
    }

    async fn accept(&self, _lane: Lane) -> Result<(), Error> {
        Ok(())
    }
}
