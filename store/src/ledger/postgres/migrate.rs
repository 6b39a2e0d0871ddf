//! The tables, and how they are brought up to date. Pods do not do that when they start: an operator says when.

use sqlx::{
    ConnectOptions as _, PgConnection,
    migrate::{AppliedMigration, Migrate as _, MigrateError, Migrator},
    postgres::PgConnectOptions,
};
use tokio::time::timeout;

use super::{OPEN_MAX, STORE, connect, install::KEEP_SHARDS, unusable};
use crate::{
    OpenError,
    ledger::migrations::{self, TABLE},
    migrate::{Mode, Step},
};

static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");
/// A migration that waits for a table's lock makes everyone else wait behind it: rather give up, and try again later. It is
/// also how long one migration waits for another.
const SETTINGS: &str = "SELECT set_config('lock_timeout', '30s', false), set_config('statement_timeout', '0', false)";

/// Brings the tables up to date, and tells what that takes.
pub(crate) async fn migrate(url: &str, shards: u16, mode: Mode) -> Result<Vec<Step>, OpenError> {
    let broken = |cause: &dyn std::fmt::Display| unusable(url, cause);
    let options = connect::options(url, "migrate").map_err(|cause| broken(&cause))?;
    let mut connection = reach(&options).await.map_err(|cause| broken(&cause))?;
    match mode {
        Mode::Plan => plan(&mut connection).await,
        Mode::Apply => apply(&mut connection, shards).await,
    }
    .map_err(|cause| broken(&cause))
}

/// Refuses tables that are older or newer than this binary.
pub(super) async fn require_up_to_date(options: &PgConnectOptions) -> Result<(), String> {
    let mut connection = reach(options).await?;
    let pending =
        timeout(OPEN_MAX, plan(&mut connection)).await.map_err(|_| format!("no answer within {OPEN_MAX:?}"))??;
    match pending.len() {
        0 => Ok(()),
        steps => Err(format!("its tables are {steps} migrations behind this release: run freshet migrate")),
    }
}

/// One connection, made at once: a pool would wait and then not tell why.
async fn reach(options: &PgConnectOptions) -> Result<PgConnection, String> {
    match timeout(OPEN_MAX, options.connect()).await {
        Ok(connection) => connection.map_err(|cause| cause.to_string()),
        Err(_) => Err(format!("no answer within {OPEN_MAX:?}")),
    }
}

async fn plan(connection: &mut PgConnection) -> Result<Vec<Step>, String> {
    let applied = applied(connection).await.map_err(|cause| cause.to_string())?;
    Ok(migrations::pending(&MIGRATIONS, &applied)?.into_iter().map(step).collect())
}

/// Under a lock, which ends with the connection too: of several at once one does it, and the others find it done.
async fn apply(connection: &mut PgConnection, shards: u16) -> Result<Vec<Step>, String> {
    let text = |cause: MigrateError| cause.to_string();
    sqlx::query(SETTINGS).execute(&mut *connection).await.map_err(|cause| cause.to_string())?;
    connection.lock().await.map_err(text)?;
    let applied = applied(connection).await.map_err(text)?;
    let pending = migrations::pending(&MIGRATIONS, &applied)?;
    connection.ensure_migrations_table(TABLE).await.map_err(text)?;
    for migration in &pending {
        connection.apply(TABLE, migration).await.map_err(text)?;
    }
    // Here, and not by the first pod: one that was started with a wrong number would decide it for all.
    let keep = sqlx::query(KEEP_SHARDS).bind(shards.to_string());
    keep.execute(&mut *connection).await.map_err(|cause| cause.to_string())?;
    connection.unlock().await.map_err(text)?;
    Ok(pending.into_iter().map(step).collect())
}

async fn applied(connection: &mut PgConnection) -> Result<Vec<AppliedMigration>, MigrateError> {
    let made: bool =
        sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(TABLE).fetch_one(&mut *connection).await?;
    if made { connection.list_applied_migrations(TABLE).await } else { Ok(Vec::new()) }
}

fn step(migration: &sqlx::migrate::Migration) -> Step {
    Step { store: STORE, what: format!("migration {}: {}", migration.version, migration.description) }
}
