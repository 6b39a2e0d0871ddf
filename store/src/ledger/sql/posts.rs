//! Posts.

use std::time::Duration;

use async_trait::async_trait;
use proto::{AttachmentId, PostId, UserId};
use sqlx::{QueryBuilder, Row as _};

use super::{
    Change, Row, STORE, SqlLedger,
    accounts::require_users,
    counters::count_post,
    failed,
    keys::{post_of_key, take_key},
    likes::likes,
    push_is_one_of,
    row::number,
    sight::sight,
};
use crate::{
    Error,
    error::damaged,
    ledger::{
        Content, Deleted, Event, Likes, NewPost, Place, Post, PostChange, Posts, Revision, Viewer, Visibility, Written,
    },
};

pub(super) const COLUMNS: &str = "id, author, text, title, language, sensitive, attachments, visibility, quote_of, \
    created_at_ms, edited_at_ms, version, like_count, like_version";

#[async_trait]
impl Posts for SqlLedger {
    async fn create(&self, new: NewPost, event: Event<'_, Written>) -> Result<Post, Error> {
        self.retried(|| self.try_create_post(&new, &event)).await
    }

    async fn forget_keys(&self, older_than: Duration, limit: u32) -> Result<u64, Error> {
        self.retried(|| self.try_forget_keys(older_than, limit)).await
    }

    async fn update(
        &self,
        post: (UserId, PostId),
        version: i64,
        change: PostChange,
        event: Event<'_, Post>,
    ) -> Result<Post, Error> {
        self.retried(|| self.try_update_post(post, version, &change, &event)).await
    }

    async fn delete(&self, author: UserId, post: PostId, event: Event<'_, Deleted>) -> Result<Deleted, Error> {
        self.retried(|| self.try_delete_post(author, post, &event)).await
    }

    async fn batch(&self, viewer: Viewer, ids: &[PostId]) -> Result<Vec<Post>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = sight(viewer, COLUMNS);
        query.push(" AND posts.id");
        push_is_one_of(&mut query, ids.iter().map(|id| id.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(post).collect()
    }

    async fn by_author(
        &self,
        viewer: Viewer,
        author: UserId,
        below: Option<PostId>,
        limit: u32,
    ) -> Result<Vec<Post>, Error> {
        let mut query = sight(viewer, COLUMNS);
        query.push(" AND posts.author = ").push_bind(author.get());
        query.push(" AND posts.id < ").push_bind(below.map_or(i64::MAX, PostId::get));
        query.push(" ORDER BY posts.id DESC LIMIT ").push_bind(i64::from(limit));
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(post).collect()
    }

    async fn gone(&self, ids: &[PostId]) -> Result<Vec<PostId>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query =
            QueryBuilder::new("SELECT id FROM posts WHERE (deleted_at_ms IS NOT NULL OR visibility = 2) AND id");
        push_is_one_of(&mut query, ids.iter().map(|id| id.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "id")).collect()
    }

    async fn revisions(&self, post: PostId, below: Option<i64>, limit: u32) -> Result<Vec<Revision>, Error> {
        self.read_revisions(post, below, limit).await
    }

    async fn like(&self, user: UserId, post: PostId, event: Event<'_, Likes>) -> Result<Likes, Error> {
        self.retried(|| self.try_set_like((user, post), true, &event)).await
    }

    async fn unlike(&self, user: UserId, post: PostId, event: Event<'_, Likes>) -> Result<Likes, Error> {
        self.retried(|| self.try_set_like((user, post), false, &event)).await
    }

    async fn likers(&self, post: PostId, below: Option<Place>, limit: u32) -> Result<Vec<Place>, Error> {
        self.read_likers(post, below, limit).await
    }

    async fn liked(&self, user: UserId, posts: &[PostId]) -> Result<Vec<PostId>, Error> {
        self.read_liked(user, posts).await
    }

    async fn liked_between(&self, from: i64, until: i64, limit: u32) -> Result<Vec<(PostId, Likes)>, Error> {
        let query = sqlx::query(
            "SELECT id, like_count, like_version FROM posts \
             WHERE id >= $1 AND id < $2 AND like_version > 0 AND deleted_at_ms IS NULL ORDER BY id LIMIT $3",
        )
        .bind(from)
        .bind(until)
        .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| Ok((number(row, "id")?, likes(row)?))).collect()
    }
}

