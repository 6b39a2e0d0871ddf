//! The ends of all that a deleted person has to do with others.

use async_trait::async_trait;
use proto::{PostId, UserId};

use super::{
    Change, Row, SqlLedger,
    counters::{count_unfollow, lock_all},
    failed,
    pairs::{BLOCKS, FOLLOWS, MUTES, Pairs, REQUESTS},
    revisions::lock_post_or_tombstone,
    row::number,
};
use crate::{
    Entity, Error,
    ledger::{Deleted, Departures, Event, FollowLimits, GraphChange, Likes, Pair, Tie, Unliked},
};

#[async_trait]
impl Departures for SqlLedger {
    async fn end_ties(
        &self,
        person: UserId,
        tie: Tie,
        limits: FollowLimits,
        events: &[[Event<'_, GraphChange>; 2]],
    ) -> Result<usize, Error> {
        self.retried(|| self.try_end_ties(person, tie, limits, events)).await
    }

    async fn end_likes(&self, person: UserId, events: &[Event<'_, Unliked>]) -> Result<usize, Error> {
        self.retried(|| self.try_end_likes(person, events)).await
    }

    async fn delete_posts(&self, person: UserId, events: &[Event<'_, Deleted>]) -> Result<usize, Error> {
        self.retried(|| self.try_delete_posts(person, events)).await
    }
}

impl SqlLedger {
    async fn try_end_ties(
        &self,
        person: UserId,
        tie: Tie,
        limits: FollowLimits,
        events: &[[Event<'_, GraphChange>; 2]],
    ) -> Result<usize, Error> {
        let mut change = self.begin().await?;
        require_gone(&mut change, person).await?;
        let (pairs, is_own) = pairs_of(tie);
        let (own, other) = if is_own { (pairs.from, pairs.to) } else { (pairs.to, pairs.from) };
        let query = format!(
            "SELECT {other} AS other FROM {} WHERE {own} = $1 AND active ORDER BY {other} LIMIT $2",
            pairs.table
        );
        let others: Vec<UserId> = next(&mut change, query, person, events.len(), "other").await?;
        let counts = pairs.table == FOLLOWS.table;
        if counts {
            lock_all(&mut change, others.iter().chain([&person]).copied()).await?;
        }
        for (other, [event, crossed]) in others.iter().zip(events) {
            let pair = Pair { from: person, to: *other };
            let pair = if is_own { pair } else { pair.reversed() };
            let ended = self.end(&mut change, pairs, pair, (event, end_of(tie, pair))).await?;
            if ended.is_none() || !counts {
                continue;
            }
            let (mode, followers) = count_unfollow(&mut change, pair).await?;
            // How the posts of who is gone would reach anyone matters no more.
            if mode.author != person {
                self.cross(&mut change, mode, followers, (limits.celebrity_followers, crossed)).await?;
            }
        }
        self.commit(change).await?;
        Ok(others.len())
    }

    async fn try_end_likes(&self, person: UserId, events: &[Event<'_, Unliked>]) -> Result<usize, Error> {
        let mut change = self.begin().await?;
        require_gone(&mut change, person).await?;
        // In the order of posts, whose rows are locked one after the other: two who do this do not wait in a circle.
        let query = "SELECT post FROM likes WHERE liker = $1 AND active ORDER BY post LIMIT $2".to_owned();
        let posts: Vec<PostId> = next(&mut change, query, person, events.len(), "post").await?;
        for (post, event) in posts.iter().zip(events) {
            let compose = |likes: &Likes| (event.compose)(&Unliked { post: *post, user: person, likes: *likes });
            self.end_like(&mut change, (person, *post), &Event { id: event.id, compose: &compose }).await?;
        }
        self.commit(change).await?;
        Ok(posts.len())
    }
}

impl SqlLedger {
    async fn try_delete_posts(&self, person: UserId, events: &[Event<'_, Deleted>]) -> Result<usize, Error> {
        let mut change = self.begin().await?;
        require_gone(&mut change, person).await?;
        let query = "SELECT id FROM posts WHERE author = $1 AND deleted_at_ms IS NULL ORDER BY id LIMIT $2".to_owned();
        let posts: Vec<PostId> = next(&mut change, query, person, events.len(), "id").await?;
        for (post, event) in posts.iter().zip(events) {
            if let Some((before, false)) = lock_post_or_tombstone(&mut change, person, *post).await? {
                self.end_post(&mut change, &before, event).await?;
            }
        }
        self.commit(change).await?;
        Ok(posts.len())
    }
}

/// The next rows of a person.
async fn next<Id: TryFrom<i64>>(
    change: &mut Change,
    query: String,
    person: UserId,
    limit: usize,
    column: &str,
) -> Result<Vec<Id>, Error> {
    let query = sqlx::query(sqlx::AssertSqlSafe(query)).bind(person.get());
    let query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let rows: Vec<Row> = query.fetch_all(&mut *change.transaction).await.map_err(failed)?;
    rows.iter().map(|row| number(row, column)).collect()
}

/// Only who is gone for good can be cleaned up after. The row stays so, and needs no lock.
async fn require_gone(change: &mut Change, person: UserId) -> Result<(), Error> {
    let query = sqlx::query("SELECT 1 FROM accounts WHERE id = $1 AND deleted_at_ms IS NOT NULL").bind(person.get());
    let found = query.fetch_optional(&mut *change.transaction).await.map_err(failed)?;
    found.map(|_| ()).ok_or(Error::NotFound(Entity::User))
}

/// A tie's table, and whether the person is the one it begins at.
const fn pairs_of(tie: Tie) -> (Pairs, bool) {
    match tie {
        Tie::Following => (FOLLOWS, true),
        Tie::Followers => (FOLLOWS, false),
        Tie::Asking => (REQUESTS, true),
        Tie::Asked => (REQUESTS, false),
        Tie::Blocking => (BLOCKS, true),
        Tie::Blocked => (BLOCKS, false),
        Tie::Muting => (MUTES, true),
        Tie::Muted => (MUTES, false),
    }
}

const fn end_of(tie: Tie, pair: Pair) -> GraphChange {
    match tie {
        Tie::Following | Tie::Followers => GraphChange::Unfollowed(pair),
        Tie::Asking | Tie::Asked => GraphChange::Withdrawn(pair),
        Tie::Blocking | Tie::Blocked => GraphChange::Unblocked(pair),
        Tie::Muting | Tie::Muted => GraphChange::Unmuted(pair),
    }
}
