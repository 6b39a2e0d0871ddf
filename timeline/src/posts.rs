//! Posts: writing, reading, liking.

pub(crate) mod grpc;
mod key;
mod text;

use std::{convert::Infallible, sync::Arc};

use chassis::{Error, OnFailure, Pod, Reason, Stage, id::Minter};
use key::IdempotencyKey;
use proto::{
    PostId, UserId,
    freshet::event::v1::{Liked, PostCreated, envelope::Payload},
};
use store::{
    Stores,
    ledger::{self, Event, Likes, NewPost, Post, Written},
};
use text::Text;

/// What people write, and what others say to it.
pub(crate) struct Posts {
    ledger: Arc<dyn ledger::Posts>,
    ids: Arc<Minter>,
}

impl Posts {
    pub(crate) fn new(stores: &Stores, ids: Arc<Minter>) -> Self {
        Self { ledger: stores.ledger.posts.clone(), ids }
    }

    /// Forgets old idempotency keys for as long as the pod runs.
    pub(crate) fn start_forgetting_keys(&self, pod: &Pod) {
        let ledger = self.ledger.clone();
        pod.tasks.spawn("old keys", Stage::Loops, OnFailure::Restart, move |stop| {
            let ledger = ledger.clone();
            async move {
                key::keep_forgetting(&*ledger, stop).await;
                Ok::<(), Infallible>(())
            }
        });
    }

    async fn create(&self, author: UserId, text: Text, key: Option<IdempotencyKey>) -> Result<Post, Error> {
        let event = self.ids.mint()?;
        let post = NewPost { id: self.ids.mint()?, author, text: text.into(), key: key.map(Into::into) };
        let compose = |Written { post, fan_out }: &Written| {
            Payload::PostCreated(PostCreated {
                post_id: post.id.to_string(),
                author_id: post.author.to_string(),
                text: post.text.clone(),
                created_at_ms: post.created_at_ms,
                fan_out: fan_out.to_wire().into(),
            })
        };
        Ok(self.ledger.create(post, Event { id: event, compose: &compose }).await?)
    }

    async fn get(&self, id: PostId) -> Result<Post, Error> {
        let found = self.ledger.batch(&[id]).await?.pop();
        found.ok_or_else(|| Error::new(Reason::PostNotFound, "there is no such post"))
    }

    async fn like(&self, user: UserId, post: PostId) -> Result<Likes, Error> {
        let compose = |row: &Likes| {
            Payload::Liked(Liked { post_id: post.to_string(), user_id: user.to_string(), like_count: row.count })
        };
        Ok(self.ledger.like(user, post, Event { id: self.ids.mint()?, compose: &compose }).await?)
    }
}
