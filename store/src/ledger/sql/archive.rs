//! The ledger's own tables, read as an archive: they have every row from its commit on, and what ends has ended with its
//! commit too. So there is nothing to write.

use async_trait::async_trait;
use proto::{PostId, UserId};
use sqlx::Row as _;

use super::{Row, SqlLedger, failed, row::number, sight::sight};
use crate::{
    Error,
    archive::{ArchivedPost, Edge, Follows, PostsByAuthor, PublicPage, PublicPosts, Scope},
    ledger::{Graph, Viewer},
};

const COLUMNS: &str = "id, author, text, created_at_ms";

#[async_trait]
impl PostsByAuthor for SqlLedger {
    async fn add(&self, _posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        Ok(())
    }

    async fn remove(&self, _author: UserId, _post: PostId, _version: i64) -> Result<(), Error> {
        Ok(())
    }

    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<ArchivedPost>, Error> {
        let query = format!(
            "SELECT {COLUMNS} FROM posts WHERE author = $1 AND id < $2 AND deleted_at_ms IS NULL AND visibility < 2 \
             ORDER BY id DESC LIMIT $3"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(author.get())
            .bind(below.map_or(i64::MAX, PostId::get))
            .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(archived).collect()
    }
}

#[async_trait]
impl Follows for SqlLedger {
    async fn set(&self, _edges: &[Edge]) -> Result<(), Error> {
        Ok(())
    }

    async fn followers(
        &self,
        authors: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
    ) -> Result<Vec<(UserId, UserId)>, Error> {
        Graph::followers(self, authors, after, limit).await
    }

    async fn followees(&self, reader: UserId, after: Option<UserId>, limit: u32) -> Result<Vec<UserId>, Error> {
        let query = sqlx::query(
            "SELECT followee FROM follows WHERE follower = $1 AND followee > $2 AND active ORDER BY followee LIMIT $3",
        )
        .bind(reader.get())
        .bind(after.map_or(0, UserId::get))
        .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "followee")).collect()
    }
}

#[async_trait]
impl PublicPosts for SqlLedger {
    async fn add(&self, _posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        Ok(())
    }

    async fn remove(&self, _post: PostId, _version: i64) -> Result<(), Error> {
        Ok(())
    }

    /// Every post is of this server, so that the scopes are the same: what a stranger may see now.
    async fn page(&self, _scope: Scope, below: Option<PostId>, limit: u32) -> Result<PublicPage, Error> {
        let mut query = sight(Viewer::Stranger, COLUMNS);
        query.push(" AND posts.id < ").push_bind(below.map_or(i64::MAX, PostId::get));
        query.push(" ORDER BY posts.id DESC LIMIT ").push_bind(i64::from(limit));
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        let posts = rows.iter().map(archived).collect::<Result<Vec<_>, _>>()?;
        let next = posts.last().filter(|_| posts.len() >= limit as usize).map(|last| last.id);
        Ok(PublicPage { posts, next })
    }
}

fn archived(row: &Row) -> Result<ArchivedPost, Error> {
    Ok(ArchivedPost {
        id: number(row, "id")?,
        author: number(row, "author")?,
        text: row.try_get("text").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
    })
}
