//! People in SQLite.

use async_trait::async_trait;
use proto::UserId;
use sqlx::{Row as _, sqlite::SqliteRow};

use super::{Sqlite, failed, id};
use crate::{
    Error,
    ledger::{Account, Accounts, Event, NewAccount},
};

#[async_trait]
impl Accounts for Sqlite {
    async fn create(&self, new: NewAccount, event: Event<'_, Account>) -> Result<Account, Error> {
        let mut change = self.begin().await?;
        let created_at_ms = change.now_us.div_euclid(1000);
        let inserted = sqlx::query(
            "INSERT INTO accounts (id, handle, display_name, password_hash, created_at_ms, version) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (handle) DO NOTHING",
        )
        .bind(new.id.get())
        .bind(&new.handle)
        .bind(&new.display_name)
        .bind(&new.password_hash)
        .bind(created_at_ms)
        .bind(change.now_us)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        if inserted.rows_affected() == 0 {
            return Err(Error::HandleTaken);
        }
        let account = Account { id: new.id, handle: new.handle, display_name: new.display_name, created_at_ms };
        let version = change.now_us;
        self.write_event(&mut change, &event, version, &account).await?;
        self.commit(change).await?;
        Ok(account)
    }

    async fn exists(&self, user: UserId) -> Result<bool, Error> {
        let found = sqlx::query("SELECT 1 FROM accounts WHERE id = $1")
            .bind(user.get())
            .fetch_optional(self.reader())
            .await
            .map_err(failed)?;
        Ok(found.is_some())
    }

    async fn credentials(&self, handle: &str) -> Result<Option<(Account, String)>, Error> {
        let row = sqlx::query(
            "SELECT id, handle, display_name, created_at_ms, password_hash FROM accounts WHERE handle = $1",
        )
        .bind(handle)
        .fetch_optional(self.reader())
        .await
        .map_err(failed)?;
        row.map(|row| Ok((account(&row)?, row.try_get("password_hash").map_err(failed)?))).transpose()
    }
}

fn account(row: &SqliteRow) -> Result<Account, Error> {
    Ok(Account {
        id: id(row, "id")?,
        handle: row.try_get("handle").map_err(failed)?,
        display_name: row.try_get("display_name").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
    })
}
