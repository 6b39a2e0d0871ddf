//! Somebody who watches a stream all the time, and notes what it shows.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use chassis::{Clock as _, clock::System};
use proto::{PostId, UserId};
use tokio::task::JoinSet;

use crate::Stream;

/// What a stream has shown.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Posts, in the order in which they came, with their authors.
    pub posts: Vec<(PostId, String)>,
    /// When the reader was told to read again, in milliseconds since 1970.
    pub gaps_unix_ms: Vec<i64>,
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
    /// Watches a stream from now on. A stream that the edge closes counts as a gap: its reader reads again.
    #[must_use]
    pub fn start(reader: UserId, mut stream: Stream) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let (notes, mut watching) = (seen.clone(), JoinSet::new());
        watching.spawn(async move {
            let note = |what: &dyn Fn(&mut Seen)| what(&mut notes.lock().unwrap_or_else(PoisonError::into_inner));
            while let Some(event) = stream.next_whenever().await {
                match event.name.as_str() {
                    "new_post" => {
                        let text = |field: &str| event.data[field].as_str().unwrap_or_default().to_owned();
                        let id = text("id").parse().expect("a post id");
                        note(&|seen| seen.posts.push((id, text("author_id"))));
                    }
                    "gap" => note(&|seen| seen.gaps_unix_ms.push(System.unix_ms())),
                    other => panic!("an event of an unknown kind: {other}"),
                }
            }
            note(&|seen| seen.gaps_unix_ms.push(System.unix_ms()));
        });
        Self { reader, since_unix_ms: System.unix_ms(), seen, _watching: watching }
    }

    /// What the stream has shown so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
