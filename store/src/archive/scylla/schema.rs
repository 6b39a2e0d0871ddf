//! The archive's keyspace and tables: made by a migration, checked when the archive is opened.
//!
//! ScyllaDB puts schema changes in order by itself, and so does a Cassandra of one node. Several nodes of a Cassandra before
//! 6 do not: there only one migration may run at a time.

use std::time::Duration;

use scylla::{
    client::session::Session,
    errors::{DbError, ExecutionError, RequestAttemptError},
    statement::{Consistency, SerialConsistency, unprepared::Statement},
};

use super::{STORE, connect, unusable};
use crate::{
    OpenError,
    config::{Config, ScyllaUrl},
    migrate::{Mode, Step},
};

/// The schema of this release. It rises with every change.
const VERSION: i32 = 3;
/// How long a removal is remembered by every node: longer than the event log keeps what could undo it (7 days).
const GC_GRACE_SECONDS: u32 = 10 * 24 * 60 * 60;
/// The tables that rows of the ledger are copied to: name, columns, order.
const TABLES: [(&str, &str, &str); 5] = [
    (
        "posts_by_author",
        "author bigint, id bigint, body text, created_at_ms bigint, PRIMARY KEY (author, id)",
        "CLUSTERING ORDER BY (id DESC)",
    ),
    (
        "following_by_user",
        "follower bigint, followee bigint, PRIMARY KEY (follower, followee)",
        "CLUSTERING ORDER BY (followee ASC)",
    ),
    // Schema 2 had followers_by_user, a partition for each followee. It is left alone: pods of that release write to it.
    (
        "followers_by_user_bucket",
        "followee bigint, bucket bigint, follower bigint, PRIMARY KEY ((followee, bucket), follower)",
        "CLUSTERING ORDER BY (follower ASC)",
    ),
    ("public_buckets", "scope text, bucket bigint, PRIMARY KEY (scope, bucket)", "CLUSTERING ORDER BY (bucket DESC)"),
    (
        "public_posts",
        "scope text, bucket bigint, shard bigint, id bigint, author bigint, body text, created_at_ms bigint, \
         PRIMARY KEY ((scope, bucket, shard), id)",
        "CLUSTERING ORDER BY (id DESC)",
    ),
];
/// The waits between tries of a schema change: others may be at the same one.
const RETRIES: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(2)];

/// What there is of the schema.
struct Found {
    keyspace: bool,
    tables: Vec<String>,
    version: Option<i32>,
}

/// A part of the schema: what it is, and the statement that makes it.
struct Part {
    what: String,
    statement: String,
}

/// Makes what is missing, and tells what.
pub(crate) async fn migrate(url: &ScyllaUrl, config: &Config, mode: Mode) -> Result<Vec<Step>, OpenError> {
    let keyspace = config.namespace.keyspace();
    let session = connect(url, keyspace).await?;
    let found = look(&session, keyspace).await.map_err(|cause| unusable(url, cause))?;
    refuse_newer(url, keyspace, &found)?;
    let mut steps = Vec::new();
    let parts = end_of_generation(keyspace, &found).into_iter().chain(missing(keyspace, config.replication, &found));
    for Part { what, statement } in parts {
        if mode == Mode::Apply {
            make(&session, &statement).await.map_err(|cause| unusable(url, format_args!("{what}: {cause}")))?;
        }
        steps.push(Step { store: STORE, what });
    }
    Ok(steps)
}

/// That the schema is the one of this release.
pub(super) async fn check(session: &Session, url: &ScyllaUrl, keyspace: &str) -> Result<(), OpenError> {
    let found = look(session, keyspace).await.map_err(|cause| unusable(url, cause))?;
    refuse_newer(url, keyspace, &found)?;
    match missing(keyspace, 1, &found).first() {
        None => Ok(()),
        Some(part) => Err(unusable(url, format_args!("there is no {}: run `freshet migrate` first", part.what))),
    }
}

