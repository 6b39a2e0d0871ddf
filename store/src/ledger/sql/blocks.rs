//! Who blocks whom, and who mutes whom.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{
    SqlLedger,
    accounts::require_users,
    counters::lock_both,
    failed,
    pairs::{BLOCKS, FOLLOWS, MUTES, Pairs, Stands, stands},
};
use crate::{
    Error,
    ledger::{BlockOutcome, Blocks, Event, FollowLimits, GraphChange, Mutes, Outcome, Pair},
};

#[async_trait]
impl Blocks for SqlLedger {
    async fn block(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 5],
    ) -> Result<BlockOutcome, Error> {
        self.retried(|| self.try_block(pair, limits, &events)).await
    }

    async fn unblock(&self, pair: Pair, event: Event<'_, GraphChange>) -> Result<Outcome, Error> {
        self.retried(|| self.try_end(BLOCKS, pair, (&event, GraphChange::Unblocked(pair)))).await
    }
}

#[async_trait]
impl Mutes for SqlLedger {
    async fn mute(&self, pair: Pair, until_ms: Option<i64>, event: Event<'_, GraphChange>) -> Result<Outcome, Error> {
        self.retried(|| self.try_mute(pair, until_ms, &event)).await
    }

    async fn unmute(&self, pair: Pair, event: Event<'_, GraphChange>) -> Result<Outcome, Error> {
        self.retried(|| self.try_end(MUTES, pair, (&event, GraphChange::Unmuted(pair)))).await
    }
}

impl SqlLedger {
    /// Under the lock of both: a follow at the same moment is either there to be ended, or sees the block.
    async fn try_block(
        &self,
        pair: Pair,
        limits: FollowLimits,
        [event, ended, ended_by_other, crossed, other_crossed]: &[Event<'_, GraphChange>; 5],
    ) -> Result<BlockOutcome, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [pair.from, pair.to]).await?;
        lock_both(&mut change, pair).await?;
        let began = self.activate(&mut change, BLOCKS, pair, (event, GraphChange::Blocked(pair))).await?;
        if began.is_some() {
            self.end_follow(&mut change, pair, limits, [ended, crossed]).await?;
            let events = [ended_by_other, other_crossed];
            self.end_follow(&mut change, pair.reversed(), limits, events).await?;
        }
        let version = match began {
            Some(version) => Some(version),
            None => stands(&mut change, BLOCKS, pair).await?.map(|row| row.version),
        };
        let mut ends = [None; 2];
        for (end, pair) in ends.iter_mut().zip([pair, pair.reversed()]) {
            *end = Stands::ended(stands(&mut change, FOLLOWS, pair).await?).version;
        }
        self.commit(change).await?;
        Ok(BlockOutcome { version: version.unwrap_or_default(), ended: ends, changed: began.is_some() })
    }

    /// Ends what no follow depends on.
    async fn try_end(
        &self,
        pairs: Pairs,
        pair: Pair,
        event: (&Event<'_, GraphChange>, GraphChange),
    ) -> Result<Outcome, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [pair.from, pair.to]).await?;
        let Some(version) = self.end(&mut change, pairs, pair, event).await? else {
            return Ok(Stands::ended(stands(&mut change, pairs, pair).await?));
        };
        self.commit(change).await?;
        Ok(Outcome { version: Some(version), changed: true })
    }

    async fn try_mute(
        &self,
        pair: Pair,
        until_ms: Option<i64>,
        event: &Event<'_, GraphChange>,
    ) -> Result<Outcome, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [pair.from, pair.to]).await?;
        let muted = sqlx::query(
            "INSERT INTO mutes (muter, muted, active, until_ms, version) VALUES ($1, $2, TRUE, $3, $4) \
             ON CONFLICT (muter, muted) DO UPDATE SET active = TRUE, until_ms = excluded.until_ms, version = \
                 CASE WHEN mutes.version < excluded.version THEN excluded.version ELSE mutes.version + 1 END \
             WHERE NOT mutes.active OR mutes.until_ms IS DISTINCT FROM excluded.until_ms RETURNING version",
        )
        .bind(pair.from.get())
        .bind(pair.to.get())
        .bind(until_ms)
        .bind(change.now_us)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let Some(muted) = muted else {
            let version = stands(&mut change, MUTES, pair).await?.map(|row| row.version);
            return Ok(Outcome { version, changed: false });
        };
        let version = muted.try_get("version").map_err(failed)?;
        self.write_event(&mut change, event, version, &GraphChange::Muted(pair, until_ms)).await?;
        self.commit(change).await?;
        Ok(Outcome { version: Some(version), changed: true })
    }
}
