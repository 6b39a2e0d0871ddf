//! What people are to each other: who follows, blocks, mutes and asks to follow whom. Whatever is done again changes nothing:
//! no event, no version.

use async_trait::async_trait;
use proto::{
    UserId,
    freshet::event::v1::{
        Blocked, FollowAccepted, FollowRejected, FollowRequested, FollowWithdrawn, Followed, ModeChanged, Muted,
        Unblocked, Unfollowed, Unmuted, envelope::Payload,
    },
};

use super::{Account, Event, FollowLimits, Mode};
use crate::{Error, archive::Edge, sets::AuthorState};

/// Two people, in the direction of what one is to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// Who follows, blocks, mutes or asks.
    pub from: UserId,
    /// Whom.
    pub to: UserId,
}

impl Pair {
    /// The other direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// A change between two people, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphChange {
    /// One follows the other.
    Followed(Pair),
    /// No longer.
    Unfollowed(Pair),
    /// One blocks the other.
    Blocked(Pair),
    /// No longer.
    Unblocked(Pair),
    /// One mutes the other, until a moment in milliseconds since 1970 or for good.
    Muted(Pair, Option<i64>),
    /// No longer.
    Unmuted(Pair),
    /// One asks to follow the other.
    Requested(Pair),
    /// The other said yes.
    Accepted(Pair),
    /// The other said no.
    Rejected(Pair),
    /// It is off without an answer.
    Withdrawn(Pair),
    /// An author's posts reach the followers' homes in another way.
    ModeChanged(UserId, Mode),
}

impl GraphChange {
    /// What its event carries.
    #[must_use]
    pub fn payload(&self) -> Payload {
        let ids = |Pair { from, to }: Pair| (from.to_string(), to.to_string());
        match *self {
            Self::Followed(pair) => {
                let (follower_id, followee_id) = ids(pair);
                Payload::Followed(Followed { follower_id, followee_id })
            }
            Self::Unfollowed(pair) => {
                let (follower_id, followee_id) = ids(pair);
                Payload::Unfollowed(Unfollowed { follower_id, followee_id })
            }
            Self::Blocked(pair) => {
                let (blocker_id, blocked_id) = ids(pair);
                Payload::Blocked(Blocked { blocker_id, blocked_id })
            }
            Self::Unblocked(pair) => {
                let (blocker_id, blocked_id) = ids(pair);
                Payload::Unblocked(Unblocked { blocker_id, blocked_id })
            }
            Self::Muted(pair, until_unix_ms) => {
                let (muter_id, muted_id) = ids(pair);
                Payload::Muted(Muted { muter_id, muted_id, until_unix_ms })
            }
            Self::Unmuted(pair) => {
                let (muter_id, muted_id) = ids(pair);
                Payload::Unmuted(Unmuted { muter_id, muted_id })
            }
            Self::Requested(pair) => {
                let (requester_id, target_id) = ids(pair);
                Payload::FollowRequested(FollowRequested { requester_id, target_id })
            }
            Self::Accepted(pair) => {
                let (requester_id, target_id) = ids(pair);
                Payload::FollowAccepted(FollowAccepted { requester_id, target_id })
            }
            Self::Rejected(pair) => {
                let (requester_id, target_id) = ids(pair);
                Payload::FollowRejected(FollowRejected { requester_id, target_id })
            }
            Self::Withdrawn(pair) => {
                let (requester_id, target_id) = ids(pair);
                Payload::FollowWithdrawn(FollowWithdrawn { requester_id, target_id })
            }
            Self::ModeChanged(author, mode) => {
                let mode = mode.fan_out().to_wire().into();
                Payload::ModeChanged(ModeChanged { author_id: author.to_string(), mode })
            }
        }
    }
}

/// What became of a wish to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// One follows the other.
    Follows,
    /// The account is private, and its owner is asked.
    Asks,
}

/// How a wish to follow stands, and whether this call made it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowOutcome {
    /// How it stands.
    pub wish: Wish,
    /// Whether this call made it so.
    pub changed: bool,
}

/// How something between two people stands after a call, whether or not the call changed it: who missed the answer asks
/// again, and can finish what depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The version since which it stands so; `None` when it never was otherwise.
    pub version: Option<i64>,
    /// Whether this call made it so.
    pub changed: bool,
}

/// How a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockOutcome {
    /// Since which version.
    pub version: i64,
    /// The versions with which the follow of the blocked one by the blocker, and the one in the other direction, ended;
    /// `None` where there never was one.
    pub ended: [Option<i64>; 2],
    /// Whether this call made it so.
    pub changed: bool,
}

/// How many: each the exact number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Whose.
    pub user: UserId,
    /// Who follow them.
    pub followers: i64,
    /// Whom they follow.
    pub following: i64,
    /// What they wrote.
    pub posts: i64,
    /// Whether strangers must ask before they follow.
    pub private: bool,
}

