//! What Redis answers instead of data.

use redis::{ErrorKind, RedisError};

use crate::Error;

pub(super) const STORE: &str = "the sets";

/// What passes by itself, or once an operator has mended the server: starting, failing over, full, unable to save, at a long
/// script.
const PASSING: [&str; 13] = [
    "LOADING",
    "CLUSTERDOWN",
    "MASTERDOWN",
    "READONLY",
    "OOM",
    "MISCONF",
    "NOREPLICAS",
    "BUSY",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "NOAUTH",
    "WRONGPASS",
];

pub(super) fn error(cause: RedisError) -> Error {
    let unreachable = matches!(
        cause.kind(),
        ErrorKind::Io | ErrorKind::ClusterConnectionNotFound | ErrorKind::Parse | ErrorKind::AuthenticationFailed
    );
    let text = cause.to_string();
    let passing = |code: &str| PASSING.contains(&code);
    // Of a pipeline, what its commands were told; else the one answer.
    let passing = cause.code().is_some_and(passing)
        || cause.into_server_errors().is_some_and(|errors| errors.iter().any(|(_, error)| passing(error.code())));
    if unreachable || passing { unavailable(text) } else { Error::Fault { store: STORE, cause: text } }
}

pub(super) fn unavailable(cause: impl Into<String>) -> Error {
    Error::Unavailable { store: STORE, cause: cause.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_never_will() {
        let server = |code: &str| redis::make_extension_error(code.to_owned(), None);
        for code in ["OOM", "MISCONF", "BUSY"] {
            assert!(matches!(error(server(code)), Error::Unavailable { .. }), "{code}");
        }
        let refused = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        assert!(matches!(error(refused), Error::Unavailable { .. }));
        assert!(matches!(error(server("WRONGTYPE")), Error::Fault { .. }));
    }
}
