//! Who likes what.

use chassis::{Error, page::PageLimit};
use proto::{
    PostId, UserId,
    freshet::event::v1::{Liked, Unliked, envelope::Payload},
};
use store::ledger::{Event, Likes, Place, Viewer};

use super::Posts;
use crate::cursor::Cursor;

impl Posts {
    pub(super) async fn like(&self, user: UserId, post: PostId) -> Result<Likes, Error> {
        let compose = |row: &Likes| {
            Payload::Liked(Liked { post_id: post.to_string(), user_id: user.to_string(), like_count: row.count })
        };
        Ok(self.ledger.like(user, post, Event { id: self.ids.mint()?, compose: &compose }).await?)
    }

    pub(super) async fn unlike(&self, user: UserId, post: PostId) -> Result<Likes, Error> {
        let compose = |row: &Likes| {
            Payload::Unliked(Unliked { post_id: post.to_string(), user_id: user.to_string(), like_count: row.count })
        };
        Ok(self.ledger.unlike(user, post, Event { id: self.ids.mint()?, compose: &compose }).await?)
    }

    /// A page of those who like a post, without those whom the viewer is not to see.
    pub(super) async fn likers(
        &self,
        viewer: Viewer,
        post: PostId,
        limit: PageLimit,
        cursor: Option<Cursor>,
    ) -> Result<(Vec<Place>, Option<Cursor>), Error> {
        self.require_sight(viewer, post).await?;
        // One more than asked for tells whether there is another page.
        let wanted = u32::try_from(limit.get() + 1).unwrap_or(u32::MAX);
        let mut likers = self.ledger.likers(post, cursor.map(|cursor| cursor.0), wanted).await?;
        let more = likers.len() > limit.get();
        likers.truncate(limit.get());
        let next = likers.last().filter(|_| more).map(|last| Cursor(*last));
        if let Viewer::Person(viewer) = viewer {
            let people: Vec<_> = likers.iter().map(|liker| liker.user).collect();
            let relationships = self.relations.relationships(viewer, &people).await?;
            let hidden = relationships.iter().filter(|other| other.blocking || other.blocked_by || other.muting);
            let hidden: Vec<_> = hidden.map(|other| other.other).collect();
            likers.retain(|liker| !hidden.contains(&liker.user));
        }
        Ok((likers, next))
    }

    /// Those of these posts that a person likes and may still see, in their order.
    pub(super) async fn liked(&self, user: UserId, posts: &[PostId]) -> Result<Vec<PostId>, Error> {
        let liked = self.ledger.liked(user, posts).await?;
        let seen = self.ledger.batch(Viewer::Person(user), &liked).await?;
        let is_liked = |post: &&PostId| seen.iter().any(|seen| seen.id == **post);
        Ok(posts.iter().filter(is_liked).copied().collect())
    }
}