fn refuse_newer(url: &ScyllaUrl, keyspace: &str, found: &Found) -> Result<(), OpenError> {
    match found.version {
        Some(version) if version > VERSION => {
            let cause =
                format!("keyspace {keyspace} has schema {version}, and this binary knows {VERSION}: it is too old");
            Err(unusable(url, cause))
        }
        _ => Ok(()),
    }
}

/// The parts that are not there, in the order in which they are made.
fn missing(keyspace: &str, replication: u16, found: &Found) -> Vec<Part> {
    let mut parts = Vec::new();
    if !found.keyspace {
        // In every datacenter, whatever its name.
        let statement = format!(
            "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = \
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replication}}}"
        );
        parts.push(Part { what: format!("keyspace {keyspace}"), statement });
    }
    let is_found = |table: &str| found.tables.iter().any(|found| found == table);
    let own = [
        ("schema_versions", "part text PRIMARY KEY, version int"),
        ("generations", "part text PRIMARY KEY, id bigint"),
    ];
    for (table, columns) in own.into_iter().filter(|(table, _)| !is_found(table)) {
        let statement = format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} ({columns})");
        parts.push(Part { what: format!("table {keyspace}.{table}"), statement });
    }
    for (table, columns, order) in TABLES.into_iter().filter(|(table, ..)| !is_found(table)) {
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.{table} ({columns}) \
             WITH {order} AND gc_grace_seconds = {GC_GRACE_SECONDS}"
        );
        parts.push(Part { what: format!("table {keyspace}.{table}"), statement });
    }
    if found.version == Some(1) && is_found("posts_by_author") {
        // Schema 1 left it to the server's default.
        let statement = format!("ALTER TABLE {keyspace}.posts_by_author WITH gc_grace_seconds = {GC_GRACE_SECONDS}");
        parts.push(Part { what: format!("the grace of table {keyspace}.posts_by_author"), statement });
    }
    if found.version.is_none_or(|version| version < VERSION) {
        // With the version as its timestamp, an older release that is late does not undo it.
        let statement = format!(
            "INSERT INTO {keyspace}.schema_versions (part, version) VALUES ('archive', {VERSION}) USING TIMESTAMP {VERSION}"
        );
        parts.push(Part { what: format!("schema {VERSION} of keyspace {keyspace}"), statement });
    }
    parts
}

/// What must be done before a table is made again that was lost alone. What was in it is lost, so that this is not the archive
/// any more that the mark was made for. The mark goes before the table comes: while it stands, nobody can have read from
/// the new one.
fn end_of_generation(keyspace: &str, found: &Found) -> Option<Part> {
    let is_found = |table: &str| found.tables.iter().any(|found| found == table);
    let is_marked = is_found("generations") && TABLES.iter().any(|(table, ..)| !is_found(table));
    is_marked.then(|| Part {
        what: format!("an end to the generation of keyspace {keyspace}"),
        statement: format!("DELETE FROM {keyspace}.generations WHERE part = 'archive' IF EXISTS"),
    })
}

async fn look(session: &Session, keyspace: &str) -> Result<Found, String> {
    let names = |statement: &'static str| async move {
        let answer = session.query_unpaged(statement, (keyspace,)).await.map_err(|cause| cause.to_string())?;
        let rows = answer.into_rows_result().map_err(|cause| cause.to_string())?;
        let names = rows.rows::<(String,)>().map_err(|cause| cause.to_string())?;
        names.map(|row| row.map(|(name,)| name).map_err(|cause| cause.to_string())).collect::<Result<Vec<_>, _>>()
    };
    let keyspaces = names("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?").await?;
    let tables = names("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?").await?;
    let mut version = None;
    if tables.iter().any(|table| table == "schema_versions") {
        let statement = format!("SELECT version FROM {keyspace}.schema_versions WHERE part = 'archive'");
        let answer = session.query_unpaged(statement, ()).await.map_err(|cause| cause.to_string())?;
        let rows = answer.into_rows_result().map_err(|cause| cause.to_string())?;
        version = rows.maybe_first_row::<(i32,)>().map_err(|cause| cause.to_string())?.map(|(version,)| version);
    }
    Ok(Found { keyspace: !keyspaces.is_empty(), tables, version })
}

