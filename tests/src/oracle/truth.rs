//! The ledger's rows, read past everything that the product makes of them.

use std::collections::{BTreeMap, HashSet};

use proto::{PostId, UserId};
use tokio_postgres::{Client, NoTls, Row};

use super::witness;

/// Reads the ledger.
pub struct Truth {
    client: Client,
}

/// A post's row.
pub struct WrittenPost {
    /// What it says.
    pub text: String,
    /// Whether an idempotency key stands for it.
    pub has_key: bool,
}

impl Truth {
    /// The ledger at this address.
    pub async fn of(database: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(database, NoTls).await.expect("PostgreSQL");
        #[expect(clippy::disallowed_methods, reason = "it ends with the client")]
        tokio::spawn(connection);
        Self { client }
    }

    /// All posts, by id.
    pub async fn posts(&self) -> BTreeMap<String, WrittenPost> {
        let query = "SELECT id, text, EXISTS (SELECT 1 FROM post_keys WHERE post = posts.id) FROM posts";
        let written = |row: &Row| WrittenPost { text: row.get(1), has_key: row.get(2) };
        self.query(query).await.iter().map(|row| (row.get::<_, i64>(0).to_string(), written(row))).collect()
    }

    /// Who likes what.
    pub async fn likes(&self) -> HashSet<(String, UserId)> {
        let rows = self.query("SELECT post, liker FROM likes WHERE active").await;
        rows.iter().map(|row| (row.get::<_, i64>(0).to_string(), user(row, 1))).collect()
    }

    /// Who follows whom.
    pub async fn follows(&self) -> HashSet<(UserId, UserId)> {
        let rows = self.query("SELECT follower, followee FROM follows WHERE active").await;
        rows.iter().map(|row| (user(row, 0), user(row, 1))).collect()
    }

    /// A reader's home, newest first: ids, each with its number of likes.
    pub async fn home(&self, reader: UserId) -> Vec<(i64, i64)> {
        let query = format!(
            "SELECT posts.id, (SELECT count(*) FROM likes WHERE post = posts.id AND likes.active) FROM posts JOIN follows ON followee = author \
             WHERE follower = {reader} AND follows.active ORDER BY posts.id DESC"
        );
        self.query(&query).await.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// The posts that were written for a reader after a moment, by people whom they followed by then: the witness saw the
    /// follow when the post was written.
    pub async fn written_for(&self, reader: UserId, since_unix_ms: i64) -> Vec<PostId> {
        let query = format!(
            "SELECT posts.id FROM posts JOIN witnessed_readers ON post = posts.id \
             WHERE reader = {reader} AND created_at_ms > {since_unix_ms}"
        );
        let id = |row: &Row| PostId::new(row.get(0)).expect("a post id");
        self.query(&query).await.iter().map(id).collect()
    }

    /// The hottest posts of today, by the rows of their likes.
    pub async fn hot_posts(&self, limit: i32) -> Vec<(String, i64)> {
        let query = format!(
            "SELECT id, 3 * count(*) AS score FROM posts JOIN likes ON post = id AND active \
                     WHERE to_timestamp(created_at_ms / 1000.0) AT TIME ZONE 'UTC' >= \
                         date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') \
                     GROUP BY id ORDER BY score DESC, id DESC LIMIT {limit}"
        );
        let hot = |row: &Row| (row.get::<_, i64>(0).to_string(), row.get(1));
        self.query(&query).await.iter().map(hot).collect()
    }

    /// How many rows wait in the outbox.
    pub async fn outbox_rows(&self) -> usize {
        self.count("SELECT count(*) FROM outbox").await
    }

    /// Watches the ledger from now on, for the two below and [`Self::written_for`]. Nobody has posted yet.
    pub async fn install_witness(&self) {
        witness::install(&self.client).await;
    }

    /// How many events tell of a new post, published or not.
    pub async fn events_of_posts(&self) -> usize {
        self.count("SELECT count(*) FROM witnessed_posts").await
    }

    /// The outbox rows that were removed by a pod that did not hold their shard.
    pub async fn removals_without_lease(&self) -> Vec<String> {
        let rows = self.query("SELECT row_id, shard, session FROM unleased_removals ORDER BY row_id").await;
        let removal = |row: &Row| {
            let (id, shard, session): (i64, i64, String) = (row.get(0), row.get(1), row.get(2));
            format!("row {id} of shard {shard} by {session}")
        };
        rows.iter().map(removal).collect()
    }

    /// The pods that hold a shard, one for each that is held.
    pub async fn owners_of_shards(&self) -> Vec<String> {
        let held = "SELECT owner FROM shard_leases WHERE expires_us > extract(epoch FROM clock_timestamp()) * 1000000";
        self.query(held).await.iter().map(|row| row.get(0)).collect()
    }

    /// Takes the shards of a pod, as another relay would, once its leases have run out. Tells whether there were some.
    pub async fn takes_what_ran_out_for(&self, pod: &str) -> bool {
        let now_us = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
        let take = format!(
            "UPDATE shard_leases SET owner = 'another relay', epoch = epoch + 1, expires_us = {now_us} + 600000000 \
             WHERE owner = '{pod}' AND expires_us > 0 AND expires_us <= {now_us} RETURNING shard"
        );
        !self.query(&take).await.is_empty()
    }

    /// How many posts have a counter that is not the number of their likes.
    pub async fn miscounted_posts(&self) -> usize {
        self.count(
            "SELECT count(*) FROM posts WHERE like_count <> (SELECT count(*) FROM likes WHERE post = id AND active)",
        )
        .await
    }

    async fn count(&self, query: &str) -> usize {
        let count: i64 = self.query(query).await[0].get(0);
        usize::try_from(count).expect("a count")
    }

    async fn query(&self, query: &str) -> Vec<Row> {
        self.client.query(query, &[]).await.unwrap_or_else(|cause| panic!("{query}: {cause}"))
    }
}

fn user(row: &Row, column: usize) -> UserId {
    UserId::new(row.get(column)).expect("a user id")
}
