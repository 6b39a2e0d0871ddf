//! The bare drivers: the same rows and sets, by as many lanes at once, in the same batches and the same order of steps; from
//! memory, with the followers known. No event log is read, nothing is decoded, looked up, tried again, noted or committed.

mod archive;
mod sets;

use std::sync::Arc;

use archive::Archive;
use sets::Sets;
use tokio::{task::JoinSet, time::Instant};

use super::{
    Bench,
    backlog::{Backlog, Post},
    people::People,
};

/// Posts that go together, as many as the relay's handlers get at once.
const BATCH_POSTS: usize = 256;

/// The drivers, connected.
pub(super) struct Peer {
    pub(super) archive: Archive,
    sets: Sets,
    people: Arc<People>,
}

impl Peer {
    pub(super) async fn open(bench: &Bench, people: Arc<People>) -> Self {
        Self { archive: Archive::open(bench).await, sets: Sets::open(bench).await, people }
    }

    /// Posts a second until the last one is written.
    pub(super) async fn pace(self: &Arc<Self>, backlog: Backlog) -> f64 {
        let number = backlog.number();
        let begun = Instant::now();
        let mut lanes = JoinSet::new();
        for posts in backlog.lanes {
            let peer = self.clone();
            lanes.spawn(async move {
                for some in posts.chunks(BATCH_POSTS) {
                    peer.write(some).await;
                }
            });
        }
        lanes.join_all().await;
        number as f64 / begun.elapsed().as_secs_f64()
    }

    async fn write(&self, posts: &[Post]) {
        self.archive.add(posts).await;
        self.sets.push_recents(posts).await;
        self.sets.push(posts, &self.people).await;
    }
}
