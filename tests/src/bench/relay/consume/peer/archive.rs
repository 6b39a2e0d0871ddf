//! The archive's rows by the bare driver: those of one partition as one batch, and the partitions side by side.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, future::join, stream};
use proto::{
    UserId,
    id::{SEQUENCE_BITS, WRITER_BITS},
};
use scylla::{
    client::{execution_profile::ExecutionProfile, session::Session, session_builder::SessionBuilder},
    serialize::row::SerializeRow,
    statement::{
        Consistency,
        batch::{Batch, BatchType},
        prepared::PreparedStatement,
    },
};

use super::{
    super::{super::setting, Bench},
    Post,
};

const SCOPES: [&str; 2] = ["local", "global"];
const SHARDS: i64 = 4;
const HOUR_MS: i64 = 60 * 60 * 1000;
const BATCH_ROWS_MAX: usize = 100;
const WRITES_AT_ONCE: usize = 64;

/// A session, and its statements.
pub(in super::super) struct Archive {
    session: Session,
    by_author: PreparedStatement,
    hour: PreparedStatement,
    public: PreparedStatement,
    of_author: PreparedStatement,
}

impl Archive {
    pub(super) async fn open(bench: &Bench) -> Self {
        let node = setting(&bench.settings, "stores.archive").trim_start_matches("scylla://");
        let profile = ExecutionProfile::builder().consistency(Consistency::LocalQuorum).build();
        let builder = SessionBuilder::new().known_node(node).default_execution_profile_handle(profile.into_handle());
        let session = builder.build().await.expect("a session");
        session.use_keyspace(setting(&bench.settings, "stores.namespace"), false).await.expect("the keyspace");
        let prepare = async |statement: &str| {
            let mut statement = session.prepare(statement).await.expect("a statement");
            statement.set_is_idempotent(true);
            statement
        };
        Self {
            by_author: prepare(
                "INSERT INTO posts_by_author (author, id, body, created_at_ms) VALUES (?, ?, ?, ?) USING TIMESTAMP ?",
            )
            .await,
            hour: prepare("INSERT INTO public_buckets (scope, bucket) VALUES (?, ?) USING TIMESTAMP ?").await,
            public: prepare(
                "INSERT INTO public_posts (scope, bucket, shard, id, author, body, created_at_ms) \
                 VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ?",
            )
            .await,
            of_author: prepare("SELECT id FROM posts_by_author WHERE author = ?").await,
            session,
        }
    }

    pub(super) async fn add(&self, posts: &[Post]) {
        join(self.add_by_author(posts), self.add_public(posts)).await;
    }

    /// The ids of an author's posts, the newest first.
    pub(in super::super) async fn ids_of(&self, author: UserId) -> Vec<i64> {
        let answer = self.session.execute_unpaged(&self.of_author, (author.get(),)).await.expect("an answer");
        let answer = answer.into_rows_result().expect("rows");
        answer.rows::<(i64,)>().expect("ids").map(|row| row.expect("an id").0).collect()
    }

    async fn add_by_author(&self, posts: &[Post]) {
        let mut rows = Vec::with_capacity(posts.len());
        for post in posts {
            let author = post.author.get();
            rows.push((author, (author, post.id, post.text.as_str(), post.created_at_ms, post.version)));
        }
        self.write(&self.by_author, rows).await;
    }

    async fn add_public(&self, posts: &[Post]) {
        let listed: BTreeMap<_, _> = posts.iter().map(|post| (hour(post.id), post.version)).collect();
        let (mut hours, mut rows) = (Vec::new(), Vec::with_capacity(SCOPES.len() * posts.len()));
        for scope in SCOPES {
            for (hour, version) in &listed {
                hours.push((scope, (scope, *hour, *version)));
            }
            for post in posts {
                let (hour, shard, author) = (hour(post.id), shard(post.id), post.author.get());
                let text = post.text.as_str();
                let values = (scope, hour, shard, post.id, author, text, post.created_at_ms, post.version);
                rows.push(((scope, hour, shard), values));
            }
        }
        self.write(&self.hour, hours).await;
        self.write(&self.public, rows).await;
    }

    async fn write<K: Ord, V: SerializeRow>(&self, statement: &PreparedStatement, rows: Vec<(K, V)>) {
        let mut partitions: BTreeMap<K, Vec<Vec<V>>> = BTreeMap::new();
        for (partition, values) in rows {
            let batches = partitions.entry(partition).or_default();
            match batches.last_mut() {
                Some(batch) if batch.len() < BATCH_ROWS_MAX => batch.push(values),
                _ => batches.push(vec![values]),
            }
        }
        let batches = partitions.into_values().flatten();
        let writes: Vec<_> = batches.map(|rows| self.write_batch(statement, rows)).collect();
        stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).collect::<()>().await;
    }

    async fn write_batch<V: SerializeRow>(&self, statement: &PreparedStatement, rows: Vec<V>) {
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        rows.iter().for_each(|_| batch.append_statement(statement.clone()));
        self.session.batch(&batch, rows).await.expect("the rows are written");
    }
}

fn ms(id: i64) -> i64 {
    id >> (WRITER_BITS + SEQUENCE_BITS)
}

fn hour(id: i64) -> i64 {
    ms(id) / HOUR_MS
}

fn shard(id: i64) -> i64 {
    (ms(id) + (id & ((1 << SEQUENCE_BITS) - 1))) % SHARDS
}