/// Makes a part, and waits until all nodes know of it. All statements here can be done again.
async fn make(session: &Session, statement: &str) -> Result<(), ExecutionError> {
    let mut statement = Statement::new(statement);
    statement.set_is_idempotent(true);
    // What is written, and not a change of the schema, must be known in all datacentres: pods read in their own.
    statement.set_consistency(Consistency::EachQuorum);
    statement.set_serial_consistency(Some(SerialConsistency::Serial));
    statement.set_request_timeout(Some(super::AGREEMENT_MAX));
    let mut waits = RETRIES.into_iter();
    loop {
        match session.query_unpaged(statement.clone(), ()).await {
            Ok(_) => return Ok(()),
            Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(DbError::AlreadyExists { .. }, _))) => {
                return Ok(());
            }
            Err(cause) => match waits.next() {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(cause),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tables: &[&str], version: Option<i32>) -> Found {
        Found { keyspace: true, tables: tables.iter().map(|table| (*table).to_owned()).collect(), version }
    }

    fn names(found: &Found) -> Vec<String> {
        missing("blue", 3, found).into_iter().map(|part| part.what).collect()
    }

    fn every_table() -> Vec<&'static str> {
        TABLES.iter().map(|(table, ..)| *table).chain(["schema_versions", "generations"]).collect()
    }

    #[test]
    fn what_is_there_is_not_made_again() {
        let nothing = Found { keyspace: false, tables: Vec::new(), version: None };
        let all = [
            "keyspace blue",
            "table blue.schema_versions",
            "table blue.generations",
            "table blue.posts_by_author",
            "table blue.following_by_user",
            "table blue.followers_by_user_bucket",
            "table blue.public_buckets",
            "table blue.public_posts",
            "schema 3 of keyspace blue",
        ];
        assert_eq!(names(&nothing), all);
        assert_eq!(names(&found(&["schema_versions"], None)), all[2..]);
        assert_eq!(names(&found(&every_table(), Some(VERSION))), Vec::<String>::new());
        assert!(missing("blue", 3, &nothing)[0].statement.contains("'replication_factor': 3"));
    }

    #[test]
    fn an_archive_of_the_first_schema_gets_what_it_lacks() {
        let steps = names(&found(&["posts_by_author", "schema_versions"], Some(1)));
        let expected = [
            "table blue.generations",
            "table blue.following_by_user",
            "table blue.followers_by_user_bucket",
            "table blue.public_buckets",
            "table blue.public_posts",
            "the grace of table blue.posts_by_author",
            "schema 3 of keyspace blue",
        ];
        assert_eq!(steps, expected);
    }

    #[test]
    fn an_archive_of_the_second_schema_gets_its_followers_in_buckets_and_is_filled_again() {
        let mut tables = every_table();
        tables.retain(|table| *table != "followers_by_user_bucket");
        tables.push("followers_by_user");
        let before = found(&tables, Some(2));
        assert_eq!(names(&before), ["table blue.followers_by_user_bucket", "schema 3 of keyspace blue"]);
        assert!(end_of_generation("blue", &before).is_some());
    }

    #[test]
    fn a_table_that_was_lost_ends_the_generation_before_it_is_made_again() {
        let left: Vec<_> = every_table().into_iter().filter(|table| *table != "public_posts").collect();
        let lost = found(&left, Some(VERSION));
        assert_eq!(names(&lost), ["table blue.public_posts"]);
        assert!(end_of_generation("blue", &lost).is_some());
        assert!(end_of_generation("blue", &found(&every_table(), Some(VERSION))).is_none());
        assert!(end_of_generation("blue", &found(&["posts_by_author"], Some(1))).is_none());
    }

    #[test]
    fn a_schema_of_a_later_release_is_refused() {
        let url = ScyllaUrl { nodes: vec!["here:9042".to_owned()], credentials: None };
        assert!(refuse_newer(&url, "blue", &found(&[], Some(VERSION))).is_ok());
        let told = refuse_newer(&url, "blue", &found(&[], Some(VERSION + 1))).unwrap_err().to_string();
        assert!(told.contains("keyspace blue has schema 4, and this binary knows 3"), "{told}");
    }
}
