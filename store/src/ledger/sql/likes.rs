//! Likes: a row a person and post, and an absolute number with its version in the post's row, under that row's lock.

use proto::{PostId, UserId};
use sqlx::{QueryBuilder, Row as _};

use super::{
    Change, LOCK_ROW, Row, SqlLedger, accounts::require_users, failed, push_is_one_of, row::number, sight::sight,
};
use crate::{
    Entity, Error,
    ledger::{Event, Likes, Place, Viewer},
};

const LIKE: &str = "INSERT INTO likes (post, liker, active, version) VALUES ($1, $2, TRUE, $3) \
    ON CONFLICT (post, liker) DO UPDATE SET active = TRUE, version = excluded.version WHERE NOT likes.active";
const UNLIKE: &str = "UPDATE likes SET active = FALSE, version = $3 WHERE post = $1 AND liker = $2 AND active";

impl SqlLedger {
    /// Makes a person like a post, or no longer.
    pub(super) async fn try_set_like(
        &self,
        (user, post): (UserId, PostId),
        wanted: bool,
        event: &Event<'_, Likes>,
    ) -> Result<Likes, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [user; 2]).await?;
        let before = match wanted {
            true => lock_seen(&mut change, user, post).await?,
            false => lock_any(&mut change, post).await?,
        };
        let set = self.set_like(&mut change, (user, post), (before, wanted), event).await?;
        let Some(after) = set else { return Ok(before) };
        self.commit(change).await?;
        Ok(after)
    }

    /// Ends a like of whoever is gone, be the post deleted or not. `None`, and nothing is written, when there is none.
    pub(super) async fn end_like(
        &self,
        change: &mut Change,
        (user, post): (UserId, PostId),
        event: &Event<'_, Likes>,
    ) -> Result<Option<Likes>, Error> {
        let query = format!("SELECT like_count, like_version FROM posts WHERE id = $1{LOCK_ROW}");
        let row = sqlx::query(sqlx::AssertSqlSafe(query)).bind(post.get());
        let row = row.fetch_one(&mut *change.transaction).await.map_err(failed)?;
        self.set_like(change, (user, post), (likes(&row)?, false), event).await
    }

    /// Under the lock of the post's row. `None`, and nothing is written, where it is so already.
    async fn set_like(
        &self,
        change: &mut Change,
        (user, post): (UserId, PostId),
        (before, wanted): (Likes, bool),
        event: &Event<'_, Likes>,
    ) -> Result<Option<Likes>, Error> {
        let (statement, by) = if wanted { (LIKE, 1) } else { (UNLIKE, -1) };
        // max(previous + 1, now): it rises even when the clock goes back.
        let after = Likes { count: before.count + by, version: change.now_us.max(before.version + 1) };
        let changed = sqlx::query(statement)
            .bind(post.get())
            .bind(user.get())
            .bind(after.version)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        if changed.rows_affected() == 0 {
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

    pub(super) async fn read_likers(
        &self,
        post: PostId,
        below: Option<Place>,
        limit: u32,
    ) -> Result<Vec<Place>, Error> {
        let (version, user) = below.map_or((i64::MAX, i64::MAX), |place| (place.version, place.user.get()));
        let query = sqlx::query(
            "SELECT liker, likes.version AS version FROM likes JOIN accounts ON accounts.id = liker \
             WHERE post = $1 AND active AND deleted_at_ms IS NULL AND (likes.version, liker) < ($2, $3) \
             ORDER BY likes.version DESC, liker DESC LIMIT $4",
        );
        let query = query.bind(post.get()).bind(version).bind(user).bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        let place = |row: &Row| Ok(Place { version: number(row, "version")?, user: number(row, "liker")? });
        rows.iter().map(place).collect()
    }

    pub(super) async fn read_liked(&self, user: UserId, posts: &[PostId]) -> Result<Vec<PostId>, Error> {
        if posts.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new("SELECT post FROM likes WHERE active AND liker = ");
        query.push_bind(user.get()).push(" AND post");
        push_is_one_of(&mut query, posts.iter().map(|post| post.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "post")).collect()
    }
}

/// The likes of a post that this person may see. The post's row is locked to the end, so likes of one post are counted one
/// after the other, and none after its deletion.
async fn lock_seen(change: &mut Change, user: UserId, post: PostId) -> Result<Likes, Error> {
    let mut query = sight(Viewer::Person(user), "like_count, like_version");
    query.push(" AND posts.id = ").push_bind(post.get()).push(LOCK_ROW);
    let row = query.build().fetch_optional(&mut *change.transaction).await.map_err(failed)?;
    likes(&row.ok_or(Error::NotFound(Entity::Post))?)
}

/// The same of a post that is there, whoever may see it.
async fn lock_any(change: &mut Change, post: PostId) -> Result<Likes, Error> {
    let query = format!("SELECT like_count, like_version FROM posts WHERE id = $1 AND deleted_at_ms IS NULL{LOCK_ROW}");
    let row = sqlx::query(sqlx::AssertSqlSafe(query)).bind(post.get());
    let row = row.fetch_optional(&mut *change.transaction).await.map_err(failed)?;
    likes(&row.ok_or(Error::NotFound(Entity::Post))?)
}

pub(super) fn likes(row: &Row) -> Result<Likes, Error> {
    Ok(Likes {
        count: row.try_get("like_count").map_err(failed)?,
        version: row.try_get("like_version").map_err(failed)?,
    })
}
