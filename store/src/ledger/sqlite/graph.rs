//! Who follows whom, in SQLite.

use async_trait::async_trait;
use proto::UserId;
use sqlx::Row as _;

use super::{Change, Sqlite, failed, id, next_version};
use crate::{
    Entity, Error,
    ledger::{Event, Graph},
};

#[async_trait]
impl Graph for Sqlite {
    async fn follow(&self, follower: UserId, followee: UserId, event: Event<'_, ()>) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        for user in [follower, followee] {
            require_user(&mut change, user).await?;
        }
        let earlier = sqlx::query("SELECT active, version FROM follows WHERE follower = $1 AND followee = $2")
            .bind(follower.get())
            .bind(followee.get())
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?;
        let mut previous = 0;
        if let Some(row) = earlier {
            if row.try_get("active").map_err(failed)? {
                return Ok(false);
            }
            previous = row.try_get("version").map_err(failed)?;
        }
        let version = next_version(previous, change.now_us);
        sqlx::query(
            "INSERT INTO follows (follower, followee, active, version) VALUES ($1, $2, 1, $3) \
             ON CONFLICT (follower, followee) DO UPDATE SET active = 1, version = excluded.version",
        )
        .bind(follower.get())
        .bind(followee.get())
        .bind(version)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        self.write_event(&mut change, &event, version, &()).await?;
        self.commit(change).await?;
        Ok(true)
    }

    async fn followees(&self, reader: UserId) -> Result<Vec<UserId>, Error> {
        let rows = sqlx::query("SELECT followee FROM follows WHERE follower = $1 AND active")
            .bind(reader.get())
            .fetch_all(self.reader())
            .await
            .map_err(failed)?;
        rows.iter().map(|row| id(row, "followee")).collect()
    }

    async fn followers(&self, author: UserId, after: Option<UserId>, limit: u32) -> Result<Vec<UserId>, Error> {
        let rows = sqlx::query(
            "SELECT follower FROM follows WHERE followee = $1 AND follower > $2 AND active ORDER BY follower LIMIT $3",
        )
        .bind(author.get())
        .bind(after.map_or(0, UserId::get))
        .bind(limit)
        .fetch_all(self.reader())
        .await
        .map_err(failed)?;
        rows.iter().map(|row| id(row, "follower")).collect()
    }
}

/// The person must be there when the change is committed.
pub(super) async fn require_user(change: &mut Change, user: UserId) -> Result<(), Error> {
    let found = sqlx::query("SELECT 1 FROM accounts WHERE id = $1")
        .bind(user.get())
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
    found.map(|_| ()).ok_or(Error::NotFound(Entity::User))
}
