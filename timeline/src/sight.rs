//! What a viewer may see: every read of posts goes through here. The rule itself is the ledger's, one for all of them
//! (`store/src/ledger/sql/sight.rs`), and holds for the moment at which it is asked.

use std::{collections::HashMap, sync::Arc};

use chassis::Error;
use proto::PostId;
use store::{
    Stores,
    ledger::{Post, Posts, Viewer},
};

/// A post that someone may see.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) post: Post,
    pub(crate) quote: Quote,
}

/// What is shown of a quoted post.
#[derive(Clone, Debug)]
pub(crate) enum Quote {
    /// Nothing is quoted.
    None,
    /// The viewer may not see it, or it is gone.
    Unavailable,
    /// This, without what it quotes in turn.
    Of(Box<Post>),
}

/// Reads posts for viewers.
#[derive(Clone)]
pub(crate) struct Sight {
    posts: Arc<dyn Posts>,
}

impl Sight {
    pub(crate) fn new(stores: &Stores) -> Self {
        Self { posts: stores.ledger.posts.clone() }
    }

    /// Those of these posts that the viewer may see, each as often and in the order as asked for.
    pub(crate) async fn see(&self, viewer: Viewer, ids: &[PostId]) -> Result<Vec<Seen>, Error> {
        let found = self.posts.batch(viewer, ids).await?;
        let by_id: HashMap<_, _> = found.into_iter().map(|post| (post.id, post)).collect();
        let posts = ids.iter().filter_map(|id| by_id.get(id).cloned()).collect();
        self.with_quotes(viewer, posts).await
    }

    /// Posts that the viewer may see, with what they quote.
    pub(crate) async fn with_quotes(&self, viewer: Viewer, posts: Vec<Post>) -> Result<Vec<Seen>, Error> {
        let mut quoted: Vec<_> = posts.iter().filter_map(|post| post.quote_of).collect();
        quoted.sort_unstable();
        quoted.dedup();
        let found = self.posts.batch(viewer, &quoted).await?;
        let by_id: HashMap<_, _> = found.into_iter().map(|post| (post.id, post)).collect();
        let seen = |post: Post| {
            let quote = match post.quote_of.map(|quoted| by_id.get(&quoted)) {
                None => Quote::None,
                Some(None) => Quote::Unavailable,
                Some(Some(quoted)) => Quote::Of(Box::new(quoted.clone())),
            };
            Seen { post, quote }
        };
        Ok(posts.into_iter().map(seen).collect())
    }
}

/// The viewer whom a call names; nobody in particular is a stranger.
pub(crate) fn viewer(who: Option<proto::UserId>) -> Viewer {
    who.map_or(Viewer::Stranger, Viewer::Person)
}
