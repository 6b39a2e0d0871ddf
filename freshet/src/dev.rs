//! `freshet dev`: all roles in one process on embedded stores, data in one folder.

use std::{
    fmt::Write as _,
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use chassis::{
    Clock, Pod, Random,
    drain::{self, drain},
    telemetry::Telemetry,
};
use futures_util::future::{join_all, select_all};
use store::{OpenError, Stores};
use tokio::net::TcpListener;

use crate::{
    assembly::Assembly,
    settings::{Listen, Settings},
    token_key::{self, KeyError},
};

/// Why `freshet dev` does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DevError {
    #[error("cannot listen on {address} ({key}): {cause}; choose another with --set {key}=127.0.0.1:PORT")]
    Listen { key: &'static str, address: SocketAddr, cause: io::Error },
    #[error("cannot use the data folder {}: {cause}", folder.display())]
    Folder { folder: PathBuf, cause: io::Error },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("{0}")]
    Start(#[from] chassis::Error),
    #[error("{0}")]
    Telemetry(String),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error("a part that the process cannot stand without has failed; the log says which")]
    Failed,
}

/// Every port, bound before a store is touched.
struct Ports {
    edge: TcpListener,
    timeline: TcpListener,
    relay: TcpListener,
    ranking: TcpListener,
}

/// Runs until a signal asks to stop, then drains.
pub(crate) async fn run(
    settings: Settings,
    fresh: bool,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> Result<(), DevError> {
    let began = Instant::now();
    let stop = drain::requested().map_err(DevError::Signals)?;
    let telemetry = Telemetry::start(&settings.telemetry).map_err(DevError::Telemetry)?;
    let ports = Ports::bind(&settings.listen).await?;
    let addresses = ports.addresses();
    prepare_folder(&settings, fresh)?;
    let keyring = match settings.keyring.clone() {
        Some(keyring) => keyring,
        None => token_key::read_or_make(&settings.data, clock.clone(), &*random)?,
    };
    let grace = settings.drain_grace;
    let data = settings.data.clone();
    let assembly = Assembly { settings, keyring, clock, random };
    let foundation = assembly.pod("stores");
    let stores = Stores::open(&assembly.settings.stores, &assembly.store_parts(&foundation)).await?;
    let pods = start(&assembly, &stores, ports).await?;
    print!("{}", banner(&addresses, &data, began));

    let failed = select_all(pods.iter().chain([&foundation]).map(|pod| Box::pin(pod.tasks.failed())));
    let outcome = tokio::select! { () = stop => Ok(()), _ = failed => Err(DevError::Failed) };
    join_all(pods.iter().map(|pod| drain(pod, grace))).await;
    drain(&foundation, grace).await;
    telemetry.flush();
    outcome
}

async fn start(assembly: &Assembly, stores: &Stores, ports: Ports) -> Result<Vec<Pod>, DevError> {
    let timeline_url = format!("http://{}", ports.addresses().timeline);
    let [timeline, relay, ranking, edge] = ["timeline", "relay", "ranking", "edge"].map(|role| assembly.pod(role));
    assembly.timeline(&timeline, stores.clone(), ports.timeline).await?;
    assembly.relay(&relay, stores.clone(), ports.relay)?;
    let Stores { ledger, sets, event_log, .. } = stores.clone();
    assembly.ranking(&ranking, (ledger, sets.clone(), event_log), ports.ranking)?;
    assembly.edge(&edge, sets, ports.edge, timeline_url)?;
    Ok(vec![timeline, relay, ranking, edge])
}

impl Ports {
    async fn bind(listen: &Listen) -> Result<Self, DevError> {
        let bind = async |key, address| {
            TcpListener::bind(address).await.map_err(|cause| DevError::Listen { key, address, cause })
        };
        Ok(Self {
            edge: bind("edge.listen", listen.edge).await?,
            timeline: bind("timeline.listen", listen.timeline).await?,
            relay: bind("relay.listen", listen.relay).await?,
            ranking: bind("ranking.listen", listen.ranking).await?,
        })
    }

    /// Where the ports really are: port 0 took a free one.
    fn addresses(&self) -> Listen {
        let of =
            |listener: &TcpListener| listener.local_addr().unwrap_or_else(|_| SocketAddr::from(([127, 0, 0, 1], 0)));
        Listen {
            edge: of(&self.edge),
            timeline: of(&self.timeline),
            relay: of(&self.relay),
            ranking: of(&self.ranking),
        }
    }
}

/// Makes the folder; with `fresh`, takes away what an earlier run left, and nothing else.
fn prepare_folder(settings: &Settings, fresh: bool) -> Result<(), DevError> {
    let data = &settings.data;
    let failed = |cause| DevError::Folder { folder: data.clone(), cause };
    fs::create_dir_all(data).map_err(failed)?;
    if fresh {
        settings.stores.erase()?;
        token_key::erase(data).map_err(failed)?;
    }
    Ok(())
}

fn banner(at: &Listen, data: &Path, began: Instant) -> String {
    let Listen { edge, timeline, relay, ranking } = at;
    let elsewhere =
        if data == Path::new("freshet-data") { String::new() } else { format!(" --data {}", data.display()) };
    let mut text = String::new();
    _ = write!(
        text,
        r#"
Freshet is up after {} ms. Ctrl-C stops it; the data stays.

  edge      http://{edge}   HTTP and event streams for browsers
  timeline  {timeline}          gRPC: people, posts, timelines
  ranking   {ranking}          gRPC: hot posts
  relay     {relay}          gRPC: health only
  data      {}

A token for gRPC calls, as a service or as a person:

  cargo run -q -- token{elsewhere} --service me
  cargo run -q -- token{elsewhere} --user ID

Try it:

  TOKEN=$(cargo run -q -- token{elsewhere} --service me)
  grpcurl -plaintext -H "authorization: Bearer $TOKEN" -d '{{"handle":"ada","password":"correct horse"}}' {timeline} freshet.user.v1.UserService/SignUp
  curl -c jar -H 'content-type: application/json' -d '{{"handle":"ada","password":"correct horse"}}' http://{edge}/session

"#,
        began.elapsed().as_millis(),
        data.display(),
    );
    text
}
