//! The archive on ScyllaDB, or Cassandra. A write carries its row's version as its timestamp, so that a late one never undoes
//! a newer one, and any can be done again. Every statement is prepared with its partition's key bound: the driver sends it
//! to a node that has the partition.

mod failure;
mod follows;
mod mark;
mod posts;
mod public;
mod schema;

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use failure::failed;
use follows::FollowsTables;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
pub(super) use mark::Mark;
use posts::PostsTable;
use public::PublicTables;
pub(crate) use schema::migrate;
use scylla::{
    client::{execution_profile::ExecutionProfile, session::Session, session_builder::SessionBuilder},
    deserialize::row::DeserializeRow,
    errors::PrepareError,
    serialize::row::SerializeRow,
    statement::{
        Consistency,
        batch::{Batch, BatchType},
        prepared::PreparedStatement,
    },
};

use crate::{
    Error, OpenError,
    config::{Config, ScyllaUrl},
    error::damaged,
};

const STORE: &str = "the archive";
/// How long a request may take, its retries included.
const REQUEST_MAX: Duration = Duration::from_secs(5);
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long all of them may take until the first session stands.
const SESSION_MAX: Duration = Duration::from_secs(15);
/// How long nodes may take to agree on a table that was made.
const AGREEMENT_MAX: Duration = Duration::from_secs(30);
/// How many partitions one call writes to at the same time.
const WRITES_AT_ONCE: usize = 64;
/// The longest texts in as many rows are far from the 16 MiB that a request may have.
const BATCH_ROWS_MAX: usize = 100;
/// What is larger is read in several requests.
const ROWS_A_REQUEST_MAX: u32 = 1000;

/// The tables of this release, ready for use.
pub(super) struct Tables {
    pub(super) posts_by_author: Arc<PostsTable>,
    pub(super) follows: Arc<FollowsTables>,
    pub(super) public_posts: Arc<PublicTables>,
    pub(super) mark: Arc<Mark>,
}

impl Tables {
    /// The tables in this cluster; the keyspace and all of them must be there.
    pub(super) async fn open(url: &ScyllaUrl, config: &Config) -> Result<Self, OpenError> {
        let keyspace = config.namespace.keyspace();
        let session = connect(url, keyspace).await?;
        schema::check(&session, url, keyspace).await?;
        let link = Arc::new(Link { session, keyspace: keyspace.to_owned() });
        let open = async {
            Ok::<_, PrepareError>(Self {
                posts_by_author: Arc::new(PostsTable::open(link.clone()).await?),
                follows: Arc::new(FollowsTables::open(link.clone()).await?),
                public_posts: Arc::new(PublicTables::open(link.clone()).await?),
                mark: Arc::new(Mark::open(link.clone()).await?),
            })
        };
        open.await.map_err(|cause| unusable(url, cause))
    }
}

/// A session, and the keyspace that is ours.
struct Link {
    session: Session,
    keyspace: String,
}

/// A row to write, with the key of its partition.
struct RowWrite<'a, K, V> {
    partition: K,
    statement: &'a PreparedStatement,
    values: V,
}

impl Link {
    /// Prepares a statement, in which `KEYSPACE` stands for ours. Every statement can be done again, and only such are tried
    /// again by the driver.
    async fn prepare(&self, statement: &str) -> Result<PreparedStatement, PrepareError> {
        let mut statement = self.session.prepare(statement.replace("KEYSPACE", &self.keyspace)).await?;
        statement.set_is_idempotent(true);
        Ok(statement)
    }

