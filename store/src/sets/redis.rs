//! The sets in Redis: one server, one server by TLS, or a Cluster. What several writers touch is changed by scripts, each of
//! which is one step; what is only read, by plain commands.

mod attempts;
mod authors;
mod connections;
mod error;
mod homes;
mod hot;
mod keys;
mod link;
mod members;
mod pod_streams;
mod progress;
mod recents;
mod script;
mod sessions;
mod settled;

use std::{path::Path, sync::Arc, time::Duration};

use chassis::{Random, config::without_password};
use keys::Keys;
use link::{Link, Server, limited};
use pod_streams::Receivers;
use script::Scripts;

use crate::{
    OpenError,
    config::{Namespace, SetsUrl},
};

/// How long opening may take until the server counts as missing.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// All sets, in Redis.
pub(crate) struct Redis {
    link: Link,
    is_cluster: bool,
    keys: Keys,
    scripts: Scripts,
    receivers: Receivers,
    random: Arc<dyn Random>,
}

impl Redis {
    /// Connects, and sees that the server answers and is of the kind that the URL says.
    pub(crate) async fn open(
        url: &SetsUrl,
        authority: Option<&Path>,
        namespace: &Namespace,
        random: Arc<dyn Random>,
    ) -> Result<Self, OpenError> {
        let unusable = |cause: String| OpenError::Unusable { store: error::STORE, place: place(url), cause };
        let server = match url {
            SetsUrl::Redis(url) => Server::single(url, authority),
            SetsUrl::RedisCluster(nodes) => Server::cluster(nodes, pod_streams::WAIT_MAX),
            SetsUrl::Memory => Err("it is in the process".to_owned()),
        };
        let (server, keys) = (server.map_err(unusable)?, Keys::new(namespace));
        let asked = limited(OPEN_WITHIN, async {
            let link = server.link().await?;
            let kind: String = match server.is_cluster() {
                true => String::new(),
                false => link.try_ask(redis::cmd("INFO").arg("cluster")).await?,
            };
            let is_node = kind.contains("cluster_enabled:1");
            if !is_node {
                // Not PING, which a node of a Cluster that is down answers too.
                link.try_ask::<()>(redis::cmd("EXISTS").arg(keys.probe())).await?;
            }
            Ok((link, is_node))
        });
        let (link, is_node) = asked.await.map_err(|cause| unusable(cause.to_string()))?;
        if is_node {
            return Err(unusable("it is a node of a Cluster: use redis-cluster://HOST:PORT,HOST:PORT".to_owned()));
        }
        Ok(Self {
            link,
            is_cluster: server.is_cluster(),
            keys,
            scripts: Scripts::new(),
            receivers: Receivers::new(server),
            random,
        })
    }
}

fn place(url: &SetsUrl) -> String {
    match url {
        SetsUrl::Memory => "memory://".to_owned(),
        SetsUrl::Redis(url) => without_password(url),
        SetsUrl::RedisCluster(nodes) => nodes.iter().map(|node| without_password(node)).collect::<Vec<_>>().join(", "),
    }
}
