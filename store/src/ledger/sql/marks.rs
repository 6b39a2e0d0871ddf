//! How far each shard is settled.
//!
//! The question is which ids can still come up in a shard. An event's ids are minted just before its change, and the ledger
//! refuses a change whose event is older than [`EVENT_AGE_MAX_MS`] when it begins. So a change brings up no id from before
//! its beginning less that age, and a look at the ledger finds
//! - changes that have not begun: they will begin after the look, whose time is therefore a bound;
//! - open changes: they began at the start of the oldest one or later;
//! - rows that wait: the first in order was inserted before the others, though not begun before them. A change that inserts
//!   later began at most its life, [`CHANGE_MAX`], before that.
//!
//! All else is out of the outbox, which it leaves only when the log has it or as a dead letter.

use sqlx::{QueryBuilder, Row as _};

use super::{Row, SqlLedger, failed, row::number};
use crate::{
    Error, Shard,
    ledger::{CHANGE_MAX, EVENT_AGE_MAX_MS, Lease},
};

/// So long ago is settled at the latest. More than the age of an event, so that a moment's changes hold nothing up.
const SETTLED_AFTER_MS: i64 = 10_000;
const _: () = assert!(EVENT_AGE_MAX_MS < SETTLED_AFTER_MS);

impl SqlLedger {
    pub(super) async fn try_marks(&self, leases: &[Lease]) -> Result<Vec<(Shard, i64)>, Error> {
        let mut look = self.look().await?;
        // Where the rows of each shard begin; known after the look, which knows whether it still holds.
        let mut query = QueryBuilder::new("WITH shards (shard, head) AS (");
        query.push_values(self.heads.all(self.shards).into_iter().zip(0_i64..), |mut row, (head, shard)| {
            row.push_bind(shard).push_bind(head);
        });
        query.push(
            ") SELECT shards.shard, held.owner, held.epoch, (SELECT created_at_ms FROM outbox \
                 WHERE outbox.shard = shards.shard AND id >= head ORDER BY id LIMIT 1) AS first_at_ms \
             FROM shards JOIN shard_leases AS held ON held.shard = shards.shard WHERE held.expires_us > ",
        );
        query.push_bind(look.now_us).push(" ORDER BY shards.shard");
        let rows = query.build().fetch_all(&mut *look.connection).await.map_err(failed)?;
        let mut marks = Vec::with_capacity(leases.len());
        for row in &rows {
            let held = held(row)?;
            if leases.contains(&held) {
                let first_at_ms = row.try_get("first_at_ms").map_err(failed)?;
                marks.push((held.shard, settled_ms(look.now_us, look.open_since_us, first_at_ms)));
            }
        }
        Ok(marks)
    }
}

fn held(row: &Row) -> Result<Lease, Error> {
    Ok(Lease {
        shard: Shard(number(row, "shard")?),
        owner: row.try_get("owner").map_err(failed)?,
        epoch: row.try_get("epoch").map_err(failed)?,
    })
}

/// The last millisecond of which no id can still come up.
fn settled_ms(now_us: i64, open_since_us: Option<i64>, first_row_at_ms: Option<i64>) -> i64 {
    let life_ms = i64::try_from(CHANGE_MAX.as_millis()).unwrap_or(i64::MAX / 2);
    let open = open_since_us.map(|since| since.div_euclid(1000) - EVENT_AGE_MAX_MS - 1);
    let first_row = first_row_at_ms.map(|at| at - life_ms - EVENT_AGE_MAX_MS - 1);
    let now = now_us.div_euclid(1000) - SETTLED_AFTER_MS;
    [open, first_row].into_iter().flatten().fold(now, i64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_bound_counts() {
        let now_us = 1_000_000_000_000;
        assert_eq!(settled_ms(now_us, None, None), 999_990_000);
        // Young changes and rows hold nothing up, old ones do.
        assert_eq!(settled_ms(now_us, Some(now_us - 1_000_000), None), 999_990_000);
        assert_eq!(settled_ms(now_us, Some(now_us - 4_000_000), None), 999_988_999);
        assert_eq!(settled_ms(now_us, None, Some(999_999_000)), 999_986_999);
        assert_eq!(settled_ms(now_us, Some(now_us - 4_000_000), Some(0)), -12_001);
    }
}
