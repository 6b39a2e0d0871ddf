//! The closed set of errors that a caller can get, each mapped once to gRPC and to HTTP.

use std::{fmt, time::Duration};

/// Why a call failed. The name is part of the interface: callers match on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A field of the request breaks a rule; the details name field and rule.
    InvalidArgument,
    /// The request is larger than the server takes.
    RequestTooLarge,
    /// There is no token.
    TokenMissing,
    /// The token is malformed, signed by an unknown key, or meant for somebody else.
    TokenInvalid,
    /// The token's time is over.
    TokenExpired,
    /// The token is in order, but its bearer may not do this.
    NotAllowed,
    /// Handle and password do not fit.
    CredentialsWrong,
    /// There is no session, or it has ended.
    SessionMissing,
    /// Too many passwords were tried; the answer says when to come back.
    TooManyAttempts,
    /// There is no such person.
    UserNotFound,
    /// There is no such post.
    PostNotFound,
    /// The person has no such session.
    SessionNotFound,
    /// There is no such method or path.
    MethodNotFound,
    /// The handle belongs to someone already.
    HandleTaken,
    /// The e-mail address belongs to someone already.
    EmailTaken,
    /// The idempotency key stands for another post already.
    IdempotencyKeyTaken,
    /// What the caller has read was changed meanwhile.
    VersionMismatch,
    /// One of the two blocks the other.
    Blocked,
    /// The person follows as many as one may.
    FolloweesFull,
    /// There is no such follow request.
    FollowRequestNotFound,
    /// The caller's deadline, or the server's own, has passed.
    DeadlineExceeded,
    /// Too much of this at the moment.
    Overloaded,
    /// A part that is needed does not answer; a retry may help.
    Unavailable,
    /// A fault of the server; its log has more.
    Internal,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::InvalidArgument,
        Self::RequestTooLarge,
        Self::TokenMissing,
        Self::TokenInvalid,
        Self::TokenExpired,
        Self::NotAllowed,
        Self::CredentialsWrong,
        Self::SessionMissing,
        Self::TooManyAttempts,
        Self::UserNotFound,
        Self::PostNotFound,
        Self::SessionNotFound,
        Self::MethodNotFound,
        Self::HandleTaken,
        Self::EmailTaken,
        Self::IdempotencyKeyTaken,
        Self::VersionMismatch,
        Self::Blocked,
        Self::FolloweesFull,
        Self::FollowRequestNotFound,
        Self::DeadlineExceeded,
        Self::Overloaded,
        Self::Unavailable,
        Self::Internal,
    ];

    /// The name that a caller reads in `google.rpc.ErrorInfo.reason`, and a browser in `error.reason`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::RequestTooLarge => "REQUEST_TOO_LARGE",
            Self::TokenMissing => "TOKEN_MISSING",
            Self::TokenInvalid => "TOKEN_INVALID",
            Self::TokenExpired => "TOKEN_EXPIRED",
            Self::NotAllowed => "NOT_ALLOWED",
            Self::CredentialsWrong => "CREDENTIALS_WRONG",
            Self::SessionMissing => "SESSION_MISSING",
            Self::TooManyAttempts => "TOO_MANY_ATTEMPTS",
            Self::UserNotFound => "USER_NOT_FOUND",
            Self::PostNotFound => "POST_NOT_FOUND",
            Self::SessionNotFound => "SESSION_NOT_FOUND",
            Self::MethodNotFound => "METHOD_NOT_FOUND",
            Self::HandleTaken => "HANDLE_TAKEN",
            Self::EmailTaken => "EMAIL_TAKEN",
            Self::IdempotencyKeyTaken => "IDEMPOTENCY_KEY_TAKEN",
            Self::VersionMismatch => "VERSION_MISMATCH",
            Self::Blocked => "BLOCKED",
            Self::FolloweesFull => "FOLLOWEES_FULL",
            Self::FollowRequestNotFound => "FOLLOW_REQUEST_NOT_FOUND",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Overloaded => "OVERLOADED",
            Self::Unavailable => "UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }

    /// The HTTP status that the edge answers with.
    #[must_use]
    pub const fn http_status(self) -> http::StatusCode {
        use http::StatusCode as S;
        match self {
            Self::InvalidArgument => S::BAD_REQUEST,
            Self::RequestTooLarge => S::PAYLOAD_TOO_LARGE,
            Self::TokenMissing
            | Self::TokenInvalid
            | Self::TokenExpired
            | Self::CredentialsWrong
            | Self::SessionMissing => S::UNAUTHORIZED,
            Self::NotAllowed | Self::Blocked => S::FORBIDDEN,
            Self::UserNotFound
            | Self::PostNotFound
            | Self::SessionNotFound
            | Self::FollowRequestNotFound
            | Self::MethodNotFound => S::NOT_FOUND,
            Self::HandleTaken
            | Self::EmailTaken
            | Self::IdempotencyKeyTaken
            | Self::VersionMismatch
            | Self::FolloweesFull => S::CONFLICT,
            Self::DeadlineExceeded => S::GATEWAY_TIMEOUT,
            Self::TooManyAttempts | Self::Overloaded => S::TOO_MANY_REQUESTS,
            Self::Unavailable => S::SERVICE_UNAVAILABLE,
            Self::Internal => S::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A rule that a field of the request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field, as the .proto file or the JSON names it.
    pub field: String,
    /// The rule, with its limit.
    pub rule: String,
}

/// What a caller gets instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    reason: Reason,
    message: String,
    violations: Vec<Violation>,
    retry_after: Option<Duration>,
}

impl Error {
    /// An error with the sentence that the caller reads.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), violations: Vec::new(), retry_after: None }
    }

    /// The field breaks a rule.
    pub fn invalid(field: impl Into<String>, rule: impl fmt::Display) -> Self {
        let violation = Violation { field: field.into(), rule: rule.to_string() };
        let message = format!("{} {}", violation.field, violation.rule);
        Self::new(Reason::InvalidArgument, message).with_violations(vec![violation])
    }

    /// A fault of ours. The cause is logged here, once; the caller learns only that it is there.
    pub fn internal(cause: impl fmt::Display) -> Self {
        tracing::error!(%cause, "a call failed by a fault of the server: {cause}");
        Self::new(Reason::Internal, "a fault of the server; its log has more")
    }

    /// The same error with these broken rules.
    #[must_use]
    pub fn with_violations(mut self, violations: Vec<Violation>) -> Self {
        self.violations = violations;
        self
    }

    /// The same error, and when it is worth to try again.
    #[must_use]
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Why the call failed.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The sentence that the caller reads.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// After how long it is worth to try again, where that is known.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Which fields break which rules.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.name(), self.message)
    }
}

impl std::error::Error for Error {}

/// Names the field whose value was refused: `wire.post_id.parse().in_field("post_id")?`.
pub trait InField<T> {
    /// The value, or the error that names the field and the rule.
    fn in_field(self, field: &'static str) -> Result<T, Error>;
}

impl<T, E: fmt::Display> InField<T> for Result<T, E> {
    fn in_field(self, field: &'static str) -> Result<T, Error> {
        self.map_err(|rule| Error::invalid(field, rule))
    }
}
