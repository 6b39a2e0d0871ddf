//! Who is connected where, and what edge pods are told, in the process.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;
use proto::UserId;

use super::{Memory, PodMessage};
use crate::{
    Error,
    sets::{Connection, Connections, POD_STREAM_MESSAGES_MAX, PodStreams},
};

/// A pod's stream: the newest messages, and how many there ever were.
#[derive(Default)]
pub(super) struct Told {
    messages: VecDeque<PodMessage>,
    last: u64,
}

#[async_trait]
impl Connections for Memory {
    async fn register(&self, connections: &[Connection], ttl_ms: i64) -> Result<(), Error> {
        let expires_ms = self.clock.unix_ms() + ttl_ms;
        let mut state = self.state();
        for connection in connections {
            let held = state.connections.entry(connection.user).or_default();
            held.insert(connection.id.clone(), (connection.clone(), expires_ms));
        }
        Ok(())
    }

    async fn forget(&self, connection: &Connection) -> Result<(), Error> {
        let now = self.clock.unix_ms();
        let mut state = self.state();
        if let Some(held) = state.connections.get_mut(&connection.user) {
            held.remove(&connection.id);
            held.retain(|_, (_, expires_ms)| *expires_ms > now);
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
        Ok(held.filter(|(_, expires_ms)| *expires_ms > now).map(|(connection, _)| connection.clone()).collect())
    }
}

#[async_trait]
impl PodStreams for Memory {
    async fn send(&self, pod: &str, delivery: Bytes) -> Result<(), Error> {
        {
            let mut state = self.state();
            let told = state.pods.entry(pod.to_owned()).or_default();
            told.last += 1;
            told.messages.push_back(PodMessage { position: told.last, delivery });
            if told.messages.len() > POD_STREAM_MESSAGES_MAX {
                told.messages.pop_front();
            }
        }
        self.told.notify_waiters();
        Ok(())
    }

    async fn receive(&self, pod: &str, after: u64) -> Result<Vec<PodMessage>, Error> {
        loop {
            // Listening begins before looking, so that what is sent in between is not missed.
            let told = self.told.notified();
            let news: Vec<_> = {
                let state = self.state();
                let messages = state.pods.get(pod).map(|told| &told.messages).into_iter().flatten();
                messages.filter(|message| message.position > after).cloned().collect()
            };
            if !news.is_empty() {
                return Ok(news);
            }
            told.await;
        }
    }
}
