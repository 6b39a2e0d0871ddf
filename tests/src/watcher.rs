//! Somebody who watches a stream all the time, and notes what it shows. Like every client they know a post by its id: one that
//! they have read already does not come to their screen a second time.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chassis::{Clock as _, clock::System};
use proto::{PostId, UserId};
use tokio::task::JoinSet;

use crate::{Stream, grpc::Client, oracle::scroll, wait};

const PAUSE: Duration = Duration::from_millis(100);

/// A post that a stream told of.
#[derive(Clone, Debug)]
pub struct Told {
    /// Which.
    pub id: PostId,
    /// Who wrote it.
    pub author: String,
    /// Whether the reader had found it at home by then. After a gap the relay may tell of what came before it too: sets that
    /// went back in time are told everything again, and their reader may have read before that or after.
    pub was_read: bool,
}

/// What a stream has shown.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Posts, in the order in which they came.
    pub posts: Vec<Told>,
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
    /// Watches a stream from now on, and reads the home where the stream says so. When the stream is closed, because it did
    /// not keep up, it comes back and reads the home too, as a browser does.
    #[must_use]
    pub fn start(reader: UserId, stream: Stream, (edge, cookie): (SocketAddr, String), client: Client) -> Self {
        let seen = Arc::<Mutex<Seen>>::default();
        let (notes, mut watching) = (seen.clone(), JoinSet::new());
        watching.spawn(async move {
            let mut stream = stream;
            loop {
                watch(&mut stream, reader, &client, &notes).await;
                stream = reopened(edge, &cookie).await;
                read_again(reader, &client, &notes).await;
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

/// Notes what a stream shows until it is closed.
async fn watch(stream: &mut Stream, reader: UserId, client: &Client, notes: &Mutex<Seen>) {
    while let Some(event) = stream.next_whenever().await {
        match event.name.as_str() {
            "new_post" => {
                let text = |field: &str| event.data[field].as_str().unwrap_or_default().to_owned();
                let (id, author) = (text("id").parse().expect("a post id"), text("author_id"));
                let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                let was_read = notes.read_at_gaps.contains(&id);
                notes.posts.push(Told { id, author, was_read });
            }
            "gap" => read_again(reader, client, notes).await,
            other => panic!("an event of an unknown kind: {other}"),
        }
    }
}

async fn read_again(reader: UserId, client: &Client, notes: &Mutex<Seen>) {
    let home = wait::within("the home after a gap", read_home(client, reader)).await;
    let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
    notes.gaps += 1;
    notes.read_at_gaps.extend(home.iter().filter_map(|(id, _)| PostId::new(*id).ok()));
}

/// The stream, as soon as it can be opened again.
async fn reopened(edge: SocketAddr, cookie: &str) -> Stream {
    loop {
        tokio::time::sleep(PAUSE).await;
        if let Ok(stream) = Stream::open(edge, cookie).await {
            return stream;
        }
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
    /// How many posts the stream told of again.
    #[must_use]
    pub fn repeated(&self) -> usize {
        self.posts.len() - self.posts.iter().map(|told| told.id).collect::<BTreeSet<_>>().len()
    }

    /// Of the posts that count, those that came to the screen after the stream had told of a later one of the same author,
    /// each with that one.
    #[must_use]
    pub fn late(&self, counts: impl Fn(PostId) -> bool) -> Vec<(PostId, PostId)> {
        let mut newest: BTreeMap<&str, PostId> = BTreeMap::new();
        let mut late = Vec::new();
        for Told { id, author, was_read } in self.posts.iter().filter(|told| counts(told.id)) {
            let before = newest.entry(author).or_insert(*id);
            if *before > *id && !was_read {
                late.push((*id, *before));
            }
            *before = (*before).max(*id);
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(told: &[(i64, bool)]) -> Seen {
        let one = |(id, was_read): &(i64, bool)| Told {
            id: PostId::new(*id).unwrap(),
            author: "lin".to_owned(),
            was_read: *was_read,
        };
        Seen { posts: told.iter().map(one).collect(), ..Seen::default() }
    }

    #[test]
    fn what_was_read_before_is_not_late_and_what_was_not_is() {
        let late = |told: &[(i64, bool)]| seen(told).late(|_| true).len();
        assert_eq!(late(&[(1, false), (2, false), (3, false)]), 0);
        assert_eq!(late(&[(2, false), (1, false)]), 1);
        assert_eq!(late(&[(3, false), (1, true), (2, true), (4, false)]), 0);
        // It is told of after the third, whether that one was read before or not.
        assert_eq!(late(&[(3, true), (2, false)]), 1);
        assert_eq!(late(&[(3, false), (1, true), (2, false)]), 1);
    }

    #[test]
    fn a_stream_that_tells_twice_repeats_itself_whatever_was_read() {
        assert_eq!(seen(&[(1, false), (2, true)]).repeated(), 0);
        assert_eq!(seen(&[(1, false), (1, true)]).repeated(), 1);
    }
}
