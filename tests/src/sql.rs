//! SQL beside the ledger's own, on either database: for what no caller can do or see.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

/// A connection to a ledger's database.
pub enum Sql {
    /// To the embedded one's file.
    Sqlite(SqliteConnection),
    /// To a PostgreSQL server.
    Postgres(PgConnection),
}

impl Sql {
    /// Connects to the ledger at this URL.
    pub async fn connect(url: &str) -> Self {
        if url.starts_with("sqlite:") {
            Self::Sqlite(SqliteConnection::connect(url).await.expect("the ledger's file"))
        } else {
            Self::Postgres(PgConnection::connect(url).await.expect("PostgreSQL"))
        }
    }

    /// Runs statements.
    pub async fn run(&mut self, statements: &str) {
        let statements = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
        match self {
            Self::Sqlite(connection) => statements.execute(connection).await.map(|_| ()),
            Self::Postgres(connection) => statements.execute(connection).await.map(|_| ()),
        }
        .expect("the statements run");
    }

    /// The only column of each row, which is text.
    pub async fn texts(&mut self, query: &str) -> Vec<String> {
        let query = AssertSqlSafe(query.to_owned());
        match self {
            Self::Sqlite(connection) => sqlx::query_scalar(query).fetch_all(connection).await,
            Self::Postgres(connection) => sqlx::query_scalar(query).fetch_all(connection).await,
        }
        .expect("rows")
    }
}
