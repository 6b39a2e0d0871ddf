//! Who follows whom.

use async_trait::async_trait;
use proto::UserId;
use sqlx::QueryBuilder;

use super::{
    Change, SqlLedger,
    accounts::require_users,
    counters::{count_follow, count_unfollow, lock_both},
    failed,
    fills::edge,
    pairs::{BLOCKS, FOLLOWS, REQUESTS, Stands, is_so, stands},
    push_is_one_of,
    row::number,
};
use crate::{
    Error,
    archive::Edge,
    ledger::{Event, FollowLimits, FollowOutcome, Graph, GraphChange, Outcome, Pair, Wish},
};

#[async_trait]
impl Graph for SqlLedger {
    async fn follow(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 3],
    ) -> Result<FollowOutcome, Error> {
        self.retried(|| self.try_follow(pair, limits, &events)).await
    }

    async fn unfollow(
        &self,
        pair: Pair,
        limits: FollowLimits,
        events: [Event<'_, GraphChange>; 2],
    ) -> Result<Outcome, Error> {
        self.retried(|| self.try_unfollow(pair, limits, &events)).await
    }

    async fn followees(&self, reader: UserId) -> Result<Vec<UserId>, Error> {
        let query = sqlx::query("SELECT followee FROM follows WHERE follower = $1 AND active").bind(reader.get());
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "followee")).collect()
    }

    async fn followers(
        &self,
        authors: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
    ) -> Result<Vec<(UserId, UserId)>, Error> {
        if authors.is_empty() {
            return Ok(Vec::new());
        }
        let after = after.map_or((0, 0), |(author, follower)| (author.get(), follower.get()));
        let mut query = QueryBuilder::new("SELECT followee, follower FROM follows WHERE active AND followee");
        push_is_one_of(&mut query, authors.iter().map(|author| author.get()).collect());
        query.push(" AND (followee, follower) > (").push_bind(after.0).push(", ").push_bind(after.1);
        query.push(") ORDER BY followee, follower LIMIT ").push_bind(i64::from(limit));
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(|row| Ok((number(row, "followee")?, number(row, "follower")?))).collect()
    }

    async fn edges(&self, pairs: &[Pair]) -> Result<Vec<Edge>, Error> {
        let mut edges = Vec::new();
        // A reader's edges lie together, and events of one reader often come together.
        for of_reader in pairs.chunk_by(|one, other| one.from == other.from) {
            let mut query =
                QueryBuilder::new("SELECT follower, followee, active, version FROM follows WHERE follower = ");
            query.push_bind(of_reader[0].from.get()).push(" AND followee");
            push_is_one_of(&mut query, of_reader.iter().map(|pair| pair.to.get()).collect());
            for row in &self.answered(query.build().fetch_all(self.reader())).await? {
                edges.push(edge(row)?);
            }
        }
        Ok(edges)
    }
}

impl SqlLedger {
    async fn try_follow(
        &self,
        pair: Pair,
        limits: FollowLimits,
        [event, withdrawn, crossed]: &[Event<'_, GraphChange>; 3],
    ) -> Result<FollowOutcome, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [pair.from, pair.to]).await?;
        // Looked at before the lock is had, because most calls that come twice need none.
        if is_so(&mut change, FOLLOWS, pair).await? {
            return Ok(FollowOutcome { wish: Wish::Follows, changed: false });
        }
        lock_both(&mut change, pair).await?;
        for blocks in [pair, pair.reversed()] {
            if is_so(&mut change, BLOCKS, blocks).await? {
                return Err(Error::Blocked);
            }
        }
        if is_so(&mut change, FOLLOWS, pair).await? {
            return Ok(FollowOutcome { wish: Wish::Follows, changed: false });
        }
        let (wish, changed) = match is_private(&mut change, pair.to).await? {
            true => {
                let asked = self.activate(&mut change, REQUESTS, pair, (event, GraphChange::Requested(pair))).await?;
                (Wish::Asks, asked.is_some())
            }
            false => {
                self.end(&mut change, REQUESTS, pair, (withdrawn, GraphChange::Withdrawn(pair))).await?;
                self.begin_follow(&mut change, pair, limits, [event, crossed]).await?;
                (Wish::Follows, true)
            }
        };
        self.commit(change).await?;
        Ok(FollowOutcome { wish, changed })
    }

    /// Writes a follow that is not there. Under the lock of both.
    pub(super) async fn begin_follow(
        &self,
        change: &mut Change,
        pair: Pair,
        limits: FollowLimits,
        [event, crossed]: [&Event<'_, GraphChange>; 2],
    ) -> Result<(), Error> {
        self.activate(change, FOLLOWS, pair, (event, GraphChange::Followed(pair))).await?;
        let (mode, followers) = count_follow(change, pair, limits.followees_max).await?;
        self.cross(change, mode, followers, (limits.celebrity_followers, crossed)).await
    }

    /// Ends a follow, or a request to: there is only one of them. Gives the version of a follow that ended. Under the lock of
    /// both.
    pub(super) async fn end_follow(
        &self,
        change: &mut Change,
        pair: Pair,
        limits: FollowLimits,
        [event, crossed]: [&Event<'_, GraphChange>; 2],
    ) -> Result<Option<i64>, Error> {
        let ended = self.end(change, FOLLOWS, pair, (event, GraphChange::Unfollowed(pair))).await?;
        match ended {
            Some(_) => {
                let (mode, followers) = count_unfollow(change, pair).await?;
                self.cross(change, mode, followers, (limits.celebrity_followers, crossed)).await?;
            }
            None => _ = self.end(change, REQUESTS, pair, (event, GraphChange::Withdrawn(pair))).await?,
        }
        Ok(ended)
    }

    async fn try_unfollow(
        &self,
        pair: Pair,
        limits: FollowLimits,
        [event, crossed]: &[Event<'_, GraphChange>; 2],
    ) -> Result<Outcome, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [pair.from, pair.to]).await?;
        let found = stands(&mut change, FOLLOWS, pair).await?;
        if !found.is_some_and(|row| row.active) && !is_so(&mut change, REQUESTS, pair).await? {
            return Ok(Stands::ended(found));
        }
        lock_both(&mut change, pair).await?;
        let before = change.events;
        let ended = self.end_follow(&mut change, pair, limits, [event, crossed]).await?;
        let version = match ended {
            Some(version) => Some(version),
            None => Stands::ended(stands(&mut change, FOLLOWS, pair).await?).version,
        };
        let changed = change.events > before;
        self.commit(change).await?;
        Ok(Outcome { version, changed })
    }
}

/// Whether strangers must ask before they follow. Under the lock of the person's counters, it stays so.
async fn is_private(change: &mut Change, user: UserId) -> Result<bool, Error> {
    let private = sqlx::query_scalar("SELECT private FROM accounts WHERE id = $1").bind(user.get());
    private.fetch_one(&mut *change.transaction).await.map_err(failed)
}
