//! Idempotency keys of posts: what an author calls a post, so that a call that is made again is known for what it is.

use std::time::Duration;

use super::{
    Change, SqlLedger, failed,
    posts::{COLUMNS, post},
};
use crate::{
    Entity, Error,
    ledger::{NewPost, Post},
};

/// Takes the key for a new post. False when the author has used it before. Of many at once one takes it, and the others wait
/// here until that one is committed or gone.
pub(super) async fn take_key(change: &mut Change, new: &NewPost, key: &str) -> Result<bool, Error> {
    let taken = sqlx::query(
        "INSERT INTO post_keys (author, key, post, created_at_ms) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (author, key) DO NOTHING",
    )
    .bind(new.author.get())
    .bind(key)
    .bind(new.id.get())
    .bind(change.now_us.div_euclid(1000))
    .execute(&mut *change.transaction)
    .await
    .map_err(failed)?;
    Ok(taken.rows_affected() > 0)
}

/// The post that the key was taken for, if it says the same.
pub(super) async fn post_of_key(change: &mut Change, new: &NewPost, key: &str) -> Result<Post, Error> {
    let query = format!(
        "SELECT {COLUMNS} FROM posts WHERE id = (SELECT post FROM post_keys WHERE author = $1 AND key = $2) AND author = $1"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(new.author.get())
        .bind(key)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?
        .ok_or(Error::NotFound(Entity::Post))?;
    let first = post(&row)?;
    if first.text == new.text { Ok(first) } else { Err(Error::KeyTaken) }
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
