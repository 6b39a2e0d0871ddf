//! Authors of other servers.

use async_trait::async_trait;
use proto::UserId;

use super::{Change, SqlLedger, counters::begin_counting, failed};
use crate::{
    Error,
    ledger::{Account, Event, RemoteAuthor, RemoteAuthors},
};

#[async_trait]
impl RemoteAuthors for SqlLedger {
    async fn upsert(&self, author: RemoteAuthor, event: Event<'_, Account>) -> Result<Account, Error> {
        self.retried(|| self.try_upsert(&author, &event)).await
    }
}

impl SqlLedger {
    /// Such an account has no password, and what is looked up at a sign-in is never NAME@ORIGIN.
    async fn try_upsert(&self, author: &RemoteAuthor, event: &Event<'_, Account>) -> Result<Account, Error> {
        let mut change = self.begin_alone_on("remote_authors").await?;
        let known = known_as(&mut change, author).await?;
        let id = known.unwrap_or(author.id);
        let (now_us, created_at_ms) = (change.now_us, change.now_us.div_euclid(1000));
        let taken: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM accounts WHERE handle = $1 AND id <> $2)")
            .bind(&author.handle)
            .bind(id.get())
            .fetch_one(&mut *change.transaction)
            .await
            .map_err(failed)?;
        if taken {
            return Err(Error::HandleTaken);
        }
        let written: Option<(i64, i64)> = sqlx::query_as(
            "INSERT INTO accounts (id, handle, display_name, created_at_ms, version) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE SET handle = excluded.handle, \
                 display_name = excluded.display_name, version = \
                 CASE WHEN accounts.version < excluded.version THEN excluded.version ELSE accounts.version + 1 END \
             WHERE accounts.handle <> excluded.handle OR accounts.display_name <> excluded.display_name \
             RETURNING created_at_ms, version",
        )
        .bind(id.get())
        .bind(&author.handle)
        .bind(&author.display_name)
        .bind(created_at_ms)
        .bind(now_us)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let account = |created_at_ms| Account {
            id,
            handle: author.handle.clone(),
            display_name: author.display_name.clone(),
            bio: String::new(),
            created_at_ms,
        };
        let Some((created_at_ms, version)) = written else {
            let created_at_ms = sqlx::query_scalar("SELECT created_at_ms FROM accounts WHERE id = $1").bind(id.get());
            return Ok(account(created_at_ms.fetch_one(&mut *change.transaction).await.map_err(failed)?));
        };
        if known.is_none() {
            begin_counting(&mut change, id).await?;
            sqlx::query("INSERT INTO remote_authors (origin, remote_id, user_id) VALUES ($1, $2, $3)")
                .bind(&author.origin)
                .bind(&author.remote_id)
                .bind(id.get())
                .execute(&mut *change.transaction)
                .await
                .map_err(failed)?;
        }
        let account = account(created_at_ms);
        self.write_event(&mut change, event, version, &account).await?;
        self.commit(change).await?;
        Ok(account)
    }
}

async fn known_as(change: &mut Change, author: &RemoteAuthor) -> Result<Option<UserId>, Error> {
    let known: Option<i64> =
        sqlx::query_scalar("SELECT user_id FROM remote_authors WHERE origin = $1 AND remote_id = $2")
            .bind(&author.origin)
            .bind(&author.remote_id)
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?;
    known
        .map(|id| UserId::new(id).map_err(|_| crate::error::damaged(super::STORE, "an author without an id")))
        .transpose()
}
