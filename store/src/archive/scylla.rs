//! The archive on ScyllaDB, or Cassandra: an author's posts are one partition, the newest first. A write carries its post's
//! version as its timestamp, so that a late one never undoes a newer one, and any can be done again.

mod schema;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use proto::{PostId, UserId};
pub(crate) use schema::migrate;
use scylla::{
    client::{execution_profile::ExecutionProfile, session::Session, session_builder::SessionBuilder},
    errors::{DbError, ExecutionError, PrepareError, RequestAttemptError},
    statement::{Consistency, prepared::PreparedStatement},
};

use super::{Archive, PostsByAuthor};
use crate::{
    Error, OpenError,
    config::{Config, ScyllaUrl},
    error::damaged,
    ledger::{Likes, Post},
};

const STORE: &str = "the archive";
/// How long a request may take, its retries included.
const REQUEST_MAX: Duration = Duration::from_secs(5);
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long all of them may take until the first session stands.
const SESSION_MAX: Duration = Duration::from_secs(15);
/// How long nodes may take to agree on a table that was made.
const AGREEMENT_MAX: Duration = Duration::from_secs(30);
/// A larger page is read in several requests.
const ROWS_A_REQUEST_MAX: u32 = 1000;

/// The archive on ScyllaDB.
pub(crate) struct Scylla {
    session: Session,
    add: PreparedStatement,
    page: PreparedStatement,
}

impl Scylla {
    /// The archive of this cluster, whose keyspace and tables must be there.
    pub(crate) async fn open(url: &ScyllaUrl, config: &Config) -> Result<Archive, OpenError> {
        let keyspace = config.namespace.keyspace();
        let session = connect(url, keyspace).await?;
        schema::check(&session, url, keyspace).await?;
        let add = format!(
            "INSERT INTO {keyspace}.posts_by_author (author, id, body, created_at_ms) VALUES (?, ?, ?, ?) \
             USING TIMESTAMP ?"
        );
        let page = format!(
            "SELECT id, body, created_at_ms FROM {keyspace}.posts_by_author WHERE author = ? AND id < ? \
             ORDER BY id DESC LIMIT ?"
        );
        let add = prepare(&session, add).await.map_err(|cause| unusable(url, cause))?;
        let page = prepare(&session, page).await.map_err(|cause| unusable(url, cause))?;
        Ok(Archive { posts_by_author: Arc::new(Self { session, add, page }) })
    }
}

#[async_trait]
impl PostsByAuthor for Scylla {
    async fn add(&self, post: &Post, version: i64) -> Result<(), Error> {
        let row = (post.author.get(), post.id.get(), post.text.as_str(), post.created_at_ms, version);
        self.session.execute_unpaged(&self.add, row).await.map_err(|cause| failed(&cause))?;
        Ok(())
    }

    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<Post>, Error> {
        let mut posts = Vec::new();
        let mut below = below.map_or(i64::MAX, PostId::get);
        let mut left = limit;
        while left > 0 {
            let asked = left.min(ROWS_A_REQUEST_MAX);
            let values = (author.get(), below, i32::try_from(asked).unwrap_or(i32::MAX));
            let answer = self.session.execute_unpaged(&self.page, values).await.map_err(|cause| failed(&cause))?;
            let rows = answer.into_rows_result().map_err(|cause| damaged(STORE, cause))?;
            let read = rows.rows_num();
            for row in rows.rows::<(i64, String, i64)>().map_err(|cause| damaged(STORE, cause))? {
                let (id, text, created_at_ms) = row.map_err(|cause| damaged(STORE, cause))?;
                below = id;
                let id = PostId::try_from(id).map_err(|_| damaged(STORE, format_args!("id = {id}")))?;
                posts.push(Post { id, author, text, created_at_ms, likes: Likes::default() });
            }
            if read < usize::try_from(asked).unwrap_or(usize::MAX) {
                break;
            }
            left -= asked;
        }
        Ok(posts)
    }
}

async fn connect(url: &ScyllaUrl, keyspace: &str) -> Result<Session, OpenError> {
    let profile =
        ExecutionProfile::builder().consistency(Consistency::LocalQuorum).request_timeout(Some(REQUEST_MAX)).build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&url.nodes)
        .connection_timeout(CONNECT_MAX)
        .default_execution_profile_handle(profile.into_handle())
        // Other keyspaces of a shared cluster are none of ours.
        .keyspaces_to_fetch([keyspace])
        .schema_agreement_timeout(AGREEMENT_MAX);
    if let Some((user, password)) = &url.credentials {
        builder = builder.user(user, password);
    }
    match tokio::time::timeout(SESSION_MAX, builder.build()).await {
        Ok(session) => session.map_err(|cause| unusable(url, cause)),
        Err(_) => Err(unusable(url, format_args!("no node answers within {SESSION_MAX:?}"))),
    }
}

/// Every statement of ours can be done again, and only such are tried again by the driver.
async fn prepare(session: &Session, statement: String) -> Result<PreparedStatement, PrepareError> {
    let mut statement = session.prepare(statement).await?;
    statement.set_is_idempotent(true);
    Ok(statement)
}

fn unusable(url: &ScyllaUrl, cause: impl fmt::Display) -> OpenError {
    OpenError::Unusable { store: STORE, place: format!("scylla://{}", url.nodes.join(",")), cause: cause.to_string() }
}

/// What a driver's error means for a caller.
fn failed(cause: &ExecutionError) -> Error {
    let text = cause.to_string();
    if is_fault(cause) {
        Error::Fault { store: STORE, cause: text }
    } else {
        Error::Unavailable { store: STORE, cause: text }
    }
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
