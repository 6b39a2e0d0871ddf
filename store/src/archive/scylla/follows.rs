//! Who follows whom, in two tables. A reader's followees are one partition: there is a limit to them. An author's followers lie
//! in several, by a hash of the follower: those of a celebrity would be one giant partition, on one set of nodes.

use std::{collections::BTreeSet, sync::Arc};

use async_trait::async_trait;
use futures_util::future::{try_join, try_join_all};
use proto::UserId;
use scylla::{errors::PrepareError, statement::prepared::PreparedStatement};

use super::{Link, RowWrite, number};
use crate::{
    Error,
    archive::{Edge, Follows},
    shard::stable_hash,
};

/// Into how many partitions an author's followers are divided. Fixed for ever, because rows are found by it. Ten million
/// followers are 600,000 short rows a partition, and reading few asks for 16 that are mostly empty.
const FOLLOWER_BUCKETS: i64 = 16;

/// How many authors' followers are read at the same time.
const AUTHORS_AT_ONCE: usize = 16;

/// The table of followees: in each partition, those of a reader, in order.
struct Following {
    add: PreparedStatement,
    end: PreparedStatement,
    chunk: PreparedStatement,
}

/// The table of followers: in each partition, some of an author's, in order.
struct Followers {
    add: PreparedStatement,
    end: PreparedStatement,
    chunk: PreparedStatement,
}

/// The tables `following_by_user` and `followers_by_user_bucket`.
pub(in crate::archive) struct FollowsTables {
    link: Arc<Link>,
    following: Following,
    followers: Followers,
}

impl Following {
    async fn open(link: &Link) -> Result<Self, PrepareError> {
        let add = "INSERT INTO KEYSPACE.following_by_user (follower, followee) VALUES (?, ?) USING TIMESTAMP ?";
        let end = "DELETE FROM KEYSPACE.following_by_user USING TIMESTAMP ? WHERE follower = ? AND followee = ?";
        let chunk = "SELECT followee FROM KEYSPACE.following_by_user WHERE follower = ? AND followee > ? LIMIT ?";
        Ok(Self { add: link.prepare(add).await?, end: link.prepare(end).await?, chunk: link.prepare(chunk).await? })
    }

    fn row(&self, edge: &Edge) -> RowWrite<'_, i64, (i64, i64, i64)> {
        let (follower, followee) = (edge.follower.get(), edge.followee.get());
        let (statement, values) = match edge.active {
            true => (&self.add, (follower, followee, edge.version)),
            false => (&self.end, (edge.version, follower, followee)),
        };
        RowWrite { partition: follower, statement, values }
    }

    async fn chunk(
        &self,
        link: &Link,
        reader: UserId,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<UserId>, Error> {
        let after = after.map_or(0, UserId::get);
        let values = |last: Option<&(i64,)>, asked| (reader.get(), last.map_or(after, |(last,)| *last), asked);
        let rows = link.many_rows::<(i64,), _>(&self.chunk, limit, values).await?;
        rows.into_iter().map(|(id,)| number("user", id)).collect()
    }
}

impl Followers {
    async fn open(link: &Link) -> Result<Self, PrepareError> {
        let table = "KEYSPACE.followers_by_user_bucket";
        let add = format!("INSERT INTO {table} (followee, bucket, follower) VALUES (?, ?, ?) USING TIMESTAMP ?");
        let end = format!("DELETE FROM {table} USING TIMESTAMP ? WHERE followee = ? AND bucket = ? AND follower = ?");
        // The node that is asked puts the buckets' rows in order; a request has a limit, and so has what it reads for it.
        let chunk = format!(
            "SELECT follower FROM {table} WHERE followee = ? AND bucket IN ? AND follower > ? \
             ORDER BY follower ASC LIMIT ?"
        );
        Ok(Self { add: link.prepare(&add).await?, end: link.prepare(&end).await?, chunk: link.prepare(&chunk).await? })
    }

    fn row(&self, edge: &Edge) -> RowWrite<'_, (i64, i64), (i64, i64, i64, i64)> {
        let (follower, followee, bucket) = (edge.follower.get(), edge.followee.get(), bucket(edge.follower));
        let (statement, values) = match edge.active {
            true => (&self.add, (followee, bucket, follower, edge.version)),
            false => (&self.end, (edge.version, followee, bucket, follower)),
        };
        RowWrite { partition: (followee, bucket), statement, values }
    }

    async fn chunk(
        &self,
        link: &Link,
        author: UserId,
        after: Option<UserId>,
        limit: u32,
    ) -> Result<Vec<UserId>, Error> {
        let after = after.map_or(0, UserId::get);
        let buckets: Vec<_> = (0..FOLLOWER_BUCKETS).collect();
        let values =
            |last: Option<&(i64,)>, asked| (author.get(), buckets.clone(), last.map_or(after, |(last,)| *last), asked);
        let rows = link.many_rows::<(i64,), _>(&self.chunk, limit, values).await?;
        rows.into_iter().map(|(id,)| number("user", id)).collect()
    }
}

/// The partition of an author's followers in which one is found.
fn bucket(follower: UserId) -> i64 {
    (stable_hash(follower.to_string().as_bytes()) % FOLLOWER_BUCKETS.unsigned_abs()).cast_signed()
}

impl FollowsTables {
    pub(super) async fn open(link: Arc<Link>) -> Result<Self, PrepareError> {
        Ok(Self { following: Following::open(&link).await?, followers: Followers::open(&link).await?, link })
    }
}

#[async_trait]
impl Follows for FollowsTables {
    async fn set(&self, edges: &[Edge]) -> Result<(), Error> {
        let following = edges.iter().map(|edge| self.following.row(edge)).collect();
        let followers = edges.iter().map(|edge| self.followers.row(edge)).collect();
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
