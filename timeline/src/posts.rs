//! Posts: writing, editing, deleting, reading, liking.

mod draft;
mod entities;
mod events;
pub(crate) mod grpc;
mod key;
mod language;
mod likes;
mod text;

use std::{convert::Infallible, sync::Arc};

use chassis::{Error, OnFailure, Pod, Reason, Stage, config::Keys, id::Minter, page::PageLimit};
use draft::Draft;
use proto::{PostId, UserId};
use store::{
    Stores,
    ledger::{self, Accounts, Event, NewPost, Post, PostChange, PostKey, Relations, Revision, Viewer},
};

use crate::sight::{Seen, Sight};

/// Posts that can be asked for at once.
const BATCH_POSTS_MAX: usize = 200;

/// Limits of posts.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    text_characters_max: usize,
}

impl Config {
    /// Reads the keys `posts.*`.
    pub(crate) fn read(keys: &mut Keys) -> Self {
        let about = "characters of a post at the most, as people count them";
        let characters = keys.number("posts.text_characters_max", 300, 1..=2_000, about);
        Self { text_characters_max: usize::try_from(characters).unwrap_or(300) }
    }
}

/// A page of posts, newest first.
pub(crate) struct PostPage {
    pub(crate) posts: Vec<Seen>,
    /// Where the next, older page begins; `None` when there is nothing older.
    pub(crate) next: Option<PostId>,
}

/// What people write, and what others say to it.
pub(crate) struct Posts {
    ledger: Arc<dyn ledger::Posts>,
    accounts: Arc<dyn Accounts>,
    relations: Arc<dyn Relations>,
    sight: Sight,
    ids: Arc<Minter>,
    config: Config,
}

impl Posts {
    pub(crate) fn new(stores: &Stores, ids: Arc<Minter>, config: Config) -> Self {
        Self {
            ledger: stores.ledger.posts.clone(),
            accounts: stores.ledger.accounts.clone(),
            relations: stores.ledger.relations.clone(),
            sight: Sight::new(stores),
            ids,
            config,
        }
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

    async fn create(&self, author: UserId, draft: Draft, key: Option<PostKey>) -> Result<Seen, Error> {
        let event = self.ids.mint()?;
        let Draft { content, visibility, quote_of } = draft;
        let post = NewPost { id: self.ids.mint()?, author, content, visibility, quote_of, key };
        let post = self.ledger.create(post, Event { id: event, compose: &events::created }).await?;
        self.seen_by_author(post).await
    }

    async fn update(&self, author: UserId, post: PostId, version: i64, change: PostChange) -> Result<Seen, Error> {
        let compose = |row: &Post| events::updated(row);
        let event = Event { id: self.ids.mint()?, compose: &compose };
        let post = self.ledger.update((author, post), version, change, event).await?;
        self.seen_by_author(post).await
    }

    /// With the commit it is gone from every read, because every read asks the ledger. What is left of it in the archive, the
    /// homes and the streams is taken away by the relay, from the event.
    async fn delete(&self, author: UserId, post: PostId) -> Result<(), Error> {
        let event = Event { id: self.ids.mint()?, compose: &events::deleted };
        self.ledger.delete(author, post, event).await?;
        Ok(())
    }

    async fn get(&self, viewer: Viewer, id: PostId) -> Result<Seen, Error> {
        self.sight.see(viewer, &[id]).await?.pop().ok_or_else(no_post)
    }

    /// Those that the viewer may see, each as often and in the order as asked for, and the others.
    async fn batch(&self, viewer: Viewer, ids: &[PostId]) -> Result<(Vec<Seen>, Vec<PostId>), Error> {
        let seen = self.sight.see(viewer, ids).await?;
        let found: std::collections::HashSet<_> = seen.iter().map(|seen| seen.post.id).collect();
        let missing = ids.iter().filter(|id| !found.contains(id)).copied().collect();
        Ok((seen, missing))
    }

    async fn by_author(
        &self,
        viewer: Viewer,
        author: UserId,
        below: Option<PostId>,
        limit: PageLimit,
    ) -> Result<PostPage, Error> {
        // One more than asked for tells whether there is an older page.
        let wanted = u32::try_from(limit.get() + 1).unwrap_or(u32::MAX);
        let mut posts = self.ledger.by_author(viewer, author, below, wanted).await?;
        if posts.is_empty() && !self.accounts.exists(author).await? {
            return Err(Error::new(Reason::UserNotFound, "there is no such user"));
        }
        let more = posts.len() > limit.get();
        posts.truncate(limit.get());
        let next = posts.last().filter(|_| more).map(|last| last.id);
        Ok(PostPage { posts: self.sight.with_quotes(viewer, posts).await?, next })
    }

    /// What a post said before its edits, and the version below which the next page begins.
    async fn revisions(
        &self,
        viewer: Viewer,
        post: PostId,
        below: Option<i64>,
        limit: PageLimit,
    ) -> Result<(Vec<Revision>, Option<i64>), Error> {
        let wanted = u32::try_from(limit.get() + 1).unwrap_or(u32::MAX);
        let mut revisions = self.ledger.revisions(post, below, wanted).await?;
        // Asked after they were read: a post that is deleted in between has lost its history before it lost its sight.
        self.require_sight(viewer, post).await?;
        let more = revisions.len() > limit.get();
        revisions.truncate(limit.get());
        let next = revisions.last().filter(|_| more).map(|last| last.version);
        Ok((revisions, next))
    }

    /// That the viewer may see the post.
    async fn require_sight(&self, viewer: Viewer, post: PostId) -> Result<(), Error> {
        self.ledger.batch(viewer, &[post]).await?.pop().map(|_| ()).ok_or_else(no_post)
    }

    async fn seen_by_author(&self, post: Post) -> Result<Seen, Error> {
        let viewer = Viewer::Person(post.author);
        self.sight.with_quotes(viewer, vec![post]).await?.pop().ok_or_else(no_post)
    }
}

fn no_post() -> Error {
    Error::new(Reason::PostNotFound, "there is no such post")
}
