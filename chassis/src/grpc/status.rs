//! Errors as gRPC statuses, with google.rpc details, and back.

use std::collections::HashMap;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::{Error, Reason, error::Violation};

const DOMAIN: &str = "freshet";

/// The status that a caller gets: ErrorInfo names the reason, BadRequest the fields, RetryInfo when to come back.
#[must_use]
pub fn into_status(error: &Error) -> Status {
    let mut details = ErrorDetails::with_error_info(error.reason().name(), DOMAIN, HashMap::new());
    for violation in error.violations() {
        details.add_bad_request_violation(&violation.field, &violation.rule);
    }
    if let Some(after) = error.retry_after() {
        details.set_retry_info(Some(after));
    }
    Status::with_error_details(code(error.reason()), error.message(), details)
}

/// The error that another pod answered with.
#[must_use]
pub fn from_status(status: &Status) -> Error {
    let details = status.get_error_details();
    let named = details.error_info().map(|info| info.reason.as_str()).unwrap_or_default();
    let reason = Reason::ALL.into_iter().find(|reason| reason.name() == named).unwrap_or(match status.code() {
        Code::DeadlineExceeded | Code::Cancelled => Reason::DeadlineExceeded,
        Code::Unavailable => Reason::Unavailable,
        _ => Reason::Internal,
    });
    let violations = details.bad_request().map(|bad| bad.field_violations.as_slice()).unwrap_or_default().iter();
    let violations =
        violations.map(|one| Violation { field: one.field.clone(), rule: one.description.clone() }).collect();
    let error = Error::new(reason, status.message()).with_violations(violations);
    match details.retry_info().and_then(|info| info.retry_delay) {
        Some(after) => error.with_retry_after(after),
        None => error,
    }
}

const fn code(reason: Reason) -> Code {
    match reason {
        Reason::InvalidArgument => Code::InvalidArgument,
        Reason::RequestTooLarge | Reason::TooManyAttempts | Reason::Overloaded => Code::ResourceExhausted,
        Reason::TokenMissing
        | Reason::TokenInvalid
        | Reason::TokenExpired
        | Reason::CredentialsWrong
        | Reason::SessionMissing => Code::Unauthenticated,
        Reason::NotAllowed | Reason::Blocked => Code::PermissionDenied,
        Reason::UserNotFound | Reason::PostNotFound | Reason::SessionNotFound | Reason::FollowRequestNotFound => {
            Code::NotFound
        }
        Reason::VersionMismatch => Code::Aborted,
        Reason::FolloweesFull => Code::FailedPrecondition,
        Reason::MethodNotFound => Code::Unimplemented,
        Reason::HandleTaken | Reason::EmailTaken | Reason::IdempotencyKeyTaken => Code::AlreadyExists,
        Reason::DeadlineExceeded => Code::DeadlineExceeded,
        Reason::Unavailable => Code::Unavailable,
        Reason::Internal => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_survives_the_wire() {
        for reason in Reason::ALL {
            let error = Error::new(reason, "a sentence");
            assert_eq!(from_status(&into_status(&error)), error);
        }
        let error = Error::invalid("limit", "must be 1 to 200");
        assert_eq!(from_status(&into_status(&error)), error);
        let error =
            Error::new(Reason::Overloaded, "a sentence").with_retry_after(std::time::Duration::from_millis(1500));
        assert_eq!(from_status(&into_status(&error)), error);
    }
}
