//! People.

use async_trait::async_trait;
use proto::UserId;
use sqlx::Row as _;

use super::{Change, Row, SqlLedger, counters::begin_counting, failed, row::number};
use crate::{
    Entity, Error,
    ledger::{Account, Accounts, Event, NewAccount},
};

#[async_trait]
impl Accounts for SqlLedger {
    async fn create(&self, new: NewAccount, event: Event<'_, Account>) -> Result<Account, Error> {
        self.retried(|| self.try_create_account(&new, &event)).await
    }

    async fn exists(&self, user: UserId) -> Result<bool, Error> {
        let query = sqlx::query("SELECT 1 FROM accounts WHERE id = $1").bind(user.get());
        Ok(self.answered(query.fetch_optional(self.reader())).await?.is_some())
    }

    async fn credentials(&self, handle: &str) -> Result<Option<(Account, String)>, Error> {
        let query = sqlx::query(
            "SELECT id, handle, display_name, created_at_ms, password_hash FROM accounts WHERE handle = $1",
        )
        .bind(handle);
        let row = self.answered(query.fetch_optional(self.reader())).await?;
        row.map(|row| Ok((account(&row)?, row.try_get("password_hash").map_err(failed)?))).transpose()
    }
}

impl SqlLedger {
    async fn try_create_account(&self, new: &NewAccount, event: &Event<'_, Account>) -> Result<Account, Error> {
        let mut change = self.begin().await?;
        let (version, created_at_ms) = (change.now_us, change.now_us.div_euclid(1000));
        let inserted = sqlx::query(
            "INSERT INTO accounts (id, handle, display_name, password_hash, created_at_ms, version) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (handle) DO NOTHING",
        )
        .bind(new.id.get())
        .bind(&new.handle)
        .bind(&new.display_name)
        .bind(&new.password_hash)
        .bind(created_at_ms)
        .bind(version)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        if inserted.rows_affected() == 0 {
            return Err(Error::HandleTaken);
        }
        begin_counting(&mut change, new.id).await?;
        let (handle, display_name) = (new.handle.clone(), new.display_name.clone());
        let account = Account { id: new.id, handle, display_name, created_at_ms };
        self.write_event(&mut change, event, version, &account).await?;
        self.commit(change).await?;
        Ok(account)
    }
}

/// Both people (they may be one) must be there for the change to be made.
pub(super) async fn require_users(change: &mut Change, [one, other]: [UserId; 2]) -> Result<(), Error> {
    let found: i64 = sqlx::query_scalar("SELECT count(*) FROM accounts WHERE id = $1 OR id = $2")
        .bind(one.get())
        .bind(other.get())
        .fetch_one(&mut *change.transaction)
        .await
        .map_err(failed)?;
    let wanted = if one == other { 1 } else { 2 };
    if found == wanted { Ok(()) } else { Err(Error::NotFound(Entity::User)) }
}

fn account(row: &Row) -> Result<Account, Error> {
    Ok(Account {
        id: number(row, "id")?,
        handle: row.try_get("handle").map_err(failed)?,
        display_name: row.try_get("display_name").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
    })
}
