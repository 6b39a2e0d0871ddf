//! Connections: what each is set to, when one is thrown away, and how many there are.

use std::{str::FromStr as _, time::Duration};

use sqlx::{
    Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;

/// How long a caller waits for a free connection, or for a new one.
const ACQUIRE_MAX: Duration = Duration::from_secs(3);
/// A connection that lay unused for so long is asked whether it still lives.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// How long it may take to answer that.
const CHECK_MAX: Duration = Duration::from_secs(2);
/// So old a connection is closed, so that pods find their way to a server that was added.
const LIFE_MAX: Duration = Duration::from_secs(15 * 60);

/// What the names of our sessions begin with, by which they are told from those of others.
pub(super) const APPLICATION: &str = "freshet ";

/// What the server itself ends, should the pod be too slow or frozen: it is told before the pod gives up. A change is
/// acknowledged only when it is on the disk, whatever the database's default is.
const SETTINGS: &str = "SELECT \
    set_config('statement_timeout', '4s', false), \
    set_config('lock_timeout', '3s', false), \
    set_config('idle_in_transaction_session_timeout', '5s', false), \
    set_config('default_transaction_isolation', 'read committed', false), \
    CASE WHEN current_setting('server_version_num')::INT >= 170000 \
        THEN set_config('transaction_timeout', '5s', false) END, \
    CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END";

/// Where a URL leads. The server shows the pod's name beside its connections.
pub(super) fn options(url: &str, pod: &str) -> sqlx::Result<PgConnectOptions> {
    Ok(PgConnectOptions::from_str(url)?.application_name(&format!("{APPLICATION}{pod}")))
}

/// Connections for reads and changes.
pub(super) fn pool(options: &PgConnectOptions, connections_max: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(ACQUIRE_MAX)
        .max_lifetime(LIFE_MAX)
        .test_before_acquire(false)
        .after_connect(|connection, _| {
            Box::pin(async move { sqlx::query(SETTINGS).execute(connection).await.map(|_| ()) })
        })
        .before_acquire(|connection, state| {
            Box::pin(async move { Ok(state.idle_for < TRUSTED_FOR || lives(connection).await) })
        })
        .after_release(|connection, _| Box::pin(async move { Ok(is_writable(connection).await) }))
        .connect_lazy_with(options.clone())
}

/// The one connection that listens.
pub(super) fn listening_pool(options: &PgConnectOptions) -> PgPool {
    PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_MAX)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.clone())
}

async fn lives(connection: &mut PgConnection) -> bool {
    matches!(timeout(CHECK_MAX, connection.ping()).await, Ok(Ok(())))
}

/// Asked when a connection comes back. A caller that gave up may have left an answer under way; when that does not come
/// soon, the network is cut, and without a limit the connection would count as used until the kernel notices. A server
/// that others have taken over from answers, and is not for us any more.
async fn is_writable(connection: &mut PgConnection) -> bool {
    let in_recovery = sqlx::query_scalar("SELECT pg_is_in_recovery()").fetch_one(connection);
    matches!(timeout(CHECK_MAX, in_recovery).await, Ok(Ok(false)))
}
