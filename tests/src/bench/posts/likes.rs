//! Likes of one post that everybody likes at once, each with its row, the exact number and an event: under the post's lock, by
//! trying again whoever finds another version, and by a queue in front of one session. By the bare driver, so that only the way
//! differs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::Instant,
};
use tokio_postgres::{Client, Statement};

use super::super::{
    connect,
    timeline::{CLIENTS, Timeline},
};

const LASTS: Duration = Duration::from_secs(6);
/// More than can like anything meanwhile, and far from those who write.
const LIKERS: std::ops::Range<i64> = 1_000_001..1_100_001;
const POSTS: [i64; 3] = [11, 12, 13];
/// How many likes the queue takes into one transaction.
const QUEUED_MAX: usize = 100;

/// A session, and its statements.
struct Session {
    client: Client,
    lock: Statement,
    look: Statement,
    like: Statement,
    count: Statement,
    count_if: Statement,
    tell: Statement,
}

/// Who likes next.
#[derive(Clone, Default)]
struct Turns(Arc<AtomicI64>);

impl Turns {
    fn next(&self) -> i64 {
        let liker = LIKERS.start + self.0.fetch_add(1, Ordering::Relaxed);
        assert!(LIKERS.contains(&liker), "everybody likes it already");
        liker
    }
}

/// A line a way.
pub(super) async fn measure(timeline: &Timeline) -> Vec<String> {
    timeline.sign_up(LIKERS).await;
    for post in POSTS {
        let write =
            "INSERT INTO posts (id, author, text, created_at_ms, version) VALUES ($1, 1, 'everybody likes it', 0, 1)";
        timeline.raw.execute(write, &[&post]).await.expect("a post");
    }
    timeline.tidy_up().await;
    let url = &timeline.ledger_url;
    let locked = by_all(url, async |session, liker, _| session.like_locked(POSTS[0], liker).await).await;
    let optimistic =
        by_all(url, async |session, liker, tries| session.like_or_retry(POSTS[1], liker, tries).await).await;
    let queued = by_queue(url, POSTS[2]).await;
    for post in POSTS {
        let exact = "SELECT like_count = (SELECT count(*) FROM likes WHERE post = id) FROM posts WHERE id = $1";
        assert!(timeline.raw.query_one(exact, &[&post]).await.expect("a count").get::<_, bool>(0), "post {post}");
    }
    vec![
        format!("likes of one post, under its row's lock: {:.0}/s by {CLIENTS} sessions", locked.0),
        format!(
            "likes of one post, tried again when it has another version: {:.0}/s, {:.1} tries each",
            optimistic.0, optimistic.1
        ),
        format!("likes of one post, queued for one session, up to {QUEUED_MAX} a transaction: {queued:.0}/s"),
    ]
}

/// Likes a second, and tries a like.
async fn by_all(url: &str, like: impl AsyncFn(&Session, i64, &AtomicU64) + Copy) -> (f64, f64) {
    let (turns, tries) = (Turns::default(), AtomicU64::default());
    let mut sessions = Vec::new();
    for _ in 0..CLIENTS {
        sessions.push(Session::open(url).await);
    }
    let begun = Instant::now();
    let work = sessions.iter().map(async |session| {
        let mut likes = 0_u32;
        while begun.elapsed() < LASTS {
            like(session, turns.next(), &tries).await;
            likes += 1;
        }
        likes
    });
    let likes: u32 = futures_util::future::join_all(work).await.into_iter().sum();
    let pace = f64::from(likes) / begun.elapsed().as_secs_f64();
    (pace, tries.into_inner() as f64 / f64::from(likes))
}

