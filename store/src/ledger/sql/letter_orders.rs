//! What operators order about dead letters: in steps of a bearable size, each alone on the table, the first of which notes in
//! the audit who ordered what. Whoever dies in between orders the same again.

use sqlx::{QueryBuilder, Row as _};

use super::{Change, Driver, Row, SqlLedger, failed, push_is_one_of};
use crate::{
    Error,
    event_log::Lane,
    ledger::dead_letters::{Alike, Cause, Filter, Ordered},
};

/// Letters a step: it is done well within a transaction's time.
const STEP_LETTERS: i64 = 1000;

impl SqlLedger {
    pub(super) async fn count_letters(&self, filter: &Filter) -> Result<(u64, u64), Error> {
        let mut query = QueryBuilder::new(
            "SELECT count(*) AS letters, coalesce(sum(CASE WHEN redrive THEN 1 ELSE 0 END), 0) AS redriven \
             FROM dead_letters WHERE TRUE",
        );
        push_filter(&mut query, "", filter);
        let row = self.answered(query.build().fetch_one(self.reader())).await?;
        let number = |column| row.try_get::<i64, _>(column).map(i64::unsigned_abs).map_err(failed);
        Ok((number("letters")?, number("redriven")?))
    }

    pub(super) async fn letters_alike(&self, filter: &Filter, limit: u32) -> Result<Vec<Alike>, Error> {
        // What waits behind another has a reason of its own only by that other's number.
        let mut query = QueryBuilder::new(
            "SELECT consumer_group, topic, type, cause, min(error) AS error, count(*) AS letters, \
                 min(buried_at_ms) AS first_at_ms, max(buried_at_ms) AS last_at_ms FROM dead_letters WHERE TRUE",
        );
        push_filter(&mut query, "", filter);
        query.push(
            " GROUP BY consumer_group, topic, type, cause, CASE WHEN cause = 'parked' THEN '' ELSE error END \
             ORDER BY letters DESC, consumer_group, topic, type, cause LIMIT ",
        );
        query.push_bind(i64::from(limit));
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(alike).collect()
    }

    pub(super) async fn order_redrive(&self, filter: &Filter, who: &str) -> Result<Ordered, Error> {
        let (matched, _) = self.count_letters(filter).await?;
        self.write_audit(who, format!("redrive {filter}: {matched} letters")).await?;
        while self.retried(|| self.try_return_refused(filter)).await? > 0 {}
        let mut ordered = 0;
        loop {
            match self.retried(|| self.try_flag(filter)).await? {
                0 => break,
                flagged => ordered += flagged,
            }
        }
        Ok(Ordered { matched, followers: ordered.saturating_sub(matched) })
    }

    pub(super) async fn order_discard(&self, filter: &Filter, who: &str) -> Result<Ordered, Error> {
        let (matched, _) = self.count_letters(filter).await?;
        self.write_audit(who, format!("discard {filter}: {matched} letters")).await?;
        let mut ordered = Ordered::default();
        loop {
            let (discarded, followers) = self.retried(|| self.try_discard(filter)).await?;
            ordered.matched += discarded;
            ordered.followers += followers;
            if discarded == 0 {
                return Ok(ordered);
            }
        }
    }

    async fn write_audit(&self, who: &str, what: String) -> Result<(), Error> {
        let write = || async {
            let mut change = self.begin().await?;
            sqlx::query("INSERT INTO audit (at_ms, who, what) VALUES ($1, $2, $3)")
                .bind(change.now_us.div_euclid(1000))
                .bind(who)
                .bind(&what)
                .execute(&mut *change.transaction)
                .await
                .map_err(failed)?;
            self.commit(change).await
        };
        self.retried(write).await
    }

    /// What the event log refused goes back to the outbox, at its end.
    async fn try_return_refused(&self, filter: &Filter) -> Result<u64, Error> {
        let mut change = self.begin_alone_on("dead_letters").await?;
        let mut query = QueryBuilder::new("SELECT id FROM dead_letters WHERE consumer_group = ''");
        push_filter(&mut query, "", filter);
        query.push(" ORDER BY id LIMIT ").push_bind(STEP_LETTERS);
        let ids = fetch_ids(&mut change, query).await?;
        if ids.is_empty() {
            return Ok(0);
        }
        let mut query = QueryBuilder::new(
            "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
             SELECT shard, topic, key, type, payload, traceparent, ",
        );
        query.push_bind(change.now_us.div_euclid(1000)).push(" FROM dead_letters WHERE id");
        push_is_one_of(&mut query, ids.clone());
        query.push(" ORDER BY id");
        query.build().execute(&mut *change.transaction).await.map_err(failed)?;
        let returned = delete(&mut change, ids).await?;
        change.events += usize::try_from(returned).unwrap_or(usize::MAX);
        self.commit(change).await?;
        Ok(returned)
    }

