//! People who use a cluster all at once: they post, like, follow and watch their streams, and note what they were told.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use chassis::{Random, Stop, random::System};
use futures_util::future::join_all;
use proto::{
    UserId,
    freshet::{
        post::v1::{CreatePostRequest, LikeRequest},
        timeline::v1::GetHomeTimelineRequest,
        user::v1::{FollowRequest, SignUpRequest},
    },
};
use tokio::task::JoinSet;

use crate::{
    Stream,
    cluster::Cluster,
    grpc::Client,
    journal::{Deed, Journal, Outcome},
    person::PASSWORD,
    stream::sign_in,
    watcher::Watcher,
};

/// How many people each one follows at the start.
const FOLLOWEES: usize = 4;
const PAUSE_BETWEEN_DEEDS: Duration = Duration::from_millis(50);

/// The people of a cluster.
pub struct Crowd {
    /// Who they are.
    pub people: Vec<UserId>,
    /// What they did.
    pub journal: Arc<Journal>,
    /// What some of them saw on their streams.
    pub watchers: Vec<Watcher>,
    /// How many posts they asked for a second time, because nobody answered the first.
    pub asked_again: Arc<AtomicUsize>,
    handles: Vec<String>,
    clients: Arc<Vec<Client>>,
    at_work: JoinSet<()>,
    stop: Stop,
}

impl Crowd {
    /// People who have signed up, follow some of the others, and have looked at their homes once.
    pub async fn gather(cluster: &Cluster, size: usize) -> Self {
        let clients = Arc::new(cluster.clients("timeline"));
        let handles: Vec<_> = (0..size).map(|number| format!("person_{number}")).collect();
        let people = join_all(handles.iter().enumerate().map(|(number, handle)| {
            let client = &clients[number % clients.len()];
            async move { sign_up(client, handle).await }
        }))
        .await;
        let journal = Arc::new(Journal::in_folder(cluster.folder()));
        let crowd = Self {
            people,
            journal,
            watchers: Vec::new(),
            asked_again: Arc::default(),
            handles,
            clients,
            at_work: JoinSet::new(),
            stop: Stop::new(),
        };
        for (number, person) in crowd.people.iter().enumerate() {
            for step in 1..=FOLLOWEES {
                let followee = crowd.people[(number + step) % size];
                follow(&crowd.clients[0], &crowd.journal, *person, followee).await;
            }
            let request = GetHomeTimelineRequest { reader_id: person.to_string(), ..Default::default() };
            crowd.clients[0].get_home_timeline(request).await.expect("a home");
        }
        crowd
    }

    /// The first few people open their streams, each at the next edge pod.
    pub async fn watch(&mut self, count: usize, edges: &[SocketAddr]) {
        for number in 0..count {
            let (edge, handle) = (edges[number % edges.len()], &self.handles[number]);
            let cookie = sign_in(edge, handle, PASSWORD).await.expect("a session");
            let stream = Stream::open(edge, &cookie).await.expect("a stream");
            let client = self.clients[number % self.clients.len()].clone();
            self.watchers.push(Watcher::start(self.people[number], stream, (edge, cookie), client));
        }
    }

    /// Everybody begins to do things, one after the other each, until told to stop.
    pub fn begin(&mut self) {
        for person in self.people.clone() {
            let worker = Worker {
                person,
                people: self.people.clone(),
                clients: self.clients.clone(),
                journal: self.journal.clone(),
                asked_again: self.asked_again.clone(),
            };
            let stop = self.stop.clone();
            self.at_work.spawn(async move {
                let mut turn = 0;
                while !stop.is_cancelled() {
                    worker.does_something(turn).await;
                    turn += 1;
                    tokio::time::sleep(PAUSE_BETWEEN_DEEDS).await;
                }
            });
        }
    }

    /// Everybody stops, once what they are at is answered.
    pub async fn end(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.at_work.join_next().await {
            ended.expect("nobody panics");
        }
    }
}

struct Worker {
    person: UserId,
    people: Vec<UserId>,
    clients: Arc<Vec<Client>>,
    journal: Arc<Journal>,
    asked_again: Arc<AtomicUsize>,
}

impl Worker {
    /// Mostly posts; some likes of what others wrote; now and then a follow.
    async fn does_something(&self, turn: usize) {
        let dice = usize::try_from((&System as &dyn Random).number() % 1_000_000).unwrap_or_default();
        let client = &self.clients[turn % self.clients.len()];
        match turn % 10 {
            3 | 7 => self.likes(client, dice).await,
            9 => follow(client, &self.journal, self.person, self.somebody_else(dice)).await,
            _ => self.posts(client, turn).await,
        }
    }

    async fn posts(&self, client: &Client, turn: usize) {
        let text = format!("{} says {turn}", self.person);
        let (author_id, key) = (self.person.to_string(), format!("turn-{turn}"));
        let request = CreatePostRequest {
            author_id,
            text: text.clone(),
            idempotency_key: Some(key),
            ..CreatePostRequest::default()
        };
        let mut answer = client.create_post(request.clone()).await;
        let mut outcome = Outcome::of(&answer);
        if outcome == Outcome::Unknown {
            // Whatever became of the first call, the key makes it one post. At another pod, since this one may be gone.
            self.asked_again.fetch_add(1, Ordering::Relaxed);
            answer = self.clients[(turn + 1) % self.clients.len()].create_post(request).await;
            // A second call that fails, however clearly, says nothing about the first.
            outcome = if answer.is_ok() { Outcome::Acknowledged } else { Outcome::Unknown };
        }
        let id = answer.ok().and_then(|answer| answer.post).map(|post| post.id);
        self.journal.write(self.person, Deed::Post { text, id }, outcome);
    }

    async fn likes(&self, client: &Client, dice: usize) {
        let posts: Vec<_> = self
            .journal
            .lines()
            .into_iter()
            .filter_map(|line| match line.deed {
                Deed::Post { id, .. } => id,
                _ => None,
            })
            .collect();
        let Some(post) = posts.get(dice % posts.len().max(1)).cloned() else { return };
        let answer = client.like(LikeRequest { user_id: self.person.to_string(), post_id: post.clone() }).await;
        self.journal.write(self.person, Deed::Like { post }, Outcome::of(&answer));
    }

    fn somebody_else(&self, dice: usize) -> UserId {
        let others: Vec<_> = self.people.iter().filter(|person| **person != self.person).collect();
        *others[dice % others.len()]
    }
}

async fn sign_up(client: &Client, handle: &str) -> UserId {
    let request = SignUpRequest { handle: handle.into(), password: PASSWORD.into(), ..SignUpRequest::default() };
    let user = client.sign_up(request).await.expect("an account").user.expect("a user");
    user.id.parse().expect("a user id")
}

async fn follow(client: &Client, journal: &Journal, follower: UserId, followee: UserId) {
    let request = FollowRequest { follower_id: follower.to_string(), followee_id: followee.to_string() };
    let answer = client.follow(request).await;
    journal.write(follower, Deed::Follow { followee }, Outcome::of(&answer));
}
