//! What a store can answer instead of data.

use std::fmt;

use chassis::Reason;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    /// A person.
    User,
    /// A post.
    Post,
}

/// Why a store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The row that the change is about is not there.
    #[error("there is no such {0}")]
    NotFound(Entity),
    /// The handle belongs to someone already.
    #[error("the handle is taken")]
    HandleTaken,
    /// The e-mail address belongs to someone already.
    #[error("the e-mail address is taken")]
    EmailTaken,
    /// The idempotency key was used for another post.
    #[error("the idempotency key was used for another post")]
    KeyTaken,
    /// What is quoted is not there, or not for the author's eyes.
    #[error("the quoted post is not there")]
    QuoteNotFound,
    /// Something attached is not there, not the author's own, or not ready.
    #[error("an attachment is not there")]
    AttachmentNotFound,
    /// The row was changed since the caller read it.
    #[error("it was changed meanwhile: it has version {now}")]
    VersionMismatch {
        /// The version that it has.
        now: i64,
    },
    /// More people would see the post than before.
    #[error("the visibility of a post can only be narrowed")]
    Widened,
    /// One of the two blocks the other.
    #[error("one of the two blocks the other")]
    Blocked,
    /// Whoever would follow follows as many as they may already.
    #[error("nobody follows more than {max} people")]
    FolloweesFull {
        /// How many that is.
        max: u32,
    },
    /// There is nothing to say yes to.
    #[error("there is no such follow request")]
    NoRequest,
    /// Changes were in each other's way, and the store undid this one. Whoever makes it again may well succeed.
    #[error("{store} undid the change: {cause}")]
    Conflict {
        /// Which store.
        store: &'static str,
        /// What it said.
        cause: String,
    },
    /// The store does not answer now; nothing says that it will not later.
    #[error("{store} is not available: {cause}")]
    Unavailable {
        /// Which store.
        store: &'static str,
        /// What it said.
        cause: String,
    },
    /// The store will never take this record, whatever is tried.
    #[error("{store} refuses it for good: {cause}")]
    Refused {
        /// Which store.
        store: &'static str,
        /// Why.
        cause: String,
    },
    /// The store answered what it never should: a fault of ours, or damaged data.
    #[error("{store} failed: {cause}")]
    Fault {
        /// Which store.
        store: &'static str,
        /// What it said.
        cause: String,
    },
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Post => "post",
        })
    }
}

impl From<Error> for chassis::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(Entity::User) => Self::new(Reason::UserNotFound, error.to_string()),
            Error::NotFound(Entity::Post) => Self::new(Reason::PostNotFound, error.to_string()),
            Error::HandleTaken => Self::new(Reason::HandleTaken, error.to_string()),
            Error::EmailTaken => Self::new(Reason::EmailTaken, error.to_string()),
            Error::KeyTaken => Self::new(Reason::IdempotencyKeyTaken, error.to_string()),
            Error::QuoteNotFound => Self::invalid("quote_of", "must be a post that the author may see"),
            Error::AttachmentNotFound => {
                Self::invalid("attachment_ids", "must be attachments of the author's own that are ready")
            }
            Error::VersionMismatch { .. } => Self::new(Reason::VersionMismatch, error.to_string()),
            Error::Widened => Self::invalid("visibility", "can only be narrowed"),
            Error::Blocked => Self::new(Reason::Blocked, error.to_string()),
            Error::FolloweesFull { .. } => Self::new(Reason::FolloweesFull, error.to_string()),
            Error::NoRequest => Self::new(Reason::FollowRequestNotFound, error.to_string()),
            Error::Unavailable { store, ref cause } | Error::Conflict { store, ref cause } => {
                tracing::warn!(store, "{store} is not available: {cause}");
                Self::new(Reason::Unavailable, format!("{store} does not answer at the moment; try again"))
            }
            Error::Refused { .. } | Error::Fault { .. } => Self::internal(error),
        }
    }
}

/// A stored value that cannot be what it claims to be.
pub(crate) fn damaged(store: &'static str, what: impl fmt::Display) -> Error {
    Error::Fault { store, cause: format!("damaged data: {what}") }
}
