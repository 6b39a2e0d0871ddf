//! Keeps a pod's right to mint ids: claims a writer number from the ledger, renews it, and gives it back.

use std::{sync::Arc, time::Duration};

use chassis::{Clock, OnFailure, Pod, Stage, id::Minter};
use tracing::warn;

use crate::{
    Error,
    ledger::{WriterLease, WriterNumbers, WriterTerms},
};

const TERMS: WriterTerms = WriterTerms { ttl: Duration::from_secs(10), window: Duration::from_secs(7) };
const RENEW_EVERY: Duration = Duration::from_secs(2);
/// A pod whose clock is further off the ledger's than this stops minting: its ids would be out of order.
pub(crate) const CLOCK_OFF_MAX_MS: i64 = 2_000;
// A pod that is cut off stops minting before its lease runs out, however far off its clock may be.
const _: () = assert!(TERMS.window.as_millis() + (CLOCK_OFF_MAX_MS as u128) < TERMS.ttl.as_millis());
const _: () = assert!(2 * RENEW_EVERY.as_millis() < TERMS.window.as_millis());

/// Claims a number for the pod's minter, and keeps it until the pod has drained.
pub async fn keep(pod: &Pod, numbers: Arc<dyn WriterNumbers>, clock: Arc<dyn Clock>) -> Result<Arc<Minter>, Error> {
    let minter = Arc::new(Minter::new(clock.clone()));
    let owner = pod.name().to_owned();
    let lease = numbers.claim(&owner, TERMS).await?;
    grant(&minter, &lease, &*clock);
    let keeper = Keeper { numbers, clock, minter: minter.clone(), owner };
    pod.tasks.once("writer lease", Stage::Foundations, OnFailure::StopPod, move |stop| async move {
        let mut lease = Some(lease);
        loop {
            tokio::select! {
                () = stop.cancelled() => return keeper.give_back(lease).await,
                () = tokio::time::sleep(RENEW_EVERY) => lease = keeper.renew(lease).await,
            }
        }
    });
    Ok(minter)
}

struct Keeper {
    numbers: Arc<dyn WriterNumbers>,
    clock: Arc<dyn Clock>,
    minter: Arc<Minter>,
    owner: String,
}

impl Keeper {
    /// Renews the lease, or claims another number where it was lost. While the ledger does not answer, the minter goes on up
    /// to its ceiling and no further.
    async fn renew(&self, lease: Option<WriterLease>) -> Option<WriterLease> {
        let renewed = match &lease {
            Some(lease) => self.numbers.renew(&self.owner, lease, self.minter.untouched_unix_ms(), TERMS).await,
            None => self.numbers.claim(&self.owner, TERMS).await.map(Some),
        };
        match renewed {
            Ok(Some(renewed)) => {
                grant(&self.minter, &renewed, &*self.clock);
                Some(renewed)
            }
            Ok(None) => {
                self.minter.set_grant(None);
                warn!("lost the writer number; no ids are minted until another one is claimed");
                None
            }
            Err(cause) => {
                warn!("cannot renew the writer number: {cause}");
                lease
            }
        }
    }

    async fn give_back(&self, lease: Option<WriterLease>) -> Result<(), Error> {
        self.minter.set_grant(None);
        match lease {
            Some(lease) => {
                // A minter that minted nothing under this number has still promised to begin at its floor.
                let untouched = self.minter.untouched_unix_ms().max(lease.grant.floor_unix_ms);
                self.numbers.release(&self.owner, &lease, untouched).await
            }
            None => Ok(()),
        }
    }
}

fn grant(minter: &Minter, lease: &WriterLease, clock: &dyn Clock) {
    let off_ms = clock.unix_ms() - lease.ledger_unix_ms;
    let trusted = off_ms.abs() <= CLOCK_OFF_MAX_MS;
    if !trusted {
        warn!("this pod's clock is {off_ms} ms off the ledger's; no ids are minted until it is set right");
    }
    minter.set_grant(trusted.then_some(lease.grant));
}
