//! The end of a like.

use proto::{PostId, UserId};

use super::{Change, LOCK_ROW, SqlLedger, failed, posts::likes};
use crate::{
    Error,
    ledger::{Event, Likes},
};

impl SqlLedger {
    /// Ends a like and writes the event. `None`, and nothing is written, when there is none. The post's row is locked to the
    /// end of the change, so that likes of one post are counted one after the other.
    pub(super) async fn end_like(
        &self,
        change: &mut Change,
        (user, post): (UserId, PostId),
        event: &Event<'_, Likes>,
    ) -> Result<Option<Likes>, Error> {
        let query = format!("SELECT like_count, like_version FROM posts WHERE id = $1{LOCK_ROW}");
        let row = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(post.get())
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let before = likes(&row)?;
        let after = Likes { count: before.count - 1, version: change.now_us.max(before.version + 1) };
        let ended =
            sqlx::query("UPDATE likes SET active = FALSE, version = $3 WHERE post = $1 AND liker = $2 AND active")
                .bind(post.get())
                .bind(user.get())
                .bind(after.version)
                .execute(&mut *change.transaction)
                .await
                .map_err(failed)?;
        if ended.rows_affected() == 0 {
            return Ok(None);
        }
        sqlx::query("UPDATE posts SET like_count = $1, like_version = $2 WHERE id = $3")
            .bind(after.count)
            .bind(after.version)
            .bind(post.get())
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.write_event(change, event, after.version, &after).await?;
        Ok(Some(after))
    }
}
