//! What PostgreSQL's errors mean for a caller.

use std::time::Duration;

use super::STORE;
use crate::Error;

/// What a driver's error means for a caller.
pub(super) fn failed(cause: sqlx::Error) -> Error {
    let code = cause.as_database_error().and_then(|error| error.code()).unwrap_or_default().into_owned();
    let text = if code.is_empty() { cause.to_string() } else { format!("{cause} ({code})") };
    match cause {
        sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::Io(_)
        | sqlx::Error::Tls(_) => Error::Unavailable { store: STORE, cause: text },
        _ if is_conflict(&code) => Error::Conflict { store: STORE, cause: text },
        _ if is_passing(&code) => Error::Unavailable { store: STORE, cause: text },
        _ => Error::Fault { store: STORE, cause: text },
    }
}

/// Nobody said what became of it.
pub(super) fn no_answer(within: Duration) -> Error {
    Error::Unavailable { store: STORE, cause: format!("no answer within {within:?}") }
}

/// Serialization failure, deadlock.
fn is_conflict(code: &str) -> bool {
    matches!(code, "40001" | "40P01")
}

fn is_passing(code: &str) -> bool {
    // 08: the connection broke; 53: too many connections, no memory, no disk.
    matches!(code.get(..2), Some("08" | "53"))
        || matches!(
            code,
            // A read-only server; a transaction that was idle, or open, for too long; a lock that was not to be had; a statement
            // that took too long; a server that stops, has crashed or starts; a connection that was idle for too long.
            "25006" | "25P03" | "25P04" | "55P03" | "57014" | "57P01" | "57P02" | "57P03" | "57P05"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        for code in ["08006", "53300", "25006", "57P01", "57014", "55P03"] {
            assert!(is_passing(code) && !is_conflict(code), "{code}");
        }
        for code in ["", "23505", "42P01", "28P01", "40001"] {
            assert!(!is_passing(code), "{code}");
        }
        assert!(is_conflict("40001") && is_conflict("40P01"));
        assert!(matches!(failed(sqlx::Error::PoolTimedOut), Error::Unavailable { .. }));
        assert!(matches!(failed(sqlx::Error::RowNotFound), Error::Fault { .. }));
    }
}