/// Who follows whom.
#[async_trait]
pub trait Graph: Send + Sync {
    /// Makes one follow the other, or ask to, where that account is private. A request that was open ends with the follow.
    /// [`Error::Blocked`] when one of them blocks the other, [`Error::FolloweesFull`] when the follower follows as many as
    /// that already.
    async fn follow(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 3],
    ) -> Result<FollowOutcome, Error>;

    /// Ends a follow, or takes a request back. Gives the version with which the follow ended, now or before.
    async fn unfollow(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 2],
    ) -> Result<Outcome, Error>;

    /// The people whom a reader follows.
    async fn followees(&self, reader: UserId) -> Result<Vec<UserId>, Error>;

    /// The followers of several authors as one list of (author, follower), in that order: a chunk of it, beginning after a
    /// pair. A chunk that is shorter than `limit` is the last one.
    async fn followers(
        &self,
        authors: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
    ) -> Result<Vec<(UserId, UserId)>, Error>;

    /// How these follows stand, in no order; those that never were are left out.
    async fn edges(&self, pairs: &[Pair]) -> Result<Vec<Edge>, Error>;
}

/// Who blocks whom.
#[async_trait]
pub trait Blocks: Send + Sync {
    /// Makes one block the other. Follows and requests between them end, each with an event of its own.
    async fn block(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 5],
    ) -> Result<BlockOutcome, Error>;

    /// Ends a block. What it ended stays ended.
    async fn unblock(&self, pair: Pair, event: Event<'_, GraphChange>) -> Result<Outcome, Error>;
}

/// Who mutes whom.
#[async_trait]
pub trait Mutes: Send + Sync {
    /// Makes one mute the other, until a moment in milliseconds since 1970 or for good. Another moment is a change.
    async fn mute(&self, pair: Pair, until_ms: Option<i64>, event: Event<'_, GraphChange>) -> Result<Outcome, Error>;

    /// Ends a mute.
    async fn unmute(&self, pair: Pair, event: Event<'_, GraphChange>) -> Result<Outcome, Error>;
}

/// Who asks to follow whom. A pair is from who asks to who is asked.
#[async_trait]
pub trait FollowRequests: Send + Sync {
    /// Makes an account private, or public again. True when that changed it. Open requests stay open: nobody gets a follower
    /// without a word.
    async fn set_private(&self, user: UserId, private: bool, event: Event<'_, bool>) -> Result<bool, Error>;

    /// Turns a request into a follow. [`Error::NoRequest`] when there is none, and no follow either;
    /// [`Error::FolloweesFull`] when who asked follows as many as that already.
    async fn accept(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 3],
    ) -> Result<FollowOutcome, Error>;

    /// Ends a request without a follow. True when there was one.
    async fn reject(&self, pair: Pair, event: Event<'_, GraphChange>) -> Result<bool, Error>;
}

/// Which list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Whom the owner follows.
    Following,
    /// Who follow the owner.
    Followers,
    /// Whom the owner blocks.
    Blocks,
    /// Whom the owner mutes, now.
    Mutes,
    /// Who ask to follow the owner.
    FollowRequests,
}

impl List {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Following, Self::Followers, Self::Blocks, Self::Mutes, Self::FollowRequests];
}

/// A place in a list: what became so later stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Since when it is so.
    pub version: i64,
    /// Who.
    pub user: UserId,
}

/// Someone in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Who, and where.
    pub place: Place,
    /// When a mute ends by itself, in milliseconds since 1970.
    pub until_ms: Option<i64>,
}

/// What a person is to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relationship {
    /// The other one.
    pub other: UserId,
    /// Whether the other account is private.
    pub private: bool,
    /// Whether the person follows the other.
    pub following: bool,
    /// Whether the other follows the person.
    pub followed_by: bool,
    /// Whether the person has asked to follow the other.
    pub requested: bool,
    /// Whether the other has asked to follow the person.
    pub requested_by: bool,
    /// Whether the person blocks the other.
    pub blocking: bool,
    /// Whether the other blocks the person.
    pub blocked_by: bool,
    /// Whether the person mutes the other, now.
    pub muting: bool,
    /// When that ends by itself, in milliseconds since 1970.
    pub muted_until_ms: Option<i64>,
}

/// What people are to each other, read.
#[async_trait]
pub trait Relations: Send + Sync {
    /// A list, newest first, beginning below a place. What comes and goes meanwhile moves nobody else.
    async fn list(&self, list: List, owner: UserId, below: Option<Place>, limit: u32) -> Result<Vec<Listed>, Error>;

    /// What a person is to others, in no order; unknown people are left out.
    async fn relationships(&self, person: UserId, others: &[UserId]) -> Result<Vec<Relationship>, Error>;

    /// The exact numbers of these people, in no order; unknown people are left out.
    async fn counters(&self, users: &[UserId]) -> Result<Vec<Counters>, Error>;

    /// The authors whom a reader is not to see: muted, blocked either way, and, because a push may be under way, those
    /// whom the reader has ceased to follow of late.
    async fn hidden(&self, reader: UserId) -> Result<Vec<AuthorState>, Error>;
}

/// An author of another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteAuthor {
    /// The id here, if the author is new.
    pub id: UserId,
    /// The other server.
    pub origin: String,
    /// The author's id there.
    pub remote_id: String,
    /// The handle here.
    pub handle: String,
    /// What is shown.
    pub display_name: String,
}

/// Authors of other servers: each has an account here, and is followed like anyone.
#[async_trait]
pub trait RemoteAuthors: Send + Sync {
    /// Makes the author known, or says what they are called now. An origin and an id there stand for one account for good.
    /// [`Error::HandleTaken`] when the handle is another one's.
    async fn upsert(&self, author: RemoteAuthor, event: Event<'_, Account>) -> Result<Account, Error>;
}
