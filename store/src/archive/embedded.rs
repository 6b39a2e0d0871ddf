//! The archive of an embedded set-up: the ledger's own tables, which have every post from its commit on.

use std::sync::Arc;

use async_trait::async_trait;
use proto::{PostId, UserId};

use super::PostsByAuthor;
use crate::{
    Error,
    ledger::{Post, SQLITE_POST_COLUMNS, Sqlite, sqlite_failed as failed, sqlite_post},
};

/// Reads the ledger's tables as an archive.
pub(crate) struct InLedger(pub(crate) Arc<Sqlite>);

#[async_trait]
impl PostsByAuthor for InLedger {
    async fn add(&self, _post: &Post, _version: i64) -> Result<(), Error> {
        // The row is here since the transaction that made it.
        Ok(())
    }

    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<Post>, Error> {
        let query =
            format!("SELECT {SQLITE_POST_COLUMNS} FROM posts WHERE author = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let rows = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(author.get())
            .bind(below.map_or(i64::MAX, PostId::get))
            .bind(limit)
            .fetch_all(self.0.reader())
            .await
            .map_err(failed)?;
        rows.iter().map(sqlite_post).collect()
    }
}