async fn by_queue(url: &str, post: i64) -> f64 {
    let session = Session::open(url).await;
    let (queue, mut waiting) = mpsc::channel::<(i64, oneshot::Sender<()>)>(QUEUED_MAX);
    let turns = Turns::default();
    let begun = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CLIENTS {
        let (queue, turns) = (queue.clone(), turns.clone());
        callers.spawn(async move {
            let mut likes = 0_u32;
            while begun.elapsed() < LASTS {
                let (done, answer) = oneshot::channel();
                queue.send((turns.next(), done)).await.expect("a queue");
                answer.await.expect("an answer");
                likes += 1;
            }
            likes
        });
    }
    drop(queue);
    let work = async {
        let mut batch = Vec::new();
        while waiting.recv_many(&mut batch, QUEUED_MAX).await > 0 {
            let likers: Vec<_> = batch.iter().map(|(liker, _)| *liker).collect();
            session.like_together(post, &likers).await;
            batch.drain(..).for_each(|(_, done)| done.send(()).expect("somebody waits"));
        }
    };
    let (likes, ()) = tokio::join!(callers.join_all(), work);
    f64::from(likes.into_iter().sum::<u32>()) / begun.elapsed().as_secs_f64()
}

impl Session {
    async fn open(url: &str) -> Self {
        let client = connect(url).await;
        let prepare = async |statement: &str| client.prepare(statement).await.expect("a statement");
        let look = "SELECT like_count, like_version FROM posts WHERE id = $1";
        let count = "UPDATE posts SET like_count = like_count + $2, like_version = like_version + 1 WHERE id = $1";
        Self {
            lock: prepare(&format!("{look} FOR NO KEY UPDATE")).await,
            look: prepare(look).await,
            like: prepare(
                "INSERT INTO likes (post, liker, active, version) SELECT $1, liker, TRUE, $3 \
                 FROM unnest($2::BIGINT[]) AS likers (liker)",
            )
            .await,
            count: prepare(count).await,
            count_if: prepare(&format!("{count} AND like_version = $3")).await,
            tell: prepare(
                "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
                 VALUES ($1::BIGINT % 16, 'likes', CAST($1::BIGINT AS TEXT), 'post.liked', convert_to(repeat('x', 110), 'UTF8'), \
                     repeat('t', 55), 0)",
            )
            .await,
            client,
        }
    }

    async fn like_locked(&self, post: i64, liker: i64) {
        self.run("BEGIN").await;
        let before = self.client.query_one(&self.lock, &[&post]).await.expect("the post");
        let version: i64 = before.get(1);
        self.client.execute(&self.like, &[&post, &vec![liker], &(version + 1)]).await.expect("a like");
        self.client.execute(&self.count, &[&post, &1_i64]).await.expect("a count");
        self.client.execute(&self.tell, &[&post]).await.expect("an event");
        self.run("COMMIT").await;
    }

    async fn like_or_retry(&self, post: i64, liker: i64, tries: &AtomicU64) {
        loop {
            tries.fetch_add(1, Ordering::Relaxed);
            self.run("BEGIN").await;
            let before = self.client.query_one(&self.look, &[&post]).await.expect("the post");
            let version: i64 = before.get(1);
            self.client.execute(&self.like, &[&post, &vec![liker], &(version + 1)]).await.expect("a like");
            let counted = self.client.execute(&self.count_if, &[&post, &1_i64, &version]).await.expect("a count");
            if counted == 0 {
                self.run("ROLLBACK").await;
                continue;
            }
            self.client.execute(&self.tell, &[&post]).await.expect("an event");
            self.run("COMMIT").await;
            return;
        }
    }

    /// One event tells of all of them: the number in it is absolute.
    async fn like_together(&self, post: i64, likers: &[i64]) {
        self.run("BEGIN").await;
        let before = self.client.query_one(&self.lock, &[&post]).await.expect("the post");
        let version: i64 = before.get(1);
        self.client.execute(&self.like, &[&post, &likers, &(version + 1)]).await.expect("likes");
        self.client.execute(&self.count, &[&post, &(likers.len() as i64)]).await.expect("a count");
        self.client.execute(&self.tell, &[&post]).await.expect("an event");
        self.run("COMMIT").await;
    }

    async fn run(&self, statement: &str) {
        self.client.batch_execute(statement).await.expect(statement);
    }
}
