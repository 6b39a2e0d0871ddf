//! All public posts, a partition an hour and shard of each scope.
//!
//! Everyone's newest posts go to the partitions of the present hour. By days, a server with 100 posts a second would have
//! partitions of gigabytes; by hours and 4 shards it has some 40 MB in each. Several shards spread the writes of a moment
//! over more nodes, and each makes a page dearer, because a page is merged from all of them. A table lists the hours in
//! which anything was written, so that a page never walks through empty time, and knows the end.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use futures_util::future::try_join_all;
use proto::{
    PostId,
    id::{SEQUENCE_BITS, WRITER_BITS},
};
use scylla::{errors::PrepareError, statement::prepared::PreparedStatement};

use super::{Link, RowWrite, number};
use crate::{
    Error,
    archive::{ArchivedPost, PublicPage, PublicPosts, Scope},
};

const SHARDS: i64 = 4;
const BUCKET_MS: i64 = 60 * 60 * 1000;
/// How many hours one page looks through. Only those in which all posts were removed are looked through for nothing.
const BUCKETS_A_PAGE_MAX: usize = 16;

/// A row of `public_posts` without its partition's key.
type Row = (i64, i64, String, i64);

/// The tables `public_posts` and `public_buckets`.
pub(in crate::archive) struct PublicTables {
    link: Arc<Link>,
    list: PreparedStatement,
    listed: PreparedStatement,
    add: PreparedStatement,
    remove: PreparedStatement,
    page: PreparedStatement,
}

impl PublicTables {
    pub(super) async fn open(link: Arc<Link>) -> Result<Self, PrepareError> {
        let list = "INSERT INTO KEYSPACE.public_buckets (scope, bucket) VALUES (?, ?) USING TIMESTAMP ?";
        let listed = "SELECT bucket FROM KEYSPACE.public_buckets WHERE scope = ? AND bucket <= ? LIMIT ?";
        let add = "INSERT INTO KEYSPACE.public_posts (scope, bucket, shard, id, author, body, created_at_ms) \
                   VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?";
        let remove = "DELETE FROM KEYSPACE.public_posts USING TIMESTAMP ? \
                      WHERE scope = ? AND bucket = ? AND shard = ? AND id = ?";
        let page = "SELECT id, author, body, created_at_ms FROM KEYSPACE.public_posts \
                    WHERE scope = ? AND bucket = ? AND shard = ? AND id < ? LIMIT ?";
        Ok(Self {
            list: link.prepare(list).await?,
            listed: link.prepare(listed).await?,
            add: link.prepare(add).await?,
            remove: link.prepare(remove).await?,
            page: link.prepare(page).await?,
            link,
        })
    }

    /// Lists the hours of these posts. Before the posts are written: one in an hour that is not listed would never be read,
    /// while an hour that is listed for nothing is only looked at.
    async fn list(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        let buckets: BTreeMap<_, _> = posts.iter().map(|(post, version)| (bucket(post.id.get()), *version)).collect();
        let mut rows = Vec::new();
        for scope in Scope::ALL.map(name) {
            for (bucket, version) in &buckets {
                rows.push(RowWrite { partition: scope, statement: &self.list, values: (scope, *bucket, *version) });
            }
        }
        self.link.write_all(rows).await
    }

    /// The newest posts of an hour with ids below `below`.
    async fn page_of_bucket(
        &self,
        scope: Scope,
        bucket: i64,
        below: i64,
        limit: u32,
    ) -> Result<Vec<ArchivedPost>, Error> {
        let shards = (0..SHARDS).map(|shard| self.page_of_shard(scope, (bucket, shard), below, limit));
        let shards = try_join_all(shards.collect::<Vec<_>>()).await?;
        let mut posts: Vec<_> = shards.into_iter().flatten().collect();
        posts.sort_unstable_by_key(|post: &ArchivedPost| Reverse(post.id));
        posts.truncate(limit as usize);
        Ok(posts)
    }

