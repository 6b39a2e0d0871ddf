//! Dead letters, as consumers put them aside and drive them again. Everything that decides by other letters of a key is alone
//! on the table: it is rare, and so a letter never waits behind one that is gone.

use async_trait::async_trait;
use proto::event::Topic;
use sqlx::Row as _;

use super::{Change, Row, STORE, SqlLedger, failed, letter_orders, row::number};
use crate::{
    Error, Shard,
    error::damaged,
    event_log::{Lane, Received, Record},
    ledger::{
        DeadLetters,
        dead_letters::{Alike, AuditLine, Cause, DeadLetter, Filter, NewLetter, Ordered, PARKED_KEYS_MAX},
    },
};

pub(super) const COLUMNS: &str = "id, consumer_group, topic, shard, position, key, type, payload, traceparent, epoch, \
                                  logged_at_ms, cause, error, attempts, pod, release, buried_at_ms, redrive";
const RELEASE: &str = env!("CARGO_PKG_VERSION");

#[async_trait]
impl DeadLetters for SqlLedger {
    async fn bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        self.retried(|| self.try_bury(letter)).await
    }

    async fn park(&self, letter: &NewLetter<'_>) -> Result<bool, Error> {
        self.retried(|| self.try_park(letter)).await
    }

    async fn parked_keys(&self, group: &str, lane: Lane) -> Result<Vec<String>, Error> {
        let query = sqlx::query_scalar(
            "SELECT DISTINCT key FROM dead_letters WHERE consumer_group = $1 AND topic = $2 AND shard = $3 LIMIT $4",
        )
        .bind(group.to_owned())
        .bind(lane.topic.name())
        .bind(i64::from(lane.shard.0))
        .bind(i64::try_from(PARKED_KEYS_MAX + 1).unwrap_or(i64::MAX));
        self.answered(query.fetch_all(self.reader())).await
    }

    async fn lanes_to_redrive(&self, group: &str) -> Result<Vec<Lane>, Error> {
        let query = sqlx::query("SELECT DISTINCT topic, shard FROM dead_letters WHERE consumer_group = $1 AND redrive")
            .bind(group.to_owned());
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| Ok(Lane { topic: topic(row)?, shard: Shard(number(row, "shard")?) })).collect()
    }

    async fn to_redrive(&self, group: &str, lane: Lane, limit: u32) -> Result<Vec<DeadLetter>, Error> {
        let query = format!(
            "SELECT {COLUMNS} FROM dead_letters AS letter \
             WHERE consumer_group = $1 AND topic = $2 AND shard = $3 AND redrive AND NOT EXISTS (SELECT 1 \
                 FROM dead_letters AS earlier WHERE earlier.consumer_group = letter.consumer_group \
                     AND earlier.topic = letter.topic AND earlier.key = letter.key \
                     AND earlier.position < letter.position AND NOT earlier.redrive) \
             ORDER BY position LIMIT $4"
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(query))
            .bind(group.to_owned())
            .bind(lane.topic.name())
            .bind(i64::from(lane.shard.0))
            .bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(letter).collect()
    }

    async fn resolve(&self, id: i64) -> Result<(), Error> {
        let resolve = || async {
            let query = sqlx::query("DELETE FROM dead_letters WHERE id = $1").bind(id);
            query.execute(self.writer()).await.map(|_| ()).map_err(failed)
        };
        self.retried(resolve).await
    }

    async fn keep(&self, letter: &DeadLetter, cause: Cause, error: &str, pod: &str) -> Result<(), Error> {
        self.retried(|| self.try_keep_letter(letter, cause, error, pod)).await
    }

    async fn redrive_known(&self, group: &str, lane: Lane, kinds: &[&str]) -> Result<u64, Error> {
        self.retried(|| self.try_redrive_known(group, lane, kinds)).await
    }

    async fn page(&self, filter: &Filter, after: i64, limit: u32) -> Result<Vec<DeadLetter>, Error> {
        let mut query = sqlx::QueryBuilder::new(format!("SELECT {COLUMNS} FROM dead_letters WHERE id > "));
        query.push_bind(after);
        letter_orders::push_filter(&mut query, "", filter);
        query.push(" ORDER BY id LIMIT ").push_bind(i64::from(limit));
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(letter).collect()
    }

    async fn count(&self, filter: &Filter) -> Result<(u64, u64), Error> {
        self.count_letters(filter).await
    }

    async fn alike(&self, filter: &Filter, limit: u32) -> Result<Vec<Alike>, Error> {
        self.letters_alike(filter, limit).await
    }

    async fn redrive(&self, filter: &Filter, who: &str) -> Result<Ordered, Error> {
        self.order_redrive(filter, who).await
    }

    async fn discard(&self, filter: &Filter, who: &str) -> Result<Ordered, Error> {
        self.order_discard(filter, who).await
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditLine>, Error> {
        let query = sqlx::query("SELECT at_ms, who, what FROM audit ORDER BY id DESC LIMIT $1").bind(i64::from(limit));
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        let line = |row: &Row| {
            Ok(AuditLine {
                at_ms: row.try_get("at_ms").map_err(failed)?,
                who: row.try_get("who").map_err(failed)?,
                what: row.try_get("what").map_err(failed)?,
            })
        };
        rows.iter().map(line).collect()
    }
}

