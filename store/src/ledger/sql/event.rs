//! Events, written with the change that they tell of.

use chassis::trace;
use prost::Message as _;
use proto::freshet::event::v1::Envelope;

use super::{Change, STORE, SqlLedger, failed};
use crate::{
    Error, Shard,
    ledger::{EVENT_AGE_MAX_MS, Event},
};

impl SqlLedger {
    /// The one place where events are written: into the outbox, in the transaction of the change that they tell of.
    pub(super) async fn write_event<Row: Sync>(
        &self,
        change: &mut Change,
        event: &Event<'_, Row>,
        version: i64,
        row: &Row,
    ) -> Result<(), Error> {
        let began_at_ms = change.now_us.div_euclid(1000);
        let age_ms = began_at_ms - event.id.unix_ms();
        if age_ms > EVENT_AGE_MAX_MS {
            let cause = format!("the ids of this change are {age_ms} ms old, its pod was frozen or its clock is slow");
            return Err(Error::Unavailable { store: STORE, cause });
        }
        let payload = (event.compose)(row);
        let topic = payload.topic();
        let envelope = Envelope::new(event.id, began_at_ms, version, payload);
        sqlx::query(
            "INSERT INTO outbox (shard, topic, key, type, payload, traceparent, created_at_ms) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(i64::from(Shard::of(&envelope.key, self.shards).0))
        .bind(topic.name())
        .bind(&envelope.key)
        .bind(&envelope.r#type)
        .bind(envelope.encode_to_vec())
        .bind(trace::current())
        .bind(began_at_ms)
        .execute(&mut *change.transaction)
        .await
        .map_err(failed)?;
        change.events += 1;
        Ok(())
    }
}
