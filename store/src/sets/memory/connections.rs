//! Who is connected where, and what edge pods are told, in the process.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;
use proto::UserId;

use super::Memory;
use crate::{
    Error,
    sets::{Connection, Connections, POD_STREAM_MESSAGES_MAX, PodPosition, PodStreams, Told},
};

/// A pod's stream: the newest messages, and how many there ever were.
#[derive(Default)]
pub(super) struct PodStream {
    messages: VecDeque<Bytes>,
    last: u64,
}

impl PodStream {
    fn after(&self, position: PodPosition) -> Option<Told> {
        let first = self.last - self.messages.len() as u64 + 1;
        let skipped = usize::try_from((position.number + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let deliveries: Vec<_> = self.messages.iter().skip(skipped).cloned().collect();
        let (missed, position) = (position.number + 1 < first, PodPosition { number: self.last, token: (0, 0) });
        (!deliveries.is_empty()).then_some(Told { deliveries, missed, position })
    }
}

/// A connection, until it runs out.
pub(super) struct Registered {
    connection: Connection,
    expires_ms: i64,
    /// The round that made it.
    made_in: u64,
}

impl Registered {
    /// The connection, unless it ran out.
    pub(super) fn live(&self, now_ms: i64) -> Option<&Connection> {
        (self.expires_ms > now_ms).then_some(&self.connection)
    }
}

#[async_trait]
impl Connections for Memory {
    async fn register(&self, connections: &[Connection], ttl_ms: i64, round: u64) -> Result<Vec<Connection>, Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        let mut new = Vec::new();
        for connection in connections {
            let held = state.connections.entry(connection.user).or_default();
            let before = held.get(&connection.id).filter(|before| before.live(now).is_some());
            let made_in = before.map_or(round, |before| before.made_in);
            if made_in == round {
                new.push(connection.clone());
            }
            let registered = Registered { connection: connection.clone(), expires_ms: now + ttl_ms, made_in };
            held.insert(connection.id.clone(), registered);
        }
        Ok(new)
    }

    async fn forget(&self, connection: &Connection) -> Result<(), Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        if let Some(held) = state.connections.get_mut(&connection.user) {
            held.remove(&connection.id);
            held.retain(|_, registered| registered.live(now).is_some());
            if held.is_empty() {
                state.connections.remove(&connection.user);
            }
        }
        Ok(())
    }

    async fn of_user(&self, user: UserId) -> Result<Vec<Connection>, Error> {
        let now = self.clock.unix_ms();
        let state = self.state();
        let held = state.connections.get(&user).into_iter().flat_map(|held| held.values());
        Ok(held.filter_map(|registered| registered.live(now)).cloned().collect())
    }
}

#[async_trait]
impl PodStreams for Memory {
    async fn send(&self, pod: &str, deliveries: &[Bytes]) -> Result<(), Error> {
        {
            let mut state = self.state();
            let stream = state.pods.entry(pod.to_owned()).or_default();
            for delivery in deliveries {
                stream.last += 1;
                stream.messages.push_back(delivery.clone());
                if stream.messages.len() > POD_STREAM_MESSAGES_MAX {
                    stream.messages.pop_front();
                }
            }
        }
        self.told.notify_waiters();
        Ok(())
    }

    async fn receive(&self, pod: &str, after: PodPosition) -> Result<Told, Error> {
        loop {
            // Listening begins before looking, so that what is sent in between is not missed.
            let rung = self.told.notified();
            let told = self.state().pods.get(pod).and_then(|stream| stream.after(after));
            if let Some(told) = told {
                return Ok(told);
            }
            rung.await;
        }
    }
}
