//! Idempotency keys of posts: what an author calls a post, so that a call that is made again is known for what it is.

use std::time::Duration;

use sqlx::Row as _;

use super::{
    Change, SqlLedger, failed,
    posts::{COLUMNS, post},
};
use crate::{
    Entity, Error,
    ledger::{NewPost, Post, PostKey},
};

/// Takes the key for a new post. False when the author has used it before. Of many at once one takes it, and the others wait
/// here until that one is committed or gone.
pub(super) async fn take_key(change: &mut Change, new: &NewPost, key: &PostKey) -> Result<bool, Error> {
    let taken = sqlx::query(
        "INSERT INTO post_keys (author, key, post, created_at_ms, fingerprint) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (author, key) DO NOTHING",
    )
    .bind(new.author.get())
    .bind(&key.key)
    .bind(new.id.get())
    .bind(change.now_us.div_euclid(1000))
    .bind(&key.fingerprint)
    .execute(&mut *change.transaction)
    .await
    .map_err(failed)?;
    Ok(taken.rows_affected() > 0)
}

/// The post that the key was taken for, if that call said the same. What the post says now does not matter: it may have been
/// edited since.
pub(super) async fn post_of_key(change: &mut Change, new: &NewPost, key: &PostKey) -> Result<Post, Error> {
    let query = format!(
        "SELECT {COLUMNS}, deleted_at_ms, (SELECT fingerprint FROM post_keys WHERE author = $1 AND key = $2) AS fingerprint \
         FROM posts WHERE id = (SELECT post FROM post_keys WHERE author = $1 AND key = $2) AND author = $1"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(new.author.get())
        .bind(&key.key)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?
        .ok_or(Error::NotFound(Entity::Post))?;
    let first = post(&row)?;
    let said: Option<Vec<u8>> = row.try_get("fingerprint").map_err(failed)?;
    let is_same = match said {
        Some(said) => said == key.fingerprint,
        // Of an earlier release, which had posts of a text alone.
        None => first.content == new.content,
    };
    let is_deleted = row.try_get::<Option<i64>, _>("deleted_at_ms").map_err(failed)?.is_some();
    match is_same {
        false => Err(Error::KeyTaken),
        true if is_deleted => Err(Error::NotFound(Entity::Post)),
        true => Ok(first),
    }
}

impl SqlLedger {
    pub(super) async fn try_forget_keys(&self, older_than: Duration, limit: u32) -> Result<u64, Error> {
        let mut change = self.begin().await?;
        let age_ms = i64::try_from(older_than.as_millis()).unwrap_or(i64::MAX / 2);
        // The oldest first, in one order for all: of two pods at once the later one waits, and finds them gone.
        let forgotten = sqlx::query(
            "DELETE FROM post_keys WHERE (author, key) IN (SELECT author, key FROM post_keys WHERE created_at_ms < $1 \
             ORDER BY created_at_ms, author, key LIMIT $2)",
        )
        .bind(change.now_us.div_euclid(1000) - age_ms)
        .bind(i64::from(limit))
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?
        .rows_affected();
        self.commit(change).await?;
        Ok(forgotten)
    }
}