impl SqlLedger {
    /// Whether it may be written is asked after the key was taken: a call that is made again gets its post, whatever became
    /// meanwhile of what it quotes.
    async fn try_create_post(&self, new: &NewPost, event: &Event<'_, Written>) -> Result<Post, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [new.author; 2]).await?;
        if let Some(key) = &new.key
            && !take_key(&mut change, new, key).await?
        {
            return post_of_key(&mut change, new, key).await;
        }
        require_quote(&mut change, new).await?;
        require_attachments(&mut change, new.author, &new.content.attachments).await?;
        let (created_at_ms, version) = (new.id.unix_ms(), change.now_us);
        let fan_out = count_post(&mut change, new.author).await?.fan_out();
        sqlx::query(
            "INSERT INTO posts (id, author, text, title, language, sensitive, attachments, visibility, quote_of, \
                 created_at_ms, version, fan_out) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
        )
        .bind(new.id.get())
        .bind(new.author.get())
        .bind(&new.content.text)
        .bind(new.content.title.as_deref())
        .bind(new.content.language.as_deref())
        .bind(new.content.sensitive)
        .bind(written(&new.content.attachments))
        .bind(new.visibility.number())
        .bind(new.quote_of.map(PostId::get))
        .bind(created_at_ms)
        .bind(version)
        .bind(fan_out.number())
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let post = Post {
            id: new.id,
            author: new.author,
            content: new.content.clone(),
            visibility: new.visibility,
            quote_of: new.quote_of,
            created_at_ms,
            edited_at_ms: None,
            version,
            likes: Likes::default(),
        };
        let written = Written { post, fan_out };
        self.write_event(&mut change, event, version, &written).await?;
        self.commit(change).await?;
        Ok(written.post)
    }
}

/// That the author may see what the post quotes.
async fn require_quote(change: &mut Change, new: &NewPost) -> Result<(), Error> {
    let Some(quoted) = new.quote_of else { return Ok(()) };
    let mut query = sight(Viewer::Person(new.author), "id");
    query.push(" AND posts.id = ").push_bind(quoted.get());
    let found = query.build().fetch_optional(&mut *change.transaction).await.map_err(failed)?;
    found.map(|_| ()).ok_or(Error::QuoteNotFound)
}

/// That all of these are the author's own, and ready.
pub(super) async fn require_attachments(
    change: &mut Change,
    author: UserId,
    attachments: &[AttachmentId],
) -> Result<(), Error> {
    if attachments.is_empty() {
        return Ok(());
    }
    let mut query = QueryBuilder::new("SELECT id FROM attachments WHERE state = 'ready' AND owner = ");
    query.push_bind(author.get()).push(" AND id");
    push_is_one_of(&mut query, attachments.iter().map(|attachment| attachment.get()).collect());
    let found = query.build().fetch_all(&mut *change.transaction).await.map_err(failed)?;
    if found.len() == attachments.len() { Ok(()) } else { Err(Error::AttachmentNotFound) }
}

/// Attachments as a row has them.
pub(super) fn written(attachments: &[AttachmentId]) -> String {
    attachments.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn post(row: &Row) -> Result<Post, Error> {
    let visibility: i64 = row.try_get("visibility").map_err(failed)?;
    let known = Visibility::ALL.into_iter().find(|known| known.number() == visibility);
    let quote_of: Option<i64> = row.try_get("quote_of").map_err(failed)?;
    Ok(Post {
        id: number(row, "id")?,
        author: number(row, "author")?,
        content: content(row)?,
        visibility: known.ok_or_else(|| damaged(STORE, format_args!("visibility = {visibility}")))?,
        quote_of: quote_of.map(PostId::new).transpose().map_err(|_| damaged(STORE, "quote_of is no id"))?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
        edited_at_ms: row.try_get("edited_at_ms").map_err(failed)?,
        version: row.try_get("version").map_err(failed)?,
        likes: likes(row)?,
    })
}

pub(super) fn content(row: &Row) -> Result<Content, Error> {
    let attachments: String = row.try_get("attachments").map_err(failed)?;
    let ids = attachments.split(',').filter(|id| !id.is_empty()).map(str::parse);
    let attachments = ids.collect::<Result<_, _>>();
    Ok(Content {
        text: row.try_get("text").map_err(failed)?,
        title: row.try_get("title").map_err(failed)?,
        language: row.try_get("language").map_err(failed)?,
        sensitive: row.try_get("sensitive").map_err(failed)?,
        attachments: attachments.map_err(|_| damaged(STORE, "attachments that are no ids"))?,
    })
}
