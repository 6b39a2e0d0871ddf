//! How far what is in the sets is whole, in the process.

use async_trait::async_trait;

use super::Memory;
use crate::{Error, Shard, sets::Settled};

#[async_trait]
impl Settled for Memory {
    async fn passed(&self, shard: Shard, unix_ms: i64) -> Result<(), Error> {
        let mut state = self.state();
        let settled = state.settled.entry(shard).or_insert(unix_ms);
        *settled = unix_ms.max(*settled);
        Ok(())
    }

    async fn all(&self, shards: u16) -> Result<Vec<Option<i64>>, Error> {
        let state = self.state();
        Ok((0..shards).map(|shard| state.settled.get(&Shard(shard)).copied()).collect())
    }
}
