//! What the driver's errors mean for a caller.

use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

use super::STORE;
use crate::Error;

/// What a driver's error means for a caller.
pub(super) fn failed(cause: &ExecutionError) -> Error {
    let text = cause.to_string();
    if is_schema_gone(cause) {
        // Somebody dropped it under us. Once it is made again all goes on, and the archive is filled.
        Error::Unavailable {
            store: STORE,
            cause: format!("its keyspace or a table is gone, run freshet migrate: {text}"),
        }
    } else if is_fault(cause) {
        Error::Fault { store: STORE, cause: text }
    } else {
        Error::Unavailable { store: STORE, cause: text }
    }
}

/// Whether what the statement is about is not there. There is no code for it, only words: those of Cassandra and ScyllaDB.
fn is_schema_gone(cause: &ExecutionError) -> bool {
    let ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::Invalid, said)) = cause else {
        return false;
    };
    let said = said.to_lowercase();
    ["unconfigured table", "does not exist", "can't find a keyspace", "no keyspace"]
        .iter()
        .any(|words| said.contains(words))
}

/// Whether the question was wrong, rather than the nodes away or busy.
fn is_fault(cause: &ExecutionError) -> bool {
    match cause {
        ExecutionError::BadQuery(_) => true,
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, _)) => matches!(
            error,
            DbError::SyntaxError
                | DbError::Invalid
                | DbError::AlreadyExists { .. }
                | DbError::Unauthorized
                | DbError::ConfigError
                | DbError::ProtocolError
        ),
        ExecutionError::LastAttemptError(error) => {
            !matches!(error, RequestAttemptError::BrokenConnectionError(_) | RequestAttemptError::UnableToAllocStreamId)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(error: DbError, words: &str) -> ExecutionError {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, words.to_owned()))
    }

    #[test]
    fn what_was_dropped_can_be_waited_for_and_a_wrong_question_cannot() {
        for words in [
            "table posts_by_author does not exist",
            "keyspace blue does not exist",
            "Keyspace 'blue' does not exist",
            "unconfigured table posts_by_author",
            "Can't find a keyspace blue",
        ] {
            let told = failed(&said(DbError::Invalid, words));
            assert!(
                matches!(&told, Error::Unavailable { cause, .. } if cause.contains("run freshet migrate")),
                "{told}"
            );
        }
        let wrong = failed(&said(DbError::Invalid, "Undefined column name bodyy"));
        assert!(matches!(wrong, Error::Fault { .. }), "{wrong}");
        let busy = failed(&said(DbError::Overloaded, "later"));
        assert!(matches!(&busy, Error::Unavailable { cause, .. } if !cause.contains("migrate")), "{busy}");
    }
}
