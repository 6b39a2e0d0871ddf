//! The way to a Redis server or a Cluster: connections that come back by themselves, and a limit on how long a call may take.

use std::{future::Future, path::Path, time::Duration};

use redis::{
    Client, Cmd, ErrorKind, FromRedisValue, IntoConnectionInfo as _, Pipeline, RedisError, RedisFuture, RedisResult,
    TlsCertificates, Value,
    aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, MultiplexedConnection},
    cluster::{ClusterClient, ClusterClientBuilder},
    cluster_async::ClusterConnection,
    io::tcp::TcpSettings,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};

use super::error::error;
use crate::Error;

const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Far more than an answer takes: it is there for a server that has frozen.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// Connecting again and trying again included.
const CALL_WITHIN: Duration = Duration::from_secs(5);
/// What was sent and not confirmed for so long shows that the network is gone; nothing else would close the connection.
const UNCONFIRMED_MAX: Duration = Duration::from_secs(10);
/// Waits of up to 50, 100, 200, 400 ms: under a second until a caller hears that there is no server.
const CONNECT_RETRIES: usize = 4;
const RETRY_AFTER_MIN: Duration = Duration::from_millis(50);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1);
/// Of a Cluster's call: sent to another node, or to the same one again.
const CLUSTER_RETRIES: u32 = 4;
const _: () = assert!(ANSWER_WITHIN.as_millis() < CALL_WITHIN.as_millis());

/// Where the sets are, and how to connect.
pub(super) enum Server {
    /// One server.
    Single(Box<Client>),
    /// A Cluster: for calls, and for calls that may wait.
    Cluster { calls: Box<ClusterClient>, waits: Box<ClusterClient> },
}

impl Server {
    /// One server, by `redis://` or `rediss://`.
    pub(super) fn single(url: &str, authority: Option<&Path>) -> Result<Self, String> {
        let info = url.into_connection_info().map_err(|cause| cause.to_string())?.set_tcp_settings(tcp_settings());
        if url.starts_with("rediss:") {
            choose_cryptography();
        }
        let Some(path) = authority.filter(|_| url.starts_with("rediss:")) else {
            return Client::open(info).map(Box::new).map(Self::Single).map_err(|cause| cause.to_string());
        };
        let because = |cause: &dyn std::fmt::Display| format!("the authority in {}: {cause}", path.display());
        let root_cert = Some(std::fs::read(path).map_err(|cause| because(&cause))?);
        let client = Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert });
        client.map(Box::new).map(Self::Single).map_err(|cause| because(&cause))
    }

    /// A Cluster, by any of its nodes. `wait_max`: how long a call of a waiting link waits at the server.
    pub(super) fn cluster(nodes: &[String], wait_max: Duration) -> Result<Self, String> {
        let client = |longer: Duration| {
            ClusterClientBuilder::new(nodes.iter().map(String::as_str))
                .tcp_settings(tcp_settings())
                .connection_timeout(CONNECT_WITHIN)
                .response_timeout(ANSWER_WITHIN + longer)
                .overall_response_timeout(Some(CALL_WITHIN + longer))
                .retries(CLUSTER_RETRIES)
                .min_retry_wait(millis(RETRY_AFTER_MIN))
                .max_retry_wait(millis(RETRY_AFTER_MAX))
                .build()
                .map(Box::new)
                .map_err(|cause| cause.to_string())
        };
        Ok(Self::Cluster { calls: client(Duration::ZERO)?, waits: client(wait_max)? })
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self, Self::Cluster { .. })
    }

    /// A link for calls, which many callers share.
    pub(super) async fn link(&self) -> RedisResult<Link> {
        let line = match self {
            Self::Single(client) => {
                let config = ConnectionManagerConfig::new()
                    .set_connection_timeout(Some(CONNECT_WITHIN))
                    .set_response_timeout(Some(ANSWER_WITHIN))
                    .set_number_of_retries(CONNECT_RETRIES)
                    .set_min_delay(RETRY_AFTER_MIN)
                    .set_max_delay(RETRY_AFTER_MAX);
                Line::Single(ConnectionManager::new_with_config(Client::clone(client), config).await?)
            }
            Self::Cluster { calls, .. } => Line::Cluster(calls.get_async_connection().await?),
        };
        Ok(Link { line, within: CALL_WITHIN })
    }

    /// A link for one caller whose calls wait up to `wait_max` at the server: on a shared one all others would wait with it.
    pub(super) async fn waiting_link(&self, wait_max: Duration) -> Result<Link, Error> {
        let connect = async {
            Ok(match self {
                Self::Single(client) => {
                    let config = redis::AsyncConnectionConfig::new()
                        .set_connection_timeout(Some(CONNECT_WITHIN))
                        .set_response_timeout(Some(ANSWER_WITHIN + wait_max));
                    Line::Waiting(client.get_multiplexed_async_connection_with_config(&config).await?)
                }
                Self::Cluster { waits, .. } => Line::Cluster(waits.get_async_connection().await?),
            })
        };
        let line = limited(CALL_WITHIN, connect).await.map_err(error)?;
        Ok(Link { line, within: CALL_WITHIN + wait_max })
    }
}

