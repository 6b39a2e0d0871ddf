//! `freshet timeline | relay | ranking | edge`: one role alone, on stores that other pods share.

use std::sync::Arc;

use chassis::{Clock, Pod, Random, drain, telemetry::Telemetry};
use clap::ValueEnum;
use store::Stores;
use tokio::net::TcpListener;

use crate::{
    assembly::Assembly,
    run::{self, RunError},
    settings::Settings,
};

/// What a pod does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    Timeline,
    Relay,
    Ranking,
    Edge,
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Relay => "relay",
            Self::Ranking => "ranking",
            Self::Edge => "edge",
        }
    }

    /// The groups of keys that only this role reads.
    pub(crate) const fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Timeline => &["timeline", "people"],
            Self::Relay => &["relay"],
            Self::Ranking => &["ranking"],
            Self::Edge => &["edge"],
        }
    }

    /// The edge talks to the sets and to the timeline role, and to no other store.
    fn unshared_stores(self, settings: &Settings) -> Vec<&'static str> {
        let mut embedded = settings.stores.embedded();
        embedded.retain(|key| self != Self::Edge || *key == "stores.sets");
        embedded
    }
}

/// Runs the role until a signal asks to stop, then drains.
pub(crate) async fn run(
    role: Role,
    settings: Settings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> Result<(), RunError> {
    let stop = drain::requested().map_err(RunError::Signals)?;
    let unshared = role.unshared_stores(&settings);
    if !unshared.is_empty() {
        return Err(RunError::Embedded(unshared));
    }
    let keyring = settings.keyring.clone().ok_or(RunError::NoKeys)?;
    let telemetry = Telemetry::start(&settings.telemetry).map_err(RunError::Telemetry)?;
    let listener = listen(role, &settings).await?;
    let (address, grace) = (run::address(&listener), settings.drain_grace);
    let assembly = Assembly { settings, keyring, clock, random };
    let pod = assembly.pod(role.name());
    if let Err(error) = start(role, &assembly, &pod, listener).await {
        drain::drain(&pod, grace).await;
        return Err(error);
    }
    println!("{} is ready on {address}", pod.name());
    run::until_stopped(stop, std::slice::from_ref(&pod), None, grace, telemetry).await
}

async fn listen(role: Role, settings: &Settings) -> Result<TcpListener, RunError> {
    let listen = &settings.listen;
    match role {
        Role::Timeline => run::bind("timeline.listen", listen.timeline).await,
        Role::Relay => run::bind("relay.listen", listen.relay).await,
        Role::Ranking => run::bind("ranking.listen", listen.ranking).await,
        Role::Edge => run::bind("edge.listen", listen.edge).await,
    }
}

/// Opens the stores that the role needs, and no others, and starts it.
async fn start(role: Role, assembly: &Assembly, pod: &Pod, listener: TcpListener) -> Result<(), RunError> {
    let (config, parts) = (&assembly.settings.stores, assembly.store_parts(pod));
    match role {
        Role::Timeline => assembly.timeline(pod, Stores::open(config, &parts).await?, listener).await?,
        Role::Relay => assembly.relay(pod, Stores::open(config, &parts).await?, listener)?,
        Role::Ranking => {
            let ledger = config.open_ledger(&parts).await?;
            let sets = config.open_sets(&parts).await?;
            let event_log = config.open_event_log(&parts, &ledger).await?;
            assembly.ranking(pod, (ledger, sets, event_log), listener)?;
        }
        Role::Edge => {
            let timeline_url = assembly.settings.timeline_url.clone();
            assembly.edge(pod, config.open_sets(&parts).await?, listener, timeline_url)?;
        }
    }
    Ok(())
}
