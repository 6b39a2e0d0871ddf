//! Private accounts, and who asks to follow them.

use async_trait::async_trait;
use proto::UserId;

use super::{
    SqlLedger,
    accounts::require_users,
    counters::lock_both,
    failed,
    pairs::{FOLLOWS, REQUESTS, is_so},
};
use crate::{
    Error,
    ledger::{Event, FollowLimits, FollowOutcome, FollowRequests, GraphChange, Pair, Wish},
};

#[async_trait]
impl FollowRequests for SqlLedger {
    async fn set_private(&self, user: UserId, private: bool, event: Event<'_, bool>) -> Result<bool, Error> {
        self.retried(|| self.try_set_private(user, private, &event)).await
    }

    async fn accept(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 3],
    ) -> Result<FollowOutcome, Error> {
        self.retried(|| self.try_accept(pair, limits, &events)).await
    }

    async fn reject(&self, pair: Pair, event: Event<'_, GraphChange>) -> Result<bool, Error> {
        self.retried(|| self.try_reject(pair, &event)).await
    }
}

impl SqlLedger {
    /// Under the lock of the person: a follow at the same moment is made before it, or asks.
    async fn try_set_private(&self, user: UserId, private: bool, event: &Event<'_, bool>) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [user; 2]).await?;
        lock_both(&mut change, Pair { from: user, to: user }).await?;
        let version: Option<i64> = sqlx::query_scalar(
            "UPDATE accounts SET private = $2, version = CASE WHEN version < $3 THEN $3 ELSE version + 1 END \
             WHERE id = $1 AND private <> $2 RETURNING version",
        )
        .bind(user.get())
        .bind(private)
        .bind(change.now_us)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let Some(version) = version else { return Ok(false) };
        self.write_event(&mut change, event, version, &private).await?;
        self.commit(change).await?;
        Ok(true)
    }

    async fn try_accept(
        &self,
        pair: Pair,
        limits: FollowLimits,
        [accepted, followed, crossed]: &[Event<'_, GraphChange>; 3],
    ) -> Result<FollowOutcome, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [pair.from, pair.to]).await?;
        lock_both(&mut change, pair).await?;
        let ended = self.end(&mut change, REQUESTS, pair, (accepted, GraphChange::Accepted(pair))).await?;
        if ended.is_none() {
            return match is_so(&mut change, FOLLOWS, pair).await? {
                true => Ok(FollowOutcome { wish: Wish::Follows, changed: false }),
                false => Err(Error::NoRequest),
            };
        }
        self.begin_follow(&mut change, pair, limits, [followed, crossed]).await?;
        self.commit(change).await?;
        Ok(FollowOutcome { wish: Wish::Follows, changed: true })
    }

    async fn try_reject(&self, pair: Pair, event: &Event<'_, GraphChange>) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [pair.from, pair.to]).await?;
        let ended = self.end(&mut change, REQUESTS, pair, (event, GraphChange::Rejected(pair))).await?;
        self.commit(change).await?;
        Ok(ended.is_some())
    }
}
