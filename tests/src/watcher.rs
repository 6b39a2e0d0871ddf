//! Somebody who watches a stream all the time, and notes what it shows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chassis::{Clock as _, clock::System};
use proto::{PostId, UserId};
use tokio::task::JoinSet;

use crate::{Stream, grpc::Client, oracle::scroll, wait};

const PAUSE: Duration = Duration::from_millis(100);

/// What a stream has shown.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Posts, in the order in which they came, with their authors.
    pub posts: Vec<(PostId, String)>,
    /// How often the reader was told to read again.
    pub gaps: usize,
    /// What the reader found at home each time.
    pub read_at_gaps: BTreeSet<PostId>,
}

/// A reader with an open stream.
pub struct Watcher {
    /// Who watches.
    pub reader: UserId,
    /// Since when, in milliseconds since 1970.
    pub since_unix_ms: i64,
    seen: Arc<Mutex<Seen>>,
    // Aborted when dropped.
    _watching: JoinSet<()>,
}

impl Watcher {
    /// Watches a stream from now on, and reads the home where the stream says so.
    #[must_use]
    pub fn start(reader: UserId, mut stream: Stream, client: Client) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let (notes, mut watching) = (seen.clone(), JoinSet::new());
        watching.spawn(async move {
            while let Some(event) = stream.next_whenever().await {
                match event.name.as_str() {
                    "new_post" => {
                        let text = |field: &str| event.data[field].as_str().unwrap_or_default().to_owned();
                        let post = (text("id").parse().expect("a post id"), text("author_id"));
                        notes.lock().unwrap_or_else(PoisonError::into_inner).posts.push(post);
                    }
                    "gap" => {
                        let home = wait::within("the home after a gap", read_home(&client, reader)).await;
                        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                        notes.gaps += 1;
                        notes.read_at_gaps.extend(home.iter().filter_map(|(id, _)| PostId::new(*id).ok()));
                    }
                    other => panic!("an event of an unknown kind: {other}"),
                }
            }
        });
        Self { reader, since_unix_ms: System.unix_ms(), seen, _watching: watching }
    }

    /// What the stream has shown so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The home, as soon as it can be read.
async fn read_home(client: &Client, reader: UserId) -> Vec<(i64, i64)> {
    loop {
        if let Some(home) = scroll(client, reader).await {
            return home;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Seen {
    /// How many posts came again.
    #[must_use]
    pub fn repeated(&self) -> usize {
        self.posts.len() - self.posts.iter().map(|(id, _)| id).collect::<BTreeSet<_>>().len()
    }

    /// Of the posts that count, those that came after a later one of the same author, each with that one.
    #[must_use]
    pub fn late(&self, counts: impl Fn(PostId) -> bool) -> Vec<(PostId, PostId)> {
        let mut newest: BTreeMap<&str, PostId> = BTreeMap::new();
        let mut late = Vec::new();
        for (id, author) in self.posts.iter().filter(|(id, _)| counts(*id)) {
            let before = newest.entry(author).or_insert(*id);
            if *before > *id {
                late.push((*id, *before));
            }
            *before = (*before).max(*id);
        }
        late
    }
}
