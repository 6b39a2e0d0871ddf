//! People.

use async_trait::async_trait;
use proto::UserId;
use sqlx::{QueryBuilder, Row as _};

use super::{
    Change, KEEP_ROW, LOCK_ROW, LOCK_WHOLE_ROW, Row, SqlLedger, counters::begin_counting, failed, jobs::begin_job,
    push_is_one_of, row::number,
};
use crate::{
    Entity, Error,
    ledger::{Account, Accounts, Credentials, Event, JobKind, NewAccount, OwnAccount, ProfileChange},
};

const COLUMNS: &str = "id, handle, display_name, bio, created_at_ms";

#[async_trait]
impl Accounts for SqlLedger {
    async fn create(&self, new: NewAccount, event: Event<'_, Account>) -> Result<Account, Error> {
        self.retried(|| self.try_create_account(&new, &event)).await
    }

    async fn exists(&self, user: UserId) -> Result<bool, Error> {
        let query = sqlx::query("SELECT 1 FROM accounts WHERE id = $1 AND deleted_at_ms IS NULL").bind(user.get());
        Ok(self.answered(query.fetch_optional(self.reader())).await?.is_some())
    }

    async fn batch(&self, ids: &[UserId]) -> Result<Vec<Account>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(format!("SELECT {COLUMNS} FROM accounts WHERE deleted_at_ms IS NULL AND id"));
        push_is_one_of(&mut query, ids.iter().map(|id| id.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(account).collect()
    }

    async fn by_handle(&self, handle: &str) -> Result<Option<Account>, Error> {
        let query = format!("SELECT {COLUMNS} FROM accounts WHERE handle = $1 AND deleted_at_ms IS NULL");
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(handle);
        self.answered(query.fetch_optional(self.reader())).await?.as_ref().map(account).transpose()
    }

    async fn own(&self, user: UserId) -> Result<Option<OwnAccount>, Error> {
        let query = format!("SELECT {COLUMNS}, email FROM accounts WHERE id = $1 AND deleted_at_ms IS NULL");
        let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(user.get());
        self.answered(query.fetch_optional(self.reader())).await?.as_ref().map(own_account).transpose()
    }

    async fn credentials(&self, handle: &str) -> Result<Option<Credentials>, Error> {
        let query = sqlx::query(sqlx::AssertSqlSafe(credentials_where("handle"))).bind(handle);
        self.answered(query.fetch_optional(self.reader())).await?.as_ref().map(credentials).transpose()
    }

    async fn credentials_of(&self, user: UserId) -> Result<Option<Credentials>, Error> {
        let query = sqlx::query(sqlx::AssertSqlSafe(credentials_where("id"))).bind(user.get());
        self.answered(query.fetch_optional(self.reader())).await?.as_ref().map(credentials).transpose()
    }

    async fn update(
        &self,
        user: UserId,
        change: ProfileChange,
        event: Event<'_, Account>,
    ) -> Result<OwnAccount, Error> {
        self.retried(|| self.try_update_account(user, &change, &event)).await
    }

    async fn set_password(&self, before: &Credentials, hash: &str) -> Result<bool, Error> {
        self.retried(|| self.try_set_password(before, hash)).await
    }

    async fn rehash(&self, before: &Credentials, hash: &str) -> Result<(), Error> {
        self.retried(|| self.try_rehash(before, hash)).await
    }

    async fn delete(&self, user: UserId, event: Event<'_, ()>) -> Result<bool, Error> {
        self.retried(|| self.try_delete_account(user, &event)).await
    }
}

impl SqlLedger {
    async fn try_create_account(&self, new: &NewAccount, event: &Event<'_, Account>) -> Result<Account, Error> {
        let mut change = self.begin().await?;
        let (version, created_at_ms) = (change.now_us, change.now_us.div_euclid(1000));
        let inserted = sqlx::query(
            "INSERT INTO accounts (id, handle, display_name, email, email_key, created_at_ms, version) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        )
        .bind(new.id.get())
        .bind(&new.handle)
        .bind(&new.display_name)
        .bind(new.email.as_deref())
        .bind(new.email.as_deref().map(email_key))
        .bind(created_at_ms)
        .bind(version)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        if inserted.rows_affected() == 0 {
            return Err(what_is_taken(&mut change, new).await?);
        }
        sqlx::query("INSERT INTO passwords (account, hash, changed_us) VALUES ($1, $2, $3)")
            .bind(new.id.get())
            .bind(&new.password_hash)
            .bind(version)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        begin_counting(&mut change, new.id).await?;
        let (handle, display_name) = (new.handle.clone(), new.display_name.clone());
        let account = Account { id: new.id, handle, display_name, bio: String::new(), created_at_ms };
        self.write_event(&mut change, event, version, &account).await?;
        self.commit(change).await?;
        Ok(account)
    }

    async fn try_update_account(
        &self,
        user: UserId,
        wanted: &ProfileChange,
        event: &Event<'_, Account>,
    ) -> Result<OwnAccount, Error> {
        let mut change = self.begin().await?;
        let (before, version) = lock_account(&mut change, user).await?;
        let mut after = before.clone();
        after.account.display_name = wanted.display_name.clone().unwrap_or(after.account.display_name);
        after.account.bio = wanted.bio.clone().unwrap_or(after.account.bio);
        after.email = wanted.email.clone().unwrap_or(after.email);
        if after == before {
            return Ok(before);
        }
        let version = change.now_us.max(version + 1);
        sqlx::query(
            "UPDATE accounts SET display_name = $1, bio = $2, email = $3, email_key = $4, version = $5 WHERE id = $6",
        )
        .bind(&after.account.display_name)
        .bind(&after.account.bio)
        .bind(after.email.as_deref())
        .bind(after.email.as_deref().map(email_key))
        .bind(version)
        .bind(user.get())
        .execute(&mut *change.transaction)
        .await
        .map_err(|cause| {
            // The e-mail address is all that must be unique and changes here.
            let taken = cause.as_database_error().is_some_and(|error| error.is_unique_violation());
            if taken { Error::EmailTaken } else { failed(cause) }
        })?;
        self.write_event(&mut change, event, version, &after.account).await?;
        self.commit(change).await?;
        Ok(after)
    }

    async fn try_set_password(&self, before: &Credentials, hash: &str) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        let set = sqlx::query("UPDATE passwords SET hash = $1, changed_us = $2 WHERE account = $3 AND changed_us = $4")
            .bind(hash)
            .bind(change.now_us.max(before.changed_us + 1))
            .bind(before.account.id.get())
            .bind(before.changed_us)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.commit(change).await?;
        Ok(set.rows_affected() > 0)
    }

