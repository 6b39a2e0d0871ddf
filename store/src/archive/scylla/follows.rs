//! Who follows whom, in two tables: a reader's followees are one partition, an author's followers another.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use futures_util::future::{try_join, try_join_all};
use proto::UserId;
use scylla::{errors::PrepareError, statement::prepared::PreparedStatement};

use super::{Link, RowWrite, number};
use crate::{
    Error,
    archive::{Edge, Follows},
};

/// How many authors' followers are read at the same time.
const AUTHORS_AT_ONCE: usize = 16;

/// One of the two tables: in each partition, the other end of its edges, in order.
struct Side {
    add: PreparedStatement,
    end: PreparedStatement,
    chunk: PreparedStatement,
}

/// The tables `following_by_user` and `followers_by_user`.
pub(in crate::archive) struct FollowsTables {
    link: Arc<Link>,
    following: Side,
    followers: Side,
}

impl Side {
    async fn open(link: &Link, table: &str, owner: &str, other: &str) -> Result<Self, PrepareError> {
        let add = format!("INSERT INTO KEYSPACE.{table} ({owner}, {other}) VALUES (?, ?) USING TIMESTAMP ?");
        let end = format!("DELETE FROM KEYSPACE.{table} USING TIMESTAMP ? WHERE {owner} = ? AND {other} = ?");
        let chunk = format!("SELECT {other} FROM KEYSPACE.{table} WHERE {owner} = ? AND {other} > ? LIMIT ?");
        Ok(Self { add: link.prepare(&add).await?, end: link.prepare(&end).await?, chunk: link.prepare(&chunk).await? })
    }

    fn row(&self, owner: UserId, other: UserId, edge: &Edge) -> RowWrite<'_, i64, (i64, i64, i64)> {
        let (owner, other) = (owner.get(), other.get());
        let (statement, values) = match edge.active {
            true => (&self.add, (owner, other, edge.version)),
            false => (&self.end, (edge.version, owner, other)),
        };
        RowWrite { partition: owner, statement, values }
    }

    async fn chunk(&self, link: &Link, owner: UserId, after: Option<UserId>, limit: u32) -> Result<Vec<UserId>, Error> {
        let after = after.map_or(0, UserId::get);
        let values = |last: Option<&(i64,)>, asked| (owner.get(), last.map_or(after, |(last,)| *last), asked);
        let rows = link.many_rows::<(i64,), _>(&self.chunk, limit, values).await?;
        rows.into_iter().map(|(id,)| number("user", id)).collect()
    }
}

impl FollowsTables {
    pub(super) async fn open(link: Arc<Link>) -> Result<Self, PrepareError> {
        Ok(Self {
            following: Side::open(&link, "following_by_user", "follower", "followee").await?,
            followers: Side::open(&link, "followers_by_user", "followee", "follower").await?,
            link,
        })
    }
}

#[async_trait]
impl Follows for FollowsTables {
    async fn set(&self, edges: &[Edge]) -> Result<(), Error> {
        let following = edges.iter().map(|edge| self.following.row(edge.follower, edge.followee, edge)).collect();
        let followers = edges.iter().map(|edge| self.followers.row(edge.followee, edge.follower, edge)).collect();
        // After a death in between, or beside, all of it is done again.
        try_join(self.link.write_all(following), self.link.write_all(followers)).await.map(|_| ())
    }

    async fn followers(
        &self,
        authors: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
    ) -> Result<Vec<(UserId, UserId)>, Error> {
        let left: BTreeSet<_> =
            authors.iter().copied().filter(|author| after.is_none_or(|(passed, _)| *author >= passed)).collect();
        let left: Vec<_> = left.into_iter().collect();
        let mut pairs = Vec::new();
        for wave in left.chunks(AUTHORS_AT_ONCE) {
            if self.read_wave(wave, after, limit, &mut pairs).await? {
                break;
            }
        }
        Ok(pairs)
    }

    async fn followees(&self, reader: UserId, after: Option<UserId>, limit: u32) -> Result<Vec<UserId>, Error> {
        self.following.chunk(&self.link, reader, after, limit).await
    }
}

impl FollowsTables {
    /// Goes on with the followers of some authors, read side by side. Each is asked for its share of what is left only, and
    /// one who has more is read to the end alone: otherwise many large authors would be read to be thrown away. True when
    /// the limit is reached.
    async fn read_wave(
        &self,
        wave: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
        pairs: &mut Vec<(UserId, UserId)>,
    ) -> Result<bool, Error> {
        let left = |pairs: &Vec<_>| limit.saturating_sub(u32::try_from(pairs.len()).unwrap_or(u32::MAX));
        let share = left(pairs).div_ceil(u32::try_from(wave.len()).unwrap_or(1).max(1));
        let begin = |author| after.filter(|(passed, _)| *passed == author).map(|(_, follower)| follower);
        let first = wave.iter().map(|author| self.followers.chunk(&self.link, *author, begin(*author), share));
        let first = try_join_all(first.collect::<Vec<_>>()).await?;
        for (author, mut followers) in wave.iter().zip(first) {
            let had_more = followers.len() == share as usize;
            let rest = left(pairs).saturating_sub(share);
            if had_more && rest > 0 {
                let last = followers.last().copied().or(begin(*author));
                followers.extend(self.followers.chunk(&self.link, *author, last, rest).await?);
            }
            followers.truncate(left(pairs) as usize);
            pairs.extend(followers.into_iter().map(|follower| (*author, follower)));
            if left(pairs) == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