    /// Flags the next letters of the keys that the filter names, the first of each key first.
    async fn try_flag(&self, filter: &Filter) -> Result<u64, Error> {
        let mut change = self.begin_alone_on("dead_letters").await?;
        let mut query = QueryBuilder::new(
            "UPDATE dead_letters SET redrive = TRUE WHERE id IN (SELECT letter.id FROM dead_letters AS letter \
             WHERE NOT letter.redrive AND letter.consumer_group <> '' AND EXISTS (SELECT 1 FROM dead_letters AS named \
             WHERE named.consumer_group = letter.consumer_group AND named.topic = letter.topic AND named.key = letter.key",
        );
        push_filter(&mut query, "named.", filter);
        query.push(") ORDER BY letter.id LIMIT ").push_bind(STEP_LETTERS).push(")");
        let flagged = query.build().execute(&mut *change.transaction).await.map_err(failed)?.rows_affected();
        self.commit(change).await?;
        Ok(flagged)
    }

    async fn try_discard(&self, filter: &Filter) -> Result<(u64, u64), Error> {
        let mut change = self.begin_alone_on("dead_letters").await?;
        let mut query = QueryBuilder::new("SELECT id FROM dead_letters WHERE TRUE");
        push_filter(&mut query, "", filter);
        query.push(" ORDER BY id LIMIT ").push_bind(STEP_LETTERS);
        let ids = fetch_ids(&mut change, query).await?;
        if ids.is_empty() {
            return Ok((0, 0));
        }
        let discarded = delete(&mut change, ids).await?;
        // What waits behind nothing any more goes on.
        let followers = sqlx::query(
            "UPDATE dead_letters SET redrive = TRUE WHERE NOT redrive AND cause = 'parked' AND NOT EXISTS (SELECT 1 \
                 FROM dead_letters AS earlier WHERE earlier.consumer_group = dead_letters.consumer_group \
                     AND earlier.topic = dead_letters.topic AND earlier.key = dead_letters.key \
                     AND earlier.position < dead_letters.position AND earlier.cause <> 'parked')",
        )
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?
        .rows_affected();
        self.commit(change).await?;
        Ok((discarded, followers))
    }

    pub(super) async fn try_redrive_known(&self, group: &str, lane: Lane, kinds: &[&str]) -> Result<u64, Error> {
        let mut ordered = 0;
        let mut change = self.begin_alone_on("dead_letters").await?;
        for kind in kinds {
            ordered += sqlx::query(
                "UPDATE dead_letters SET redrive = TRUE WHERE NOT redrive AND consumer_group = $1 AND topic = $2 \
                 AND key IN (SELECT key FROM dead_letters WHERE consumer_group = $1 AND topic = $2 AND shard = $3 \
                     AND cause = $4 AND type = $5)",
            )
            .bind(group)
            .bind(lane.topic.name())
            .bind(i64::from(lane.shard.0))
            .bind(Cause::UnknownType.name())
            .bind(*kind)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?
            .rows_affected();
        }
        self.commit(change).await?;
        Ok(ordered)
    }
}

async fn fetch_ids(change: &mut Change, mut query: QueryBuilder<Driver>) -> Result<Vec<i64>, Error> {
    query.build_query_scalar().fetch_all(&mut *change.transaction).await.map_err(failed)
}

async fn delete(change: &mut Change, ids: Vec<i64>) -> Result<u64, Error> {
    let mut query = QueryBuilder::new("DELETE FROM dead_letters WHERE id");
    push_is_one_of(&mut query, ids);
    Ok(query.build().execute(&mut *change.transaction).await.map_err(failed)?.rows_affected())
}

/// Goes on with ` AND …` for each thing that the filter says, about the columns with this prefix.
pub(super) fn push_filter(query: &mut QueryBuilder<Driver>, prefix: &str, filter: &Filter) {
    if let Some(ids) = &filter.ids {
        query.push(format!(" AND {prefix}id"));
        push_is_one_of(query, ids.clone());
    }
    let texts = [
        ("consumer_group", filter.group.clone()),
        ("topic", filter.topic.map(|topic| topic.name().to_owned())),
        ("type", filter.kind.clone()),
        ("key", filter.key.clone()),
        ("cause", filter.cause.map(|cause| cause.name().to_owned())),
    ];
    for (column, text) in texts {
        if let Some(text) = text {
            query.push(format!(" AND {prefix}{column} = ")).push_bind(text);
        }
    }
    if let Some(part) = filter.error.clone().filter(|part| !part.is_empty()) {
        // It contains what taking out changes: LIKE would mean something else on each database.
        query.push(format!(" AND replace({prefix}error, ")).push_bind(part).push(format!(", '') <> {prefix}error"));
    }
    if let Some(before) = filter.buried_before_ms {
        query.push(format!(" AND {prefix}buried_at_ms < ")).push_bind(before);
    }
    if let Some(from) = filter.buried_from_ms {
        query.push(format!(" AND {prefix}buried_at_ms >= ")).push_bind(from);
    }
}

fn alike(row: &Row) -> Result<Alike, Error> {
    let text = |column| row.try_get::<String, _>(column).map_err(failed);
    let number = |column| row.try_get::<i64, _>(column).map_err(failed);
    Ok(Alike {
        group: text("consumer_group")?,
        topic: text("topic")?,
        kind: text("type")?,
        cause: text("cause")?,
        error: text("error")?,
        letters: number("letters")?.unsigned_abs(),
        first_at_ms: number("first_at_ms")?,
        last_at_ms: number("last_at_ms")?,
    })
}
