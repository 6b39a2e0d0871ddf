//! Fills an archive that is new or was lost, one relay at a time. Deliveries go on beside it: they write to the same archive,
//! and readers are served from the ledger until it is whole.

use std::{sync::Arc, time::Duration};

use chassis::Stop;
use store::{
    Error,
    archive::{Chunk, Filling},
    ledger::FillLease,
};
use tokio::time::sleep;
use tracing::{info, warn};

/// How often it is asked whether there is anything to fill: a lost archive costs its readers no more than they would wait
/// for the fill anyway.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks for work until asked to stop. What fails is tried again: an archive that is not there yet, or any more, will be.
pub(crate) async fn run(filling: Arc<Filling>, owner: String, stop: Stop) -> Result<(), Error> {
    let mut complained = false;
    loop {
        match turn(&filling, &owner, &stop).await {
            Ok(()) => complained = false,
            // Once for each time that it is away: everyone who writes to it complains too.
            Err(cause) if !complained => {
                warn!("cannot fill the archive, trying again every {LOOK_EVERY:?}: {cause}");
                complained = true;
            }
            Err(_) => {}
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = sleep(LOOK_EVERY) => {}
        }
    }
}

/// Fills what there is to fill, if nobody else does.
async fn turn(filling: &Filling, owner: &str, stop: &Stop) -> Result<(), Error> {
    let Some(mut lease) = filling.claim(owner).await? else { return Ok(()) };
    let (generation, part, rows) = (lease.generation, lease.cursor, lease.rows_done);
    info!("filling archive {generation} from the ledger, from {part} and {rows} rows on");
    let ended = write(filling, &mut lease, stop).await;
    if !matches!(ended, Ok(Chunk::Last)) {
        // For the next one, who need not wait until the lease runs out.
        filling.release(&lease).await?;
    }
    match ended? {
        Chunk::Last => info!("archive {generation} is complete, with {} rows of the ledger", lease.rows_done),
        Chunk::Lost => warn!("archive {generation} is lost, or another relay fills it; stopped"),
        Chunk::Written => {}
    }
    Ok(())
}

/// Writes chunk after chunk, until the last one, or until asked to stop.
async fn write(filling: &Filling, lease: &mut FillLease, stop: &Stop) -> Result<Chunk, Error> {
    while !stop.is_cancelled() {
        match filling.write_chunk(lease).await? {
            Chunk::Written => {}
            ended => return Ok(ended),
        }
    }
    Ok(Chunk::Written)
}