/// Connections to the server; clones share them.
#[derive(Clone)]
pub(super) struct Link {
    line: Line,
    within: Duration,
}

#[derive(Clone)]
enum Line {
    Single(ConnectionManager),
    Waiting(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// What is asked: one command, or several about keys of one slot.
#[derive(Clone, Copy)]
enum Question<'a> {
    One(&'a Cmd),
    Several(&'a Pipeline),
}

impl Link {
    /// Sends one command.
    pub(super) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Error> {
        self.try_ask(command).await.map_err(error)
    }

    /// Sends one command; an error as the driver has it.
    pub(super) async fn try_ask<T: FromRedisValue>(&self, command: &Cmd) -> RedisResult<T> {
        limited(self.within, self.put(Question::One(command))).await
    }

    /// Sends several commands, all about keys of one slot.
    pub(super) async fn ask_all<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, Error> {
        limited(self.within, self.put(Question::Several(commands))).await.map_err(error)
    }

    /// A connection that was closed at the other end is noticed by the next call only, which is then put again, to a new
    /// connection. Every call of the sets may be done twice.
    async fn put<T: FromRedisValue>(&self, question: Question<'_>) -> RedisResult<T> {
        match self.put_once(question).await {
            Err(cause) if cause.is_connection_dropped() && !cause.is_connection_refusal() => {
                self.put_once(question).await
            }
            answer => answer,
        }
    }

    async fn put_once<T: FromRedisValue>(&self, question: Question<'_>) -> RedisResult<T> {
        let mut line = self.line.clone();
        match question {
            Question::One(command) => command.query_async(&mut line).await,
            Question::Several(commands) => commands.query_async(&mut line).await,
        }
    }
}

impl ConnectionLike for Line {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(line) => line.req_packed_command(command),
            Self::Waiting(line) => line.req_packed_command(command),
            Self::Cluster(line) => line.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(line) => line.req_packed_commands(commands, offset, count),
            Self::Waiting(line) => line.req_packed_commands(commands, offset, count),
            Self::Cluster(line) => line.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(line) => line.get_db(),
            Self::Waiting(line) => line.get_db(),
            Self::Cluster(line) => line.get_db(),
        }
    }
}

/// Awaits an answer, but not for ever.
pub(super) async fn limited<T>(limit: Duration, answer: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
        Err(RedisError::from((ErrorKind::Io, "no answer", format!("within {} s", limit.as_secs()))))
    })
}

fn tcp_settings() -> TcpSettings {
    let settings = TcpSettings::default().set_nodelay(true);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNCONFIRMED_MAX);
    settings
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// TLS needs a provider of cryptography; where the process has chosen one already, it stays.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have been faster: then that one's choice stands.
        _ = aws_lc_rs::default_provider().install_default();
    }
}
