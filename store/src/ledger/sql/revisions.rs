//! Edits and deletions of posts: both under the lock of the post's row, and a deletion is final.

use proto::{PostId, UserId};
use sqlx::Row as _;

use super::{
    Change, LOCK_ROW, Row, SqlLedger,
    accounts::require_users,
    counters::uncount_post,
    failed,
    posts::{COLUMNS, content, post, require_attachments, written},
    row::number,
};
use crate::{
    Entity, Error,
    ledger::{Deleted, Event, Post, PostChange, Revision},
};

impl SqlLedger {
    pub(super) async fn try_update_post(
        &self,
        (author, id): (UserId, PostId),
        version: i64,
        wanted: &PostChange,
        event: &Event<'_, Post>,
    ) -> Result<Post, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [author; 2]).await?;
        let (before, _) = lock_post(&mut change, author, id).await?.ok_or(Error::NotFound(Entity::Post))?;
        let mut after = wanted.applied_to(&before);
        // Whoever missed the answer asks again with the old version: what they want is so already.
        if after == before {
            return Ok(before);
        }
        if before.version != version {
            return Err(Error::VersionMismatch { now: before.version });
        }
        if after.visibility < before.visibility {
            return Err(Error::Widened);
        }
        require_attachments(&mut change, author, &after.content.attachments).await?;
        after.version = change.now_us.max(before.version + 1);
        after.edited_at_ms = Some(change.now_us.div_euclid(1000));
        sqlx::query(
            "INSERT INTO post_revisions (post, version, since_ms, text, title, language, sensitive, attachments) \
             SELECT id, version, COALESCE(edited_at_ms, created_at_ms), text, title, language, sensitive, attachments \
             FROM posts WHERE id = $1",
        )
        .bind(id.get())
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        sqlx::query(
            "UPDATE posts SET text = $2, title = $3, language = $4, sensitive = $5, attachments = $6, visibility = $7, \
                 edited_at_ms = $8, version = $9 WHERE id = $1",
        )
        .bind(id.get())
        .bind(&after.content.text)
        .bind(after.content.title.as_deref())
        .bind(after.content.language.as_deref())
        .bind(after.content.sensitive)
        .bind(written(&after.content.attachments))
        .bind(after.visibility.number())
        .bind(after.edited_at_ms)
        .bind(after.version)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        self.write_event(&mut change, event, after.version, &after).await?;
        self.commit(change).await?;
        Ok(after)
    }

    pub(super) async fn try_delete_post(
        &self,
        author: UserId,
        id: PostId,
        event: &Event<'_, Deleted>,
    ) -> Result<Deleted, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [author; 2]).await?;
        let Some((before, is_deleted)) = lock_post_or_tombstone(&mut change, author, id).await? else {
            return Err(Error::NotFound(Entity::Post));
        };
        if is_deleted {
            return Ok(Deleted { id, author, version: before.version, changed: false });
        }
        let deleted = self.end_post(&mut change, &before, event).await?;
        self.commit(change).await?;
        Ok(deleted)
    }

    /// Makes a tombstone of a post, under the lock of its row.
    pub(super) async fn end_post(
        &self,
        change: &mut Change,
        before: &Post,
        event: &Event<'_, Deleted>,
    ) -> Result<Deleted, Error> {
        let (id, author) = (before.id, before.author);
        let version = change.now_us.max(before.version + 1);
        sqlx::query(
            "UPDATE posts SET text = '', title = NULL, language = NULL, sensitive = FALSE, attachments = '', \
                 quote_of = NULL, deleted_at_ms = $2, version = $3 WHERE id = $1",
        )
        .bind(id.get())
        .bind(change.now_us.div_euclid(1000))
        .bind(version)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        sqlx::query("DELETE FROM post_revisions WHERE post = $1")
            .bind(id.get())
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        uncount_post(change, author).await?;
        let deleted = Deleted { id, author, version, changed: true };
        self.write_event(change, event, version, &deleted).await?;
        Ok(deleted)
    }

    pub(super) async fn read_revisions(
        &self,
        id: PostId,
        below: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Revision>, Error> {
        let query = sqlx::query(
            "SELECT version, since_ms, text, title, language, sensitive, attachments FROM post_revisions \
             WHERE post = $1 AND version < $2 ORDER BY version DESC LIMIT $3",
        );
        let query = query.bind(id.get()).bind(below.unwrap_or(i64::MAX)).bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        let revision = |row: &Row| {
            let (version, since_ms) = (number(row, "version")?, number(row, "since_ms")?);
            Ok(Revision { version, since_ms, content: content(row)? })
        };
        rows.iter().map(revision).collect()
    }
}

/// A post of this author that is not deleted, locked to the end of the change.
async fn lock_post(change: &mut Change, author: UserId, id: PostId) -> Result<Option<(Post, bool)>, Error> {
    Ok(lock_post_or_tombstone(change, author, id).await?.filter(|(_, is_deleted)| !is_deleted))
}

/// A post of this author and whether it is deleted, locked to the end of the change.
pub(super) async fn lock_post_or_tombstone(
    change: &mut Change,
    author: UserId,
    id: PostId,
) -> Result<Option<(Post, bool)>, Error> {
    let query = format!(
        "SELECT {COLUMNS}, deleted_at_ms IS NOT NULL AS is_deleted FROM posts WHERE id = $1 AND author = $2{LOCK_ROW}"
    );
    let row = sqlx::query(sqlx::AssertSqlSafe(query)).bind(id.get()).bind(author.get());
    let row = row.fetch_optional(&mut *change.transaction).await.map_err(failed)?;
    row.map(|row| Ok((post(&row)?, row.try_get("is_deleted").map_err(failed)?))).transpose()
}
