//! Who is connected where, in Redis: a field of a hash for each connected reader, which a push reads beside the homes.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use proto::UserId;

use super::{Redis, keys::Bucket, script::Call};
use crate::{
    Error,
    sets::{Connection, Connections},
};

/// Connections a script call: Redis does nothing else meanwhile.
const CALL_CONNECTIONS_MAX: usize = 250;

impl Redis {
    async fn register_call<'a>(
        &self,
        connections: &[(Bucket, &'a Connection)],
        ttl_ms: i64,
        round: u64,
    ) -> Result<Vec<&'a Connection>, Error> {
        let mut call = Call::default().arg(ttl_ms).arg(round);
        for (bucket, connection) in connections {
            call.add_key(self.keys.online(*bucket));
            call.add_arg(connection.user.get());
            call.add_arg(&connection.id);
            call.add_arg(&connection.pod);
        }
        let new: Vec<usize> = self.scripts.register.call(&self.link, &call).await?;
        Ok(new.into_iter().filter_map(|place| connections.get(place - 1)).map(|(_, connection)| *connection).collect())
    }
}

#[async_trait]
impl Connections for Redis {
    async fn register(&self, connections: &[Connection], ttl_ms: i64, round: u64) -> Result<Vec<Connection>, Error> {
        let mut connections: Vec<_> = connections.iter().map(|one| (Bucket::of(one.user), one)).collect();
        connections.sort_by_key(|(bucket, _)| *bucket);
        let together = |a: &(Bucket, _), b: &(Bucket, _)| !self.is_cluster || a.0 == b.0;
        let calls = connections.chunk_by(together).flat_map(|part| part.chunks(CALL_CONNECTIONS_MAX));
        let new = try_join_all(calls.map(|part| self.register_call(part, ttl_ms, round))).await?;
        Ok(new.into_iter().flatten().cloned().collect())
    }

    async fn forget(&self, connection: &Connection) -> Result<(), Error> {
        let call = Call::default().key(self.keys.online(Bucket::of(connection.user)));
        self.scripts.forget.call(&self.link, &call.arg(connection.user.get()).arg(&connection.id)).await
    }

    async fn of_user(&self, user: UserId) -> Result<Vec<Connection>, Error> {
        let call = Call::default().key(self.keys.online(Bucket::of(user))).arg(user.get());
        let told: Vec<(String, String)> = self.scripts.of_user.call(&self.link, &call).await?;
        Ok(told.into_iter().map(|(id, pod)| Connection { id, pod, user }).collect())
    }
}
