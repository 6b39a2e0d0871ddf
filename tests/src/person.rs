//! A person who uses a sandbox: what they do, and what they see.

pub mod account;
mod graph;
mod posts;

use std::net::SocketAddr;

use chassis::{Error, token::Caller};
use proto::{
    UserId,
    freshet::{
        post::v1::{CreatePostRequest, LikeRequest, Post},
        ranking::v1::ListHotPostsRequest,
        timeline::v1::{Entry, GetHomeTimelineRequest},
        user::v1::{FollowRequest, SignUpRequest},
    },
};

use crate::{Sandbox, Stream, grpc::Client, wait};

/// Everybody's password.
pub const PASSWORD: &str = "correct horse battery";

/// A person with an account. Their calls carry their own token.
pub struct Person {
    /// Who they are.
    pub id: UserId,
    /// Their unique name.
    pub handle: String,
    timeline: Client,
    service: Client,
    ranking: Client,
    edge: SocketAddr,
}

impl Person {
    /// Signs up under this name.
    pub async fn sign_up(world: &Sandbox, name: &str) -> Self {
        let request = SignUpRequest { handle: name.into(), password: PASSWORD.into(), ..SignUpRequest::default() };
        let service = world.timeline(Caller::Service("tests".into()));
        let user = service.sign_up(request).await.expect("an account").user.expect("a user");
        let id = user.id.parse().expect("a user id");
        Self {
            id,
            handle: user.handle,
            service: world.timeline(Caller::Service("tests".into())),
            timeline: world.timeline(Caller::User(id)),
            ranking: world.ranking(Caller::User(id)),
            edge: world.edge(),
        }
    }

    /// Follows someone.
    pub async fn follow(&self, other: &Self) {
        self.tries_to_follow(&other.id.to_string()).await.expect("a follow");
    }

    /// Follows whoever has this id, if that is possible.
    pub async fn tries_to_follow(&self, followee_id: &str) -> Result<(), Error> {
        let request = FollowRequest { follower_id: self.id.to_string(), followee_id: followee_id.into() };
        self.timeline.follow(request).await.map(|_| ())
    }

    /// Writes a post.
    pub async fn post(&self, text: &str) -> Post {
        self.tries_to_post(text).await.expect("a post")
    }

    /// Writes a post, if that is possible.
    pub async fn tries_to_post(&self, text: &str) -> Result<Post, Error> {
        self.posts_with_key(text, None).await
    }

    /// Writes a post under an idempotency key, if that is possible.
    pub async fn posts_with_key(&self, text: &str, key: Option<&str>) -> Result<Post, Error> {
        let (author_id, text, idempotency_key) = (self.id.to_string(), text.into(), key.map(str::to_owned));
        let request = CreatePostRequest { author_id, text, idempotency_key, ..CreatePostRequest::default() };
        Ok(self.timeline.create_post(request).await?.post.expect("a post"))
    }

    /// Likes a post and learns how many like it now.
    pub async fn like(&self, post: &Post) -> i64 {
        self.tries_to_like(&post.id).await.expect("a like")
    }

    /// Likes whatever has this id, if that is possible.
    pub async fn tries_to_like(&self, post_id: &str) -> Result<i64, Error> {
        let request = LikeRequest { user_id: self.id.to_string(), post_id: post_id.into() };
        Ok(self.timeline.like(request).await?.like_count)
    }

    /// A page of the home timeline, if that is possible.
    pub async fn tries_to_read(
        &self,
        limit: Option<i32>,
        max_id: Option<String>,
    ) -> Result<(Vec<Entry>, Option<String>), Error> {
        let request = GetHomeTimelineRequest { reader_id: self.id.to_string(), limit, max_id };
        self.timeline.get_home_timeline(request).await.map(|page| (page.entries, page.next_max_id))
    }

    /// The whole home timeline, by pages of this many.
    pub async fn scrolls_home(&self, limit: i32) -> Vec<String> {
        let (mut shown, mut below) = (Vec::new(), None);
        loop {
            let (entries, next) = self.tries_to_read(Some(limit), below).await.expect("a page");
            shown.extend(entries.into_iter().map(|entry| entry.id));
            below = next;
            if below.is_none() {
                return shown;
            }
        }
    }

    /// Waits until the home timeline shows exactly these posts, newest first.
    pub async fn home_shows(&self, posts: &[&Post]) {
        let expected: Vec<_> = posts.iter().map(|post| post.id.as_str()).collect();
        wait::until(&format!("{}'s home to show {expected:?}", self.handle), async || {
            (self.scrolls_home(200).await == expected).then_some(())
        })
        .await;
    }

    /// Waits until today's hot posts are exactly these, the hottest first.
    pub async fn hot_posts_are(&self, posts: &[(&Post, i64)]) {
        let expected: Vec<_> = posts.iter().map(|(post, score)| (post.id.clone(), *score)).collect();
        wait::until(&format!("hot posts {expected:?}"), async || {
            let hot = self.ranking.list_hot_posts(ListHotPostsRequest::default()).await.expect("hot posts").posts;
            let hot: Vec<_> = hot.into_iter().map(|hot| (hot.post_id, hot.score)).collect();
            (hot == expected).then_some(())
        })
        .await;
    }

    /// Signs in at an edge pod and opens the home event stream.
    pub async fn stream(&self) -> Stream {
        self.stream_at(self.edge).await
    }

    /// Signs in at this edge pod and opens the home event stream.
    pub async fn stream_at(&self, edge: SocketAddr) -> Stream {
        let cookie = crate::stream::sign_in(edge, &self.handle, PASSWORD).await.expect("a session");
        Stream::open(edge, &cookie).await.expect("a stream")
    }
}