    async fn try_rehash(&self, before: &Credentials, hash: &str) -> Result<(), Error> {
        let mut change = self.begin().await?;
        // Not over a password that was chosen meanwhile.
        sqlx::query("UPDATE passwords SET hash = $1 WHERE account = $2 AND hash = $3 AND changed_us = $4")
            .bind(hash)
            .bind(before.account.id.get())
            .bind(&before.password_hash)
            .bind(before.changed_us)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        self.commit(change).await
    }

    /// One transaction, with the job that ends what the person has to do with others.
    async fn try_delete_account(&self, user: UserId, event: &Event<'_, ()>) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        // The whole row's lock waits for every change that keeps the row (`require_users`), and those that come later find the
        // person gone: so nothing of theirs can be committed behind this.
        let query = format!("SELECT version, deleted_at_ms FROM accounts WHERE id = $1{LOCK_WHOLE_ROW}");
        let row = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(user.get())
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)?
            .ok_or(Error::NotFound(Entity::User))?;
        if row.try_get::<Option<i64>, _>("deleted_at_ms").map_err(failed)?.is_some() {
            return Ok(false);
        }
        let version = change.now_us.max(row.try_get::<i64, _>("version").map_err(failed)? + 1);
        sqlx::query(
            "UPDATE accounts SET display_name = '', bio = '', email = NULL, email_key = NULL, version = $1, \
                 deleted_at_ms = $2 WHERE id = $3",
        )
        .bind(version)
        .bind(change.now_us.div_euclid(1000))
        .bind(user.get())
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        sqlx::query("DELETE FROM passwords WHERE account = $1")
            .bind(user.get())
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        begin_job(&mut change, JobKind::CleanUp, user, version).await?;
        self.write_event(&mut change, event, version, &()).await?;
        self.commit(change).await?;
        Ok(true)
    }
}

/// Both people (they may be one) must be there for the change to be made, and to its end: they are not deleted beside it.
pub(super) async fn require_users(change: &mut Change, [one, other]: [UserId; 2]) -> Result<(), Error> {
    let query = format!("SELECT id FROM accounts WHERE (id = $1 OR id = $2) AND deleted_at_ms IS NULL{KEEP_ROW}");
    let found = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(one.get())
        .bind(other.get())
        .fetch_all(&mut *change.transaction)
        .await
        .map_err(failed)?
        .len();
    let wanted = if one == other { 1 } else { 2 };
    if found == wanted { Ok(()) } else { Err(Error::NotFound(Entity::User)) }
}

/// The account and its version, locked to the end of the change.
async fn lock_account(change: &mut Change, user: UserId) -> Result<(OwnAccount, i64), Error> {
    let query =
        format!("SELECT {COLUMNS}, email, version FROM accounts WHERE id = $1 AND deleted_at_ms IS NULL{LOCK_ROW}");
    let row = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(user.get())
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?
        .ok_or(Error::NotFound(Entity::User))?;
    Ok((own_account(&row)?, row.try_get("version").map_err(failed)?))
}

/// Why an account could not be made: of what must be unique, someone had the handle or else the e-mail address.
async fn what_is_taken(change: &mut Change, new: &NewAccount) -> Result<Error, Error> {
    let handle = sqlx::query("SELECT 1 FROM accounts WHERE handle = $1").bind(&new.handle);
    let found = handle.fetch_optional(&mut *change.transaction).await.map_err(failed)?;
    Ok(if found.is_some() { Error::HandleTaken } else { Error::EmailTaken })
}

fn credentials_where(column: &str) -> String {
    format!(
        "SELECT {COLUMNS}, hash, changed_us FROM accounts JOIN passwords ON account = id \
         WHERE {column} = $1 AND deleted_at_ms IS NULL"
    )
}

/// How e-mail addresses are compared. By the letter the part before the @ may care for case; no provider's does, and to take
/// two that differ by it for two people invites one to pose as the other.
fn email_key(email: &str) -> String {
    email.to_lowercase()
}

fn credentials(row: &Row) -> Result<Credentials, Error> {
    Ok(Credentials {
        account: account(row)?,
        password_hash: row.try_get("hash").map_err(failed)?,
        changed_us: row.try_get("changed_us").map_err(failed)?,
    })
}

fn own_account(row: &Row) -> Result<OwnAccount, Error> {
    Ok(OwnAccount { account: account(row)?, email: row.try_get("email").map_err(failed)? })
}

fn account(row: &Row) -> Result<Account, Error> {
    Ok(Account {
        id: number(row, "id")?,
        handle: row.try_get("handle").map_err(failed)?,
        display_name: row.try_get("display_name").map_err(failed)?,
        bio: row.try_get("bio").map_err(failed)?,
        created_at_ms: row.try_get("created_at_ms").map_err(failed)?,
    })
}
