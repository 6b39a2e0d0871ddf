//! Posts and likes in SQLite.

use async_trait::async_trait;
use proto::{PostId, UserId};
use sqlx::{QueryBuilder, Row as _, sqlite::SqliteRow};

use super::{Sqlite, failed, graph::require_user, id, next_version};
use crate::{
    Entity, Error,
    ledger::{Event, Likes, NewPost, Post, Posts},
};

pub(crate) const COLUMNS: &str = "id, author, text, created_at_ms, like_count, like_version";

#[async_trait]
impl Posts for Sqlite {
    async fn create(&self, new: NewPost, event: Event<'_, Post>) -> Result<Post, Error> {
        let mut change = self.begin().await?;
        require_user(&mut change, new.author).await?;
        let (created_at_ms, version) = (new.id.unix_ms(), change.now_us);
        sqlx::query("INSERT INTO posts (id, author, text, created_at_ms, version) VALUES ($1, $2, $3, $4, $5)")
            .bind(new.id.get())
            .bind(new.author.get())
            .bind(&new.text)
            .bind(created_at_ms)
            .bind(version)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        let post = Post { id: new.id, author: new.author, text: new.text, created_at_ms, likes: Likes::default() };
        self.write_event(&mut change, &event, version, &post).await?;
        self.commit(change).await?;
        Ok(post)
    }

    async fn batch(&self, ids: &[PostId]) -> Result<Vec<Post>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(format!("SELECT {COLUMNS} FROM posts WHERE id IN ("));
        let mut list = query.separated(", ");
        for id in ids {
            list.push_bind(id.get());
        }
        query.push(")");
        let rows = query.build().fetch_all(self.reader()).await.map_err(failed)?;
        rows.iter().map(post).collect()
    }

    async fn like(&self, user: UserId, post: PostId, event: Event<'_, Likes>) -> Result<Likes, Error> {
        let mut change = self.begin().await?;
        require_user(&mut change, user).await?;
        let row = sqlx::query("SELECT like_count, like_version FROM posts WHERE id = $1")
            .bind(post.get())
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?
            .ok_or(Error::NotFound(Entity::Post))?;
        let before = likes(&row)?;
        let version = next_version(before.version, change.now_us);
        let liked = sqlx::query(
            "INSERT INTO likes (post, user, active, version) VALUES ($1, $2, 1, $3) \
             ON CONFLICT (post, user) DO UPDATE SET active = 1, version = excluded.version WHERE NOT active",
        )
        .bind(post.get())
        .bind(user.get())
        .bind(version)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        if liked.rows_affected() == 0 {
            return Ok(before);
        }
        let after = Likes { count: before.count + 1, version };
        sqlx::query("UPDATE posts SET like_count = $1, like_version = $2 WHERE id = $3")
            .bind(after.count)
            .bind(after.version)
            .bind(post.get())
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.write_event(&mut change, &event, version, &after).await?;
        self.commit(change).await?;
        Ok(after)
    }

    async fn liked_between(&self, from: i64, until: i64, limit: u32) -> Result<Vec<(PostId, Likes)>, Error> {
        let rows = sqlx::query(
            "SELECT id, like_count, like_version FROM posts \
             WHERE id >= $1 AND id < $2 AND like_version > 0 ORDER BY id LIMIT $3",
        )
        .bind(from)
        .bind(until)
        .bind(limit)
        .fetch_all(self.reader())
        .await
        .map_err(failed)?;
        rows.iter().map(|row| Ok((id(row, "id")?, likes(row)?))).collect()
    }
}

pub(crate) fn post(row: &SqliteRow) -> Result<Post, Error> {
    Ok(Post {
        id: id(row, "id")?,
        author: id(row, "author")?,
        text: row.try_get("text").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
        likes: likes(row)?,
    })
}

fn likes(row: &SqliteRow) -> Result<Likes, Error> {
    Ok(Likes {
        count: row.try_get("like_count").map_err(failed)?,
        version: row.try_get("like_version").map_err(failed)?,
    })
}
