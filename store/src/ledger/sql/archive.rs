//! The ledger's own tables, read as an archive: they have every row from its commit on, and what ends has ended with its
//! commit too. So there is nothing to write.

use async_trait::async_trait;
use proto::{PostId, UserId};

use super::{
    SqlLedger,
    posts::{COLUMNS, post},
    row::number,
};
use crate::{
    Error,
    archive::{Edge, Follows, PostsByAuthor, PublicPage, PublicPosts, Scope},
    ledger::{Graph, Post},
};

#[async_trait]
impl PostsByAuthor for SqlLedger {
    async fn add(&self, _posts: &[(Post, i64)]) -> Result<(), Error> {
        Ok(())
    }

    async fn remove(&self, _author: UserId, _post: PostId, _version: i64) -> Result<(), Error> {
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
    async fn add(&self, _posts: &[(Post, i64)]) -> Result<(), Error> {
        Ok(())
    }

    async fn remove(&self, _post: PostId, _version: i64) -> Result<(), Error> {
        Ok(())
    }

    /// Every post is of this server and public, so that the scopes are the same.
    async fn page(&self, _scope: Scope, below: Option<PostId>, limit: u32) -> Result<PublicPage, Error> {
        let query = format!("SELECT {COLUMNS} FROM posts WHERE id < $1 ORDER BY id DESC LIMIT $2");
        let query =
            sqlx::query(sqlx::AssertSqlSafe(query)).bind(below.map_or(i64::MAX, PostId::get)).bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        let posts = rows.iter().map(post).collect::<Result<Vec<_>, _>>()?;
        let next = posts.last().filter(|_| posts.len() >= limit as usize).map(|last| last.id);
        Ok(PublicPage { posts, next })
    }
}
