//! All settings of all roles. Every command reads them whole, so that one file serves every role and a mistake in any part
//! of it is told at once.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use chassis::{
    Clock,
    config::{Invalid, Keys, Layers, Setting},
    grpc, telemetry,
    token::{KEYS_ALLOWED, Keyring},
};

/// Where the ledger lies within the data folder.
const LEDGER_FILE: &str = "freshet.db";
const TIMELINE_URL: &str = "http://127.0.0.1:7701";

/// Where each role listens.
#[derive(Clone, Copy, Debug)]
pub struct Listen {
    /// HTTP and event streams.
    pub edge: SocketAddr,
    /// gRPC of people, posts and timelines.
    pub timeline: SocketAddr,
    /// gRPC of the relay: its health.
    pub relay: SocketAddr,
    /// gRPC of hot posts.
    pub ranking: SocketAddr,
}

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder with all data of an embedded set-up.
    pub data: PathBuf,
    /// The keys of internal tokens, where they are given.
    pub keyring: Option<Keyring>,
    /// How long a pod may take to stop.
    pub drain_grace: Duration,
    /// Logs and traces.
    pub telemetry: telemetry::Config,
    /// The limits of gRPC servers.
    pub grpc: grpc::Config,
    /// Where data lives.
    pub stores: store::Config,
    /// Where each role listens.
    pub listen: Listen,
    /// Where the edge finds the timeline role.
    pub timeline_url: String,
    /// The timeline role's own.
    pub timeline: timeline::Config,
    /// The ranking role's own.
    pub ranking: ranking::Config,
    /// The edge role's own.
    pub edge: edge::Config,
}

impl Settings {
    /// Reads and checks all keys.
    pub fn read(layers: Layers, clock: &Arc<dyn Clock>) -> Result<(Self, Vec<Setting>), Invalid> {
        let mut keys = Keys::new(layers);
        let settings = Self::read_keys(&mut keys, clock);
        Ok((settings, keys.finish()?))
    }

    fn read_keys(keys: &mut Keys, clock: &Arc<dyn Clock>) -> Self {
        let folder = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        let about = "the folder with all data of an embedded set-up";
        let data =
            keys.value("data", PathBuf::from("freshet-data"), "freshet-data".into(), "a folder's path", about, folder);
        let second = Duration::from_secs(1);
        let about = "the keys that sign internal tokens; left out: one is made and kept in the data folder";
        Self {
            stores: store::Config::read(keys, &data.join(LEDGER_FILE)),
            data,
            keyring: keys
                .secret("auth.keys", None, KEYS_ALLOWED, about, |text| Keyring::parse(text, clock.clone()).map(Some)),
            drain_grace: keys.duration(
                "drain.grace",
                10 * second,
                second..=3600 * second,
                "how long a pod may take to stop",
            ),
            telemetry: telemetry::Config::read(keys),
            grpc: grpc::Config::read(keys),
            listen: Listen {
                edge: keys.address("edge.listen", local(7700), "where browsers come: HTTP and event streams"),
                timeline: keys.address("timeline.listen", local(7701), "gRPC of people, posts and timelines"),
                relay: keys.address("relay.listen", local(7702), "gRPC of the relay: its health"),
                ranking: keys.address("ranking.listen", local(7703), "gRPC of hot posts"),
            },
            timeline_url: keys.value(
                "edge.timeline_url",
                TIMELINE_URL.to_owned(),
                TIMELINE_URL.to_owned(),
                "an http:// address such as http://timeline:7701",
                "where the edge finds the timeline role; freshet dev knows it by itself",
                |text| text.starts_with("http://").then(|| text.to_owned()),
            ),
            timeline: timeline::Config::read(keys),
            ranking: ranking::Config::read(keys),
            edge: edge::Config::read(keys),
        }
    }
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