impl SqlLedger {
    async fn try_bury(&self, letter: &NewLetter<'_>) -> Result<(), Error> {
        let mut change = self.begin_alone_on("dead_letters").await?;
        insert(&mut change, letter, false).await?;
        self.commit(change).await
    }

    async fn try_park(&self, letter: &NewLetter<'_>) -> Result<bool, Error> {
        let mut change = self.begin_alone_on("dead_letters").await?;
        let record = &letter.event.record;
        // Whether it follows any, and whether it follows some that are on their way: then it goes with them.
        let (earlier, redriven): (i64, i64) = sqlx::query_as(
            "SELECT count(*), coalesce(sum(CASE WHEN redrive THEN 1 ELSE 0 END), 0) FROM (SELECT redrive \
                 FROM dead_letters WHERE consumer_group = $1 AND topic = $2 AND key = $3) AS of_key",
        )
        .bind(letter.group)
        .bind(record.topic.name())
        .bind(&record.key)
        .fetch_one(&mut *change.transaction)
        .await
        .map_err(failed)?;
        if earlier == 0 {
            return Ok(false);
        }
        insert(&mut change, letter, redriven > 0).await?;
        self.commit(change).await?;
        Ok(true)
    }

    async fn try_keep_letter(&self, letter: &DeadLetter, cause: Cause, error: &str, pod: &str) -> Result<(), Error> {
        let mut change = self.begin_alone_on("dead_letters").await?;
        sqlx::query("UPDATE dead_letters SET redrive = FALSE WHERE consumer_group = $1 AND topic = $2 AND key = $3")
            .bind(&letter.group)
            .bind(letter.event.record.topic.name())
            .bind(&letter.event.record.key)
            .execute(&mut *change.transaction)
            .await
            .map_err(failed)?;
        sqlx::query(
            "UPDATE dead_letters SET cause = $1, error = $2, pod = $3, release = $4, attempts = attempts + 1 \
             WHERE id = $5",
        )
        .bind(cause.name())
        .bind(error)
        .bind(pod)
        .bind(RELEASE)
        .bind(letter.id)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        self.commit(change).await
    }
}

async fn insert(change: &mut Change, letter: &NewLetter<'_>, redrive: bool) -> Result<(), Error> {
    let record = &letter.event.record;
    sqlx::query(
        "INSERT INTO dead_letters (consumer_group, topic, shard, position, key, type, payload, traceparent, epoch, \
             logged_at_ms, cause, error, attempts, pod, release, buried_at_ms, redrive) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) \
         ON CONFLICT (consumer_group, topic, shard, position) DO NOTHING",
    )
    .bind(letter.group)
    .bind(record.topic.name())
    .bind(i64::from(record.partition.0))
    .bind(letter.event.position)
    .bind(&record.key)
    .bind(&record.kind)
    .bind(record.payload.as_ref())
    .bind(&record.traceparent)
    .bind(record.epoch)
    .bind(letter.event.logged_at_ms)
    .bind(letter.cause.name())
    .bind(&letter.error)
    .bind(i64::from(letter.attempts))
    .bind(letter.pod)
    .bind(RELEASE)
    .bind(change.now_us.div_euclid(1000))
    .bind(redrive)
    .execute(&mut *change.transaction)
    .await
    .map_err(failed)?;
    Ok(())
}

fn topic(row: &Row) -> Result<Topic, Error> {
    let name: &str = row.try_get("topic").map_err(failed)?;
    Topic::named(name).ok_or_else(|| damaged(STORE, format_args!("topic {name:?}")))
}

pub(super) fn letter(row: &Row) -> Result<DeadLetter, Error> {
    let cause: &str = row.try_get("cause").map_err(failed)?;
    let record = Record {
        topic: topic(row)?,
        partition: Shard(number(row, "shard")?),
        key: row.try_get("key").map_err(failed)?,
        kind: row.try_get("type").map_err(failed)?,
        payload: row.try_get::<Vec<u8>, _>("payload").map_err(failed)?.into(),
        traceparent: row.try_get("traceparent").map_err(failed)?,
        epoch: row.try_get("epoch").map_err(failed)?,
    };
    let (position, logged_at_ms) =
        (row.try_get("position").map_err(failed)?, row.try_get("logged_at_ms").map_err(failed)?);
    Ok(DeadLetter {
        id: row.try_get("id").map_err(failed)?,
        group: row.try_get("consumer_group").map_err(failed)?,
        event: Received { record, position, logged_at_ms },
        cause: Cause::named(cause).ok_or_else(|| damaged(STORE, format_args!("cause {cause:?}")))?,
        error: row.try_get("error").map_err(failed)?,
        attempts: number(row, "attempts")?,
        pod: row.try_get("pod").map_err(failed)?,
        release: row.try_get("release").map_err(failed)?,
        buried_at_ms: row.try_get("buried_at_ms").map_err(failed)?,
        redrive: row.try_get("redrive").map_err(failed)?,
    })
}
