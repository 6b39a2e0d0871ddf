//! Tables of pairs: what one person is to another, whether it is so, and since which version. Ended pairs stay as rows, so that
//! a version never goes back.

use sqlx::Row as _;

use super::{Change, SqlLedger, failed};
use crate::{
    Error,
    ledger::{Event, GraphChange, Outcome, Pair},
};

/// A table of pairs, and its columns.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    pub(super) table: &'static str,
    pub(super) from: &'static str,
    pub(super) to: &'static str,
}

pub(super) const FOLLOWS: Pairs = Pairs { table: "follows", from: "follower", to: "followee" };
pub(super) const BLOCKS: Pairs = Pairs { table: "blocks", from: "blocker", to: "blocked" };
pub(super) const MUTES: Pairs = Pairs { table: "mutes", from: "muter", to: "muted" };
pub(super) const REQUESTS: Pairs = Pairs { table: "follow_requests", from: "requester", to: "target" };

/// A pair's row: whether it is so, and since when.
#[derive(Clone, Copy)]
pub(super) struct Stands {
    pub(super) active: bool,
    pub(super) version: i64,
}

impl Stands {
    /// What a call that wanted a pair ended, and found it so, answers.
    pub(super) fn ended(found: Option<Self>) -> Outcome {
        Outcome { version: found.filter(|row| !row.active).map(|row| row.version), changed: false }
    }
}

impl SqlLedger {
    /// Makes a pair so, and writes the event. `None`, and nothing is written, when it was so already. One statement: of many
    /// at once, the row's lock lets one through, and the others then find it active.
    pub(super) async fn activate(
        &self,
        change: &mut Change,
        Pairs { table, from, to }: Pairs,
        pair: Pair,
        (event, row): (&Event<'_, GraphChange>, GraphChange),
    ) -> Result<Option<i64>, Error> {
        let query = format!(
            "INSERT INTO {table} ({from}, {to}, active, version) VALUES ($1, $2, TRUE, $3) \
             ON CONFLICT ({from}, {to}) DO UPDATE SET active = TRUE, version = \
                 CASE WHEN {table}.version < excluded.version THEN excluded.version ELSE {table}.version + 1 END \
             WHERE NOT {table}.active RETURNING version"
        );
        let version = self.changed(change, query, pair).await?;
        if let Some(version) = version {
            self.write_event(change, event, version, &row).await?;
        }
        Ok(version)
    }

    /// Ends a pair, and writes the event. `None`, and nothing is written, when it was not so.
    pub(super) async fn end(
        &self,
        change: &mut Change,
        Pairs { table, from, to }: Pairs,
        pair: Pair,
        (event, row): (&Event<'_, GraphChange>, GraphChange),
    ) -> Result<Option<i64>, Error> {
        let query = format!(
            "UPDATE {table} SET active = FALSE, version = CASE WHEN version < $3 THEN $3 ELSE version + 1 END \
             WHERE {from} = $1 AND {to} = $2 AND active RETURNING version"
        );
        let version = self.changed(change, query, pair).await?;
        if let Some(version) = version {
            self.write_event(change, event, version, &row).await?;
        }
        Ok(version)
    }

    async fn changed(&self, change: &mut Change, query: String, pair: Pair) -> Result<Option<i64>, Error> {
        sqlx::query_scalar(sqlx::AssertSqlSafe(query))
            .bind(pair.from.get())
            .bind(pair.to.get())
            .bind(change.now_us)
            .fetch_optional(&mut *change.transaction)
            .await
            .map_err(failed)
    }
}

/// How a pair stands.
pub(super) async fn stands(
    change: &mut Change,
    Pairs { table, from, to }: Pairs,
    pair: Pair,
) -> Result<Option<Stands>, Error> {
    let query = format!("SELECT active, version FROM {table} WHERE {from} = $1 AND {to} = $2");
    let row = sqlx::query(sqlx::AssertSqlSafe(query))
        .bind(pair.from.get())
        .bind(pair.to.get())
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
    row.map(|row| {
        Ok(Stands { active: row.try_get("active").map_err(failed)?, version: row.try_get("version").map_err(failed)? })
    })
    .transpose()
}

/// Whether a pair is so.
pub(super) async fn is_so(change: &mut Change, pairs: Pairs, pair: Pair) -> Result<bool, Error> {
    Ok(stands(change, pairs, pair).await?.is_some_and(|row| row.active))
}
