//! What people are to each other, read.

use async_trait::async_trait;
use proto::UserId;
use sqlx::{QueryBuilder, Row as _};

use super::{Row, SqlLedger, failed, push_is_one_of, row::number};
use crate::{
    Error,
    ledger::{Counters, List, Listed, Place, Relations, Relationship},
    sets::{AuthorState, Special},
};

/// For how long a follow that ended is told of: far longer than a push that began before it may take.
const ENDED_OF_LATE_US: i64 = 60 * 60 * 1_000_000;

/// Whoever is gone is in no list and has none, from the deletion on.
const GONE: &str = "NOT EXISTS (SELECT 1 FROM accounts WHERE deleted_at_ms IS NOT NULL AND id";

#[async_trait]
impl Relations for SqlLedger {
    async fn list(&self, list: List, owner: UserId, below: Option<Place>, limit: u32) -> Result<Vec<Listed>, Error> {
        let (table, own, other) = columns(list);
        let until = if list == List::Mutes { "until_ms" } else { "CAST(NULL AS BIGINT)" };
        let in_time = if list == List::Mutes { "AND (until_ms IS NULL OR until_ms > $5)" } else { "" };
        // By the index of the list alone, from the place on: the length of the list does not matter.
        let query = format!(
            "SELECT {other} AS other, version, {until} AS until_ms FROM {table} WHERE {own} = $1 AND active \
             AND (version, {other}) < ($2, $3) {in_time} AND {GONE} IN ($1, {other})) ORDER BY version DESC, {other} DESC LIMIT $4"
        );
        let (version, user) = below.map_or((i64::MAX, i64::MAX), |place| (place.version, place.user.get()));
        let query = sqlx::query(sqlx::AssertSqlSafe(query));
        let mut query = query.bind(owner.get()).bind(version).bind(user).bind(i64::from(limit));
        if list == List::Mutes {
            query = query.bind(self.now_us().await?.div_euclid(1000));
        }
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        let listed = |row: &Row| {
            let place = Place { version: row.try_get("version").map_err(failed)?, user: number(row, "other")? };
            Ok(Listed { place, until_ms: row.try_get("until_ms").map_err(failed)? })
        };
        rows.iter().map(listed).collect()
    }

    async fn relationships(&self, person: UserId, others: &[UserId]) -> Result<Vec<Relationship>, Error> {
        if others.is_empty() {
            return Ok(Vec::new());
        }
        let now_ms = self.now_us().await?.div_euclid(1000);
        let mut query = QueryBuilder::new("SELECT id, private, mutes.until_ms AS until_ms");
        let joins = [
            ("following", "follows", "follower", "followee"),
            ("followed_by", "follows", "followee", "follower"),
            ("requested", "follow_requests", "requester", "target"),
            ("requested_by", "follow_requests", "target", "requester"),
            ("blocking", "blocks", "blocker", "blocked"),
            ("blocked_by", "blocks", "blocked", "blocker"),
            ("muting", "mutes", "muter", "muted"),
        ];
        for (name, ..) in joins {
            let table = if name == "muting" { "mutes" } else { name };
            query.push(format!(", {table}.version IS NOT NULL AS is_{name}"));
        }
        query.push(" FROM accounts");
        for (name, table, own, other) in joins {
            let name = if name == "muting" { "mutes" } else { name };
            query.push(format!(
                " LEFT JOIN {table} AS {name} ON {name}.{other} = id AND {name}.active AND {name}.{own} = "
            ));
            query.push_bind(person.get());
        }
        query.push(" AND (mutes.until_ms IS NULL OR mutes.until_ms > ").push_bind(now_ms).push(") WHERE ");
        query.push(GONE).push(" = ").push_bind(person.get()).push(") AND deleted_at_ms IS NULL AND id");
        push_is_one_of(&mut query, others.iter().map(|other| other.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(relationship).collect()
    }

    async fn counters(&self, users: &[UserId]) -> Result<Vec<Counters>, Error> {
        if users.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(
            "SELECT user_id, followers, following, posts, private FROM user_counters JOIN accounts ON id = user_id \
             WHERE user_id",
        );
        push_is_one_of(&mut query, users.iter().map(|user| user.get()).collect());
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        let counters = |row: &Row| {
            Ok(Counters {
                user: number(row, "user_id")?,
                followers: number(row, "followers")?,
                following: number(row, "following")?,
                posts: number(row, "posts")?,
                private: row.try_get("private").map_err(failed)?,
            })
        };
        rows.iter().map(counters).collect()
    }

    async fn hidden(&self, reader: UserId) -> Result<Vec<AuthorState>, Error> {
        let now_us = self.now_us().await?;
        // One statement, and so one moment.
        let query = sqlx::query(
            "SELECT blocked AS author, CAST(1 AS BIGINT) AS way, CAST(NULL AS BIGINT) AS until_ms, version FROM blocks \
                 WHERE blocker = $1 AND active \
             UNION ALL SELECT blocker, 2, NULL, version FROM blocks WHERE blocked = $1 AND active \
             UNION ALL SELECT muted, 3, until_ms, version FROM mutes \
                 WHERE muter = $1 AND active AND (until_ms IS NULL OR until_ms > $2) \
             UNION ALL SELECT followee, 4, NULL, version FROM follows \
                 WHERE follower = $1 AND NOT active AND version > $3",
        )
        .bind(reader.get())
        .bind(now_us.div_euclid(1000))
        .bind(now_us - ENDED_OF_LATE_US);
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(state).collect()
    }
}

/// A list's table, the column of its owner, and that of who is in it.
const fn columns(list: List) -> (&'static str, &'static str, &'static str) {
    match list {
        List::Following => ("follows", "follower", "followee"),
        List::Followers => ("follows", "followee", "follower"),
        List::Blocks => ("blocks", "blocker", "blocked"),
        List::Mutes => ("mutes", "muter", "muted"),
        List::FollowRequests => ("follow_requests", "target", "requester"),
    }
}

fn relationship(row: &Row) -> Result<Relationship, Error> {
    let is = |column: &str| row.try_get::<bool, _>(column).map_err(failed);
    Ok(Relationship {
        other: number(row, "id")?,
        private: is("private")?,
        following: is("is_following")?,
        followed_by: is("is_followed_by")?,
        requested: is("is_requested")?,
        requested_by: is("is_requested_by")?,
        blocking: is("is_blocking")?,
        blocked_by: is("is_blocked_by")?,
        muting: is("is_muting")?,
        muted_until_ms: row.try_get("until_ms").map_err(failed)?,
    })
}

fn state(row: &Row) -> Result<AuthorState, Error> {
    let special = match number::<i64>(row, "way")? {
        1 => Special::Blocked,
        2 => Special::BlockedBy,
        3 => Special::Muted,
        _ => Special::Unfollowed,
    };
    let until_ms: Option<i64> = row.try_get("until_ms").map_err(failed)?;
    Ok(AuthorState {
        author: number(row, "author")?,
        special,
        until_ms: until_ms.unwrap_or(AuthorState::FOR_GOOD),
        version: row.try_get("version").map_err(failed)?,
    })
}
