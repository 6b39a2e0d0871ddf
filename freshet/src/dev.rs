//! `freshet dev`: all roles in one process on embedded stores, data in one folder.

use std::{fmt::Write as _, fs, path::Path, sync::Arc, time::Instant};

use chassis::{Clock, Pod, Random, drain, telemetry::Telemetry};
use store::Stores;
use tokio::net::TcpListener;

use crate::{
    assembly::Assembly,
    run::{self, RunError, bind},
    settings::{Listen, Settings},
    token_key,
};

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
) -> Result<(), RunError> {
    let began = Instant::now();
    let stop = drain::requested().map_err(RunError::Signals)?;
    let telemetry = Telemetry::start(&settings.telemetry).map_err(RunError::Telemetry)?;
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

    run::until_stopped(stop, &pods, Some(&foundation), grace, telemetry).await
}

async fn start(assembly: &Assembly, stores: &Stores, ports: Ports) -> Result<Vec<Pod>, RunError> {
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
    async fn bind(listen: &Listen) -> Result<Self, RunError> {
        Ok(Self {
            edge: bind("edge.listen", listen.edge).await?,
            timeline: bind("timeline.listen", listen.timeline).await?,
            relay: bind("relay.listen", listen.relay).await?,
            ranking: bind("ranking.listen", listen.ranking).await?,
        })
    }

    /// Where the ports really are: port 0 took a free one.
    fn addresses(&self) -> Listen {
        Listen {
            edge: run::address(&self.edge),
            timeline: run::address(&self.timeline),
            relay: run::address(&self.relay),
            ranking: run::address(&self.ranking),
        }
    }
}

/// Makes the folder; with `fresh`, takes away what an earlier run left, and nothing else.
fn prepare_folder(settings: &Settings, fresh: bool) -> Result<(), RunError> {
    let data = &settings.data;
    let failed = |cause| RunError::Folder { folder: data.clone(), cause };
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