    async fn page_of_shard(
        &self,
        scope: Scope,
        (bucket, shard): (i64, i64),
        below: i64,
        limit: u32,
    ) -> Result<Vec<ArchivedPost>, Error> {
        let values = |last: Option<&Row>, asked| {
            let below = last.map_or(below, |(id, ..)| *id);
            (name(scope), bucket, shard, below, asked)
        };
        let rows = self.link.many_rows(&self.page, limit, values).await?;
        rows.into_iter().map(post).collect()
    }
}

#[async_trait]
impl PublicPosts for PublicTables {
    async fn add(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        self.list(posts).await?;
        let mut rows = Vec::with_capacity(Scope::ALL.len() * posts.len());
        for scope in Scope::ALL.map(name) {
            for (post, version) in posts {
                let (id, author, text) = (post.id.get(), post.author.get(), post.text.as_str());
                let (bucket, shard) = (bucket(id), shard(id));
                let values = (scope, bucket, shard, id, author, text, post.created_at_ms, *version);
                rows.push(RowWrite { partition: (scope, bucket, shard), statement: &self.add, values });
            }
        }
        self.link.write_all(rows).await
    }

    async fn remove(&self, post: PostId, version: i64) -> Result<(), Error> {
        let id = post.get();
        let removals =
            Scope::ALL.map(|scope| self.link.write(&self.remove, (version, name(scope), bucket(id), shard(id), id)));
        try_join_all(removals).await.map(|_| ())
    }

    async fn page(&self, scope: Scope, below: Option<PostId>, limit: u32) -> Result<PublicPage, Error> {
        let below = below.map_or(i64::MAX, PostId::get);
        // One more than is looked through tells whether there is anything older.
        let asked = i32::try_from(BUCKETS_A_PAGE_MAX + 1).unwrap_or(i32::MAX);
        let newest = bucket(below - 1);
        let buckets = self.link.rows::<(i64,)>(&self.listed, (name(scope), newest, asked)).await?;
        let mut posts: Vec<ArchivedPost> = Vec::new();
        for (bucket,) in buckets.iter().take(BUCKETS_A_PAGE_MAX) {
            let left = limit.saturating_sub(u32::try_from(posts.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            posts.extend(self.page_of_bucket(scope, *bucket, below, left).await?);
        }
        let next = match posts.last() {
            Some(last) if posts.len() >= limit as usize => Some(last.id),
            // All that was looked through is used up: the rest lies below the last hour of it.
            _ if buckets.len() > BUCKETS_A_PAGE_MAX => {
                buckets.get(BUCKETS_A_PAGE_MAX - 1).and_then(|(last,)| first_id(*last))
            }
            _ => None,
        };
        Ok(PublicPage { posts, next })
    }
}

const fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Local => "local",
        Scope::Global => "global",
    }
}

/// The hour of an id, counted from where ids begin.
const fn bucket(id: i64) -> i64 {
    (id >> (WRITER_BITS + SEQUENCE_BITS)) / BUCKET_MS
}

/// The lowest id that an hour can have, where there is one below it.
fn first_id(bucket: i64) -> Option<PostId> {
    PostId::new((bucket * BUCKET_MS) << (WRITER_BITS + SEQUENCE_BITS)).ok()
}

/// By millisecond and sequence: most ids are the first of their millisecond, and few writers are at work.
const fn shard(id: i64) -> i64 {
    let (ms, sequence) = (id >> (WRITER_BITS + SEQUENCE_BITS), id & ((1 << SEQUENCE_BITS) - 1));
    (ms + sequence) % SHARDS
}

fn post((id, author, text, created_at_ms): Row) -> Result<ArchivedPost, Error> {
    Ok(ArchivedPost { id: number("id", id)?, author: number("author", author)?, text, created_at_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_begins_with_its_first_id_and_its_shards_are_used_alike() {
        let of_hour_7 = first_id(7).unwrap().get();
        assert_eq!((bucket(of_hour_7), bucket(of_hour_7 - 1)), (7, 6));
        assert_eq!(first_id(0), None);
        let mut counts = [0; SHARDS as usize];
        for ms in 0..1000_i64 {
            counts[usize::try_from(shard(of_hour_7 + (ms << 22))).unwrap()] += 1;
            counts[usize::try_from(shard(of_hour_7 + ms)).unwrap()] += 1;
        }
        assert_eq!(counts, [500; SHARDS as usize]);
    }
}
