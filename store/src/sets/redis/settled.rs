//! How far what is in the sets is whole, in Redis.

use async_trait::async_trait;

use super::{Redis, script::Call};
use crate::{Error, Shard, sets::Settled};

#[async_trait]
impl Settled for Redis {
    async fn passed(&self, shard: Shard, unix_ms: i64) -> Result<(), Error> {
        let call = Call::default().key(self.keys.settled()).arg(shard.0).arg(unix_ms);
        self.scripts.pass_mark.call(&self.link, &call).await
    }

    async fn all(&self, shards: u16) -> Result<Vec<Option<i64>>, Error> {
        if shards == 0 {
            return Ok(Vec::new());
        }
        let mut all = redis::cmd("HMGET");
        all.arg(self.keys.settled()).arg((0..shards).collect::<Vec<_>>());
        self.link.ask(&all).await
    }
}
