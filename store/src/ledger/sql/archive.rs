//! The ledger's own tables, read as an archive: they have every post from its commit on.

use async_trait::async_trait;
use proto::{PostId, UserId};

use super::{
    SqlLedger,
    posts::{COLUMNS, post},
};
use crate::{Error, archive::PostsByAuthor, ledger::Post};

#[async_trait]
impl PostsByAuthor for SqlLedger {
    async fn add(&self, _post: &Post, _version: i64) -> Result<(), Error> {
        // The row is here since the transaction that made it.
        Ok(())
    }

    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<Post>, Error> {
        let query = format!("SELECT {COLUMNS} FROM posts WHERE author = $1 AND id < $2 ORDER BY id DESC LIMIT $3");
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(author.get())
            .bind(below.map_or(i64::MAX, PostId::get))
            .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(post).collect()
    }
}
