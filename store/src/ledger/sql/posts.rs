//! Posts and likes.

use std::time::Duration;

use async_trait::async_trait;
use proto::{PostId, UserId};
use sqlx::{QueryBuilder, Row as _};

use super::{
    LOCK_ROW, Row, SqlLedger,
    accounts::require_users,
    counters::count_post,
    failed,
    keys::{post_of_key, take_key},
    push_is_one_of,
    row::number,
};
use crate::{
    Entity, Error,
    ledger::{Event, Likes, NewPost, Post, Posts, Written},
};

pub(super) const COLUMNS: &str = "id, author, text, created_at_ms, like_count, like_version";

/// Whose author is gone is gone too, from the author's deletion on.
const BY_SOMEONE: &str =
    "NOT EXISTS (SELECT 1 FROM accounts WHERE accounts.id = posts.author AND deleted_at_ms IS NOT NULL)";

#[async_trait]
impl Posts for SqlLedger {
    async fn create(&self, new: NewPost, event: Event<'_, Written>) -> Result<Post, Error> {
        self.retried(|| self.try_create_post(&new, &event)).await
    }

    async fn forget_keys(&self, older_than: Duration, limit: u32) -> Result<u64, Error> {
        self.retried(|| self.try_forget_keys(older_than, limit)).await
    }

    async fn batch(&self, ids: &[PostId]) -> Result<Vec<Post>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(format!("SELECT {COLUMNS} FROM posts WHERE {BY_SOMEONE} AND id"));
        push_is_one_of(&mut query, ids.iter().map(|id| id.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(post).collect()
    }

    async fn like(&self, user: UserId, post: PostId, event: Event<'_, Likes>) -> Result<Likes, Error> {
        self.retried(|| self.try_like(user, post, &event)).await
    }

    async fn liked_between(&self, from: i64, until: i64, limit: u32) -> Result<Vec<(PostId, Likes)>, Error> {
        let query = sqlx::query(
            "SELECT id, like_count, like_version FROM posts \
             WHERE id >= $1 AND id < $2 AND like_version > 0 ORDER BY id LIMIT $3",
        )
        .bind(from)
        .bind(until)
        .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| Ok((number(row, "id")?, likes(row)?))).collect()
    }
}

impl SqlLedger {
    async fn try_create_post(&self, new: &NewPost, event: &Event<'_, Written>) -> Result<Post, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [new.author; 2]).await?;
        if let Some(key) = &new.key
            && !take_key(&mut change, new, key).await?
        {
            return post_of_key(&mut change, new, key).await;
        }
        let (created_at_ms, version) = (new.id.unix_ms(), change.now_us);
        let fan_out = count_post(&mut change, new.author).await?.fan_out();
        sqlx::query(
            "INSERT INTO posts (id, author, text, created_at_ms, version, fan_out) VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(new.id.get())
        .bind(new.author.get())
        .bind(&new.text)
        .bind(created_at_ms)
        .bind(version)
        .bind(fan_out.number())
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let (text, likes) = (new.text.clone(), Likes::default());
        let post = Post { id: new.id, author: new.author, text, created_at_ms, likes };
        let written = Written { post, fan_out };
        self.write_event(&mut change, event, version, &written).await?;
        self.commit(change).await?;
        Ok(written.post)
    }

    async fn try_like(&self, user: UserId, post: PostId, event: &Event<'_, Likes>) -> Result<Likes, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [user; 2]).await?;
        // The post's row is locked to the end, so likes of one post are counted one after the other.
        let query = format!("SELECT like_count, like_version FROM posts WHERE id = $1{LOCK_ROW}");
        let row = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(post.get())
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?
            .ok_or(Error::NotFound(Entity::Post))?;
        let before = likes(&row)?;
        // max(previous + 1, now): it rises even when the clock goes back.
        let after = Likes { count: before.count + 1, version: change.now_us.max(before.version + 1) };
        let liked = sqlx::query(
            "INSERT INTO likes (post, liker, active, version) VALUES ($1, $2, TRUE, $3) \
             ON CONFLICT (post, liker) DO UPDATE SET active = TRUE, version = excluded.version WHERE NOT likes.active",
        )
        .bind(post.get())
        .bind(user.get())
        .bind(after.version)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        if liked.rows_affected() == 0 {
            return Ok(before);
        }
        sqlx::query("UPDATE posts SET like_count = $1, like_version = $2 WHERE id = $3")
            .bind(after.count)
            .bind(after.version)
            .bind(post.get())
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.write_event(&mut change, event, after.version, &after).await?;
        self.commit(change).await?;
        Ok(after)
    }
}

pub(super) fn post(row: &Row) -> Result<Post, Error> {
    Ok(Post {
        id: number(row, "id")?,
        author: number(row, "author")?,
        text: row.try_get("text").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
        likes: likes(row)?,
    })
}

pub(super) fn likes(row: &Row) -> Result<Likes, Error> {
    Ok(Likes {
        count: row.try_get("like_count").map_err(failed)?,
        version: row.try_get("like_version").map_err(failed)?,
    })
}
