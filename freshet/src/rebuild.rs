//! `freshet rebuild archive`: fills the archive from the ledger again, or watches the fill that runs.

use std::{sync::Arc, time::Duration};

use chassis::{
    Clock, Pod, Random,
    drain::{self, drain},
};
use store::{
    OpenError, Parts,
    archive::{Chunk, Filling, Generation},
    ledger::{FillLease, FillStatus},
};
use tokio::time::{Instant, sleep};

use crate::settings::Settings;

const GRACE: Duration = Duration::from_secs(5);
const TELL_EVERY: Duration = Duration::from_secs(1);
/// How long a relay has to take the work up before this process does it: longer than relays take to look for it.
const RELAYS_FIRST: Duration = Duration::from_secs(4);
const STOPPED: &str = "stopped: a relay goes on with it, or the next freshet rebuild archive";

/// Why there is no archive to rebuild.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RebuildError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("cannot wait for signals: {0}")]
    Signals(std::io::Error),
}

/// Fills the archive, or watches who does, until it is complete or a signal asks to stop. With `again`, one that is complete
/// begins anew.
pub(crate) async fn archive(
    settings: Settings,
    again: bool,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> Result<(), RebuildError> {
    if settings.stores.archive_is_the_ledger() {
        println!("the archive is the ledger's own tables: there is nothing to rebuild");
        return Ok(());
    }
    let stop = drain::requested().map_err(RebuildError::Signals)?;
    let pod = Pod::new(format!("rebuild-{:016x}", random.number()));
    let ended = async {
        let parts = Parts { pod: pod.clone(), clock, random };
        let ledger = settings.stores.open_ledger(&parts).await?;
        match settings.stores.open_archive(&parts, &ledger).await?.filling {
            Some(filling) => watch(&filling, pod.name(), again, stop).await,
            None => Ok(()),
        }
    };
    let ended = ended.await;
    drain(&pod, GRACE).await;
    ended
}

/// A fill as it was when it was last told of.
struct Told {
    rows: u64,
    at: Instant,
}

async fn watch(
    filling: &Filling,
    owner: &str,
    again: bool,
    stop: impl Future<Output = ()>,
) -> Result<(), RebuildError> {
    if again
        && let Some(generation) = filling.generation().await?
        && filling.begin_again(generation).await?
    {
        println!("archive {generation} is filled again");
    }
    let mut mine = None;
    let ended = tokio::select! {
        () = stop => None,
        ended = until_complete(filling, owner, &mut mine) => Some(ended),
    };
    if let Some(lease) = &mine {
        // Whoever is next need not wait until it runs out.
        filling.release(lease).await?;
    }
    ended.unwrap_or_else(|| {
        println!("{}", if mine.is_some() { STOPPED } else { "stopped watching: the fill goes on" });
        Ok(())
    })
}

/// Tells how far it is, each second, until the archive is complete. What nobody does is done here.
async fn until_complete(filling: &Filling, owner: &str, mine: &mut Option<FillLease>) -> Result<(), RebuildError> {
    let mut told: Option<Told> = None;
    let mut idle_since = Instant::now();
    loop {
        let is_due = told.as_ref().is_none_or(|told| told.at.elapsed() >= TELL_EVERY);
        if is_due && let Some(generation) = filling.generation().await? {
            let status = filling.status(generation).await?;
            if let Some(status) = &status {
                println!("{}", line(generation, status, told.as_ref()));
                told = Some(Told { rows: status.rows_done, at: Instant::now() });
            }
            match status {
                Some(FillStatus { complete: true, .. }) => return Ok(()),
                Some(FillStatus { owner: Some(_), .. }) => idle_since = Instant::now(),
                _ => {}
            }
        }
        match mine {
            Some(lease) => match filling.write_chunk(lease).await? {
                Chunk::Written => continue,
                Chunk::Last | Chunk::Lost => *mine = None,
            },
            None if idle_since.elapsed() >= RELAYS_FIRST => *mine = filling.claim(owner).await?,
            None => sleep(TELL_EVERY).await,
        }
    }
}

fn line(generation: Generation, status: &FillStatus, before: Option<&Told>) -> String {
    let done = status.rows_done;
    if status.complete {
        return format!("archive {generation} is complete: {done} rows");
    }
    let rate = before.map_or(0.0, |told| {
        (done.saturating_sub(told.rows)) as f64 / told.at.elapsed().as_secs_f64().max(f64::EPSILON)
    });
    let owner = status.owner.as_deref().unwrap_or("nobody yet");
    let (part, of) = (status.cursor, status.rows_estimated.max(done));
    format!("archive {generation}: {part}, {done} of about {of} rows, {rate:.0} rows/s, by {owner}")
}