    async fn write(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Result<(), Error> {
        self.session.execute_unpaged(statement, values).await.map(|_| ()).map_err(|cause| failed(&cause))
    }

    /// Writes rows: those of one partition as one batch, which its nodes take as a single write, and the partitions side by
    /// side. Measured on one Cassandra that syncs its log, with 64 requests at a time: 2,500 rows a second one by one, 7,000
    /// with 4 rows a partition, 13,000 with 20.
    async fn write_all<K, V>(&self, rows: Vec<RowWrite<'_, K, V>>) -> Result<(), Error>
    where
        K: Ord + Send,
        V: SerializeRow + Send + Sync,
    {
        let mut partitions: BTreeMap<K, Vec<Vec<(&PreparedStatement, V)>>> = BTreeMap::new();
        for RowWrite { partition, statement, values } in rows {
            let batches = partitions.entry(partition).or_default();
            match batches.last_mut() {
                Some(batch) if batch.len() < BATCH_ROWS_MAX => batch.push((statement, values)),
                _ => batches.push(vec![(statement, values)]),
            }
        }
        let writes: Vec<_> = partitions.into_values().flatten().map(|batch| self.write_batch(batch)).collect();
        stream::iter(writes).buffer_unordered(WRITES_AT_ONCE).try_collect().await
    }

    async fn write_batch<V: SerializeRow>(&self, rows: Vec<(&PreparedStatement, V)>) -> Result<(), Error> {
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        let mut values = Vec::with_capacity(rows.len());
        for (statement, row) in rows {
            batch.append_statement(statement.clone());
            values.push(row);
        }
        self.session.batch(&batch, values).await.map(|_| ()).map_err(|cause| failed(&cause))
    }

    /// All rows of an answer. The statement limits them.
    async fn rows<R>(&self, statement: &PreparedStatement, values: impl SerializeRow) -> Result<Vec<R>, Error>
    where
        R: for<'row> DeserializeRow<'row, 'row>,
    {
        let answer = self.session.execute_unpaged(statement, values).await.map_err(|cause| failed(&cause))?;
        let answer = answer.into_rows_result().map_err(|cause| damaged(STORE, cause))?;
        let rows = answer.rows::<R>().map_err(|cause| damaged(STORE, cause))?;
        rows.map(|row| row.map_err(|cause| damaged(STORE, cause))).collect()
    }

    /// Up to `limit` rows of a partition, in several requests where they are many. `values` are those of a request for so
    /// many rows after the last one.
    async fn many_rows<R, V>(
        &self,
        statement: &PreparedStatement,
        limit: u32,
        values: impl Fn(Option<&R>, i32) -> V + Send + Sync,
    ) -> Result<Vec<R>, Error>
    where
        R: for<'row> DeserializeRow<'row, 'row> + Send + Sync,
        V: SerializeRow + Send + Sync,
    {
        let mut rows = Vec::new();
        let mut left = limit;
        while left > 0 {
            let asked = left.min(ROWS_A_REQUEST_MAX);
            let values = values(rows.last(), i32::try_from(asked).unwrap_or(i32::MAX));
            let more = self.rows::<R>(statement, values).await?;
            let was_last = more.len() < asked as usize;
            rows.extend(more);
            if was_last {
                break;
            }
            left -= asked;
        }
        Ok(rows)
    }
}

/// A stored number that only some values are allowed for, such as an id.
fn number<T: TryFrom<i64>>(column: &str, number: i64) -> Result<T, Error> {
    T::try_from(number).map_err(|_| damaged(STORE, format_args!("{column} = {number}")))
}

async fn connect(url: &ScyllaUrl, keyspace: &str) -> Result<Session, OpenError> {
    let profile =
        ExecutionProfile::builder().consistency(Consistency::LocalQuorum).request_timeout(Some(REQUEST_MAX)).build();
    let mut builder = SessionBuilder::new()
        .known_nodes(&url.nodes)
        .connection_timeout(CONNECT_MAX)
        .default_execution_profile_handle(profile.into_handle())
        // Other keyspaces of a shared cluster are none of ours.
        .keyspaces_to_fetch([keyspace])
        .schema_agreement_timeout(AGREEMENT_MAX);
    if let Some((user, password)) = &url.credentials {
        builder = builder.user(user, password);
    }
    match tokio::time::timeout(SESSION_MAX, builder.build()).await {
        Ok(session) => session.map_err(|cause| unusable(url, cause)),
        Err(_) => Err(unusable(url, format_args!("no node answers within {SESSION_MAX:?}"))),
    }
}

fn unusable(url: &ScyllaUrl, cause: impl fmt::Display) -> OpenError {
    OpenError::Unusable { store: STORE, place: format!("scylla://{}", url.nodes.join(",")), cause: cause.to_string() }
}
