//! What is left to end when a person is gone. The person's row says so already, and every other change refuses who is gone:
//! so nothing new comes up, and whatever is found here is ended for good.

use async_trait::async_trait;
use proto::{
    PostId, UserId,
    freshet::event::v1::{self, envelope::Payload},
};

use super::{Deleted, Event, FollowLimits, GraphChange, Likes};
use crate::Error;

/// What a person can be to others, and others to that person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Follows of others.
    Following,
    /// Follows by others.
    Followers,
    /// Requests to follow others.
    Asking,
    /// Requests by others.
    Asked,
    /// Blocks of others.
    Blocking,
    /// Blocks by others.
    Blocked,
    /// Mutes of others.
    Muting,
    /// Mutes by others.
    Muted,
}

impl Tie {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Following,
        Self::Followers,
        Self::Asking,
        Self::Asked,
        Self::Blocking,
        Self::Blocked,
        Self::Muting,
        Self::Muted,
    ];
}

/// A like that has ended, and how many are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unliked {
    /// Of which post.
    pub post: PostId,
    /// By whom.
    pub user: UserId,
    /// How many like it now.
    pub likes: Likes,
}

impl Unliked {
    /// What its event carries.
    #[must_use]
    pub fn payload(&self) -> Payload {
        let (post_id, user_id) = (self.post.to_string(), self.user.to_string());
        Payload::Unliked(v1::Unliked { post_id, user_id, like_count: self.likes.count })
    }
}

/// Ends what a deleted person has to do with others, so many at a time as there are events. Fewer than that: nothing is left of
/// it. [`Error::NotFound`] for a person who is not deleted.
#[async_trait]
pub trait Departures: Send + Sync {
    /// Ends ties of one sort; the others' numbers follow, and the modes that depend on them.
    async fn end_ties(
        &self,
        person: UserId,
        tie: Tie,
        limits: FollowLimits,
        events: &[[Event<'_, GraphChange>; 2]],
    ) -> Result<usize, Error>;

    /// Ends likes by the person; the posts' numbers follow.
    async fn end_likes(&self, person: UserId, events: &[Event<'_, Unliked>]) -> Result<usize, Error>;

    /// Deletes posts of the person.
    async fn delete_posts(&self, person: UserId, events: &[Event<'_, Deleted>]) -> Result<usize, Error>;
}
