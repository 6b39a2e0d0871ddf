//! Posts by author: an author's posts are one partition, the newest first.

use std::sync::Arc;

use async_trait::async_trait;
use proto::{PostId, UserId};
use scylla::{errors::PrepareError, statement::prepared::PreparedStatement};

use super::{Link, RowWrite, number};
use crate::{
    Error,
    archive::{ArchivedPost, PostsByAuthor},
};

/// The table `posts_by_author`.
pub(in crate::archive) struct PostsTable {
    link: Arc<Link>,
    add: PreparedStatement,
    remove: PreparedStatement,
    page: PreparedStatement,
}

impl PostsTable {
    pub(super) async fn open(link: Arc<Link>) -> Result<Self, PrepareError> {
        let add = "INSERT INTO KEYSPACE.posts_by_author (author, id, body, created_at_ms) VALUES (?, ?, ?, ?) \
                   USING TIMESTAMP ?";
        let remove = "DELETE FROM KEYSPACE.posts_by_author USING TIMESTAMP ? WHERE author = ? AND id = ?";
        let page = "SELECT id, body, created_at_ms FROM KEYSPACE.posts_by_author WHERE author = ? AND id < ? \
                    ORDER BY id DESC LIMIT ?";
        Ok(Self {
            add: link.prepare(add).await?,
            remove: link.prepare(remove).await?,
            page: link.prepare(page).await?,
            link,
        })
    }
}

#[async_trait]
impl PostsByAuthor for PostsTable {
    async fn add(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        let row = |(post, version): &(ArchivedPost, i64)| {
            let author = post.author.get();
            let values = (author, post.id.get(), post.text.clone(), post.created_at_ms, *version);
            RowWrite { partition: author, statement: &self.add, values }
        };
        self.link.write_all(posts.iter().map(row).collect()).await
    }

    async fn remove(&self, author: UserId, post: PostId, version: i64) -> Result<(), Error> {
        self.link.write(&self.remove, (version, author.get(), post.get())).await
    }

    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<ArchivedPost>, Error> {
        let values = |last: Option<&(i64, String, i64)>, asked| {
            let below = last.map(|(id, ..)| *id).or(below.map(PostId::get)).unwrap_or(i64::MAX);
            (author.get(), below, asked)
        };
        let rows = self.link.many_rows(&self.page, limit, values).await?;
        let post = |(id, text, created_at_ms)| Ok(ArchivedPost { id: number("id", id)?, author, text, created_at_ms });
        rows.into_iter().map(post).collect()
    }
}
