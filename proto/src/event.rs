//! The events' names: which topic an event goes to, under which key, and how its type is written.

use crate::freshet::event::v1::{Envelope, envelope::Payload};

/// A topic of the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Accounts and sessions, by person.
    Users,
    /// Who follows whom, by follower.
    Graph,
    /// Posts, by author.
    Posts,
    /// Likes, by post.
    Likes,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Users, Self::Graph, Self::Posts, Self::Likes];

    /// The name in the event log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Users => "users",
            Self::Graph => "graph",
            Self::Posts => "posts",
            Self::Likes => "likes",
        }
    }

    /// The topic with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.name() == name)
    }
}

/// How the types of events are written in envelopes, outbox rows and headers.
pub mod kind {
    /// Someone signed up.
    pub const USER_CREATED: &str = "user.created";
    /// Someone follows someone.
    pub const FOLLOWED: &str = "graph.followed";
    /// Someone wrote a post.
    pub const POST_CREATED: &str = "post.created";
    /// Someone likes a post.
    pub const LIKED: &str = "post.liked";
    /// An author's posts reach the followers' homes in another way.
    pub const MODE_CHANGED: &str = "graph.mode_changed";
    /// A post was edited.
    pub const POST_UPDATED: &str = "post.updated";
    /// A post was deleted.
    pub const POST_DELETED: &str = "post.deleted";
    /// Someone no longer likes a post.
    pub const UNLIKED: &str = "post.unliked";
    /// How far a partition is whole.
    pub const MARK: &str = "relay.mark";
    /// A profile changed.
    pub const USER_CHANGED: &str = "user.changed";
    /// An account was deleted.
    pub const USER_DELETED: &str = "user.deleted";
    /// Someone no longer follows someone.
    pub const UNFOLLOWED: &str = "graph.unfollowed";
    /// Someone blocks someone.
    pub const BLOCKED: &str = "graph.blocked";
    /// A block has ended.
    pub const UNBLOCKED: &str = "graph.unblocked";
    /// Someone mutes someone.
    pub const MUTED: &str = "graph.muted";
    /// A mute was ended.
    pub const UNMUTED: &str = "graph.unmuted";
    /// Someone asks to follow a private account.
    pub const FOLLOW_REQUESTED: &str = "graph.follow_requested";
    /// A request to follow was accepted.
    pub const FOLLOW_ACCEPTED: &str = "graph.follow_accepted";
    /// A request to follow was rejected.
    pub const FOLLOW_REJECTED: &str = "graph.follow_rejected";
    /// A request to follow is off.
    pub const FOLLOW_WITHDRAWN: &str = "graph.follow_withdrawn";
    /// An account became private, or public again.
    pub const PRIVACY_CHANGED: &str = "user.privacy_changed";
    /// An author of another server became known, or is called something else.
    pub const REMOTE_AUTHOR_UPSERTED: &str = "user.remote_upserted";
}

impl Payload {
    /// How the type is written in envelopes, outbox rows and headers.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::UserCreated(_) => kind::USER_CREATED,
            Self::Followed(_) => kind::FOLLOWED,
            Self::PostCreated(_) => kind::POST_CREATED,
            Self::Liked(_) => kind::LIKED,
            Self::PostUpdated(_) => kind::POST_UPDATED,
            Self::PostDeleted(_) => kind::POST_DELETED,
            Self::Unliked(_) => kind::UNLIKED,
            Self::ModeChanged(_) => kind::MODE_CHANGED,
            Self::Mark(_) => kind::MARK,
            Self::UserChanged(_) => kind::USER_CHANGED,
            Self::UserDeleted(_) => kind::USER_DELETED,
            Self::Unfollowed(_) => kind::UNFOLLOWED,
            Self::Blocked(_) => kind::BLOCKED,
            Self::Unblocked(_) => kind::UNBLOCKED,
            Self::Muted(_) => kind::MUTED,
            Self::Unmuted(_) => kind::UNMUTED,
            Self::FollowRequested(_) => kind::FOLLOW_REQUESTED,
            Self::FollowAccepted(_) => kind::FOLLOW_ACCEPTED,
            Self::FollowRejected(_) => kind::FOLLOW_REJECTED,
            Self::FollowWithdrawn(_) => kind::FOLLOW_WITHDRAWN,
            Self::PrivacyChanged(_) => kind::PRIVACY_CHANGED,
            Self::RemoteAuthorUpserted(_) => kind::REMOTE_AUTHOR_UPSERTED,
        }
    }

    /// The topic that carries it.
    #[must_use]
    pub const fn topic(&self) -> Topic {
        match self {
            Self::UserCreated(_)
            | Self::UserChanged(_)
            | Self::UserDeleted(_)
            | Self::PrivacyChanged(_)
            | Self::RemoteAuthorUpserted(_) => Topic::Users,
            Self::Followed(_)
            | Self::Unfollowed(_)
            | Self::Blocked(_)
            | Self::Unblocked(_)
            | Self::Muted(_)
            | Self::Unmuted(_)
            | Self::FollowRequested(_)
            | Self::FollowAccepted(_)
            | Self::FollowRejected(_)
            | Self::FollowWithdrawn(_)
            | Self::ModeChanged(_) => Topic::Graph,
            Self::PostCreated(_) | Self::PostUpdated(_) | Self::PostDeleted(_) | Self::Mark(_) => Topic::Posts,
            Self::Liked(_) | Self::Unliked(_) => Topic::Likes,
        }
    }

    /// The key: order is kept among the events that share one.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::UserCreated(event) => &event.user_id,
            Self::Followed(event) => &event.follower_id,
            Self::PostCreated(event) => &event.author_id,
            Self::PostUpdated(event) => event.post.as_ref().map_or("", |post| &post.author_id),
            Self::PostDeleted(event) => &event.author_id,
            Self::Liked(event) => &event.post_id,
            Self::Unliked(event) => &event.post_id,
            Self::ModeChanged(event) => &event.author_id,
            Self::Unfollowed(event) => &event.follower_id,
            Self::Blocked(event) => &event.blocker_id,
            Self::Unblocked(event) => &event.blocker_id,
            Self::Muted(event) => &event.muter_id,
            Self::Unmuted(event) => &event.muter_id,
            Self::FollowRequested(event) => &event.requester_id,
            Self::FollowAccepted(event) => &event.requester_id,
            Self::FollowRejected(event) => &event.requester_id,
            Self::FollowWithdrawn(event) => &event.requester_id,
            Self::PrivacyChanged(event) => &event.user_id,
            Self::RemoteAuthorUpserted(event) => &event.user_id,
            // It is about a whole partition, which is named where it is sent.
            Self::Mark(_) => "",
            Self::UserChanged(event) => &event.user_id,
            Self::UserDeleted(event) => &event.user_id,
        }
    }
}

impl Envelope {
    /// The envelope of a change.
    #[must_use]
    pub fn new(event_id: crate::EventId, occurred_at_ms: i64, version: i64, payload: Payload) -> Self {
        Self {
            event_id: event_id.to_string(),
            r#type: payload.type_name().to_owned(),
            key: payload.key().to_owned(),
            occurred_at: Some(crate::timestamp(occurred_at_ms)),
            version,
            payload: Some(payload),
        }
    }
}
