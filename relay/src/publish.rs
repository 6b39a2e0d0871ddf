//! From the outbox to the event log. The right to publish a shard is a lease in the ledger; published rows are taken away
//! under the same lease. So what a stale owner sent is either counted already or sent again: duplicates, never loss.

mod held;
mod lane;
mod lanes;
mod marks;
mod reader;
mod under_way;

use std::{sync::Arc, time::Duration};

use chassis::{Stop, failpoint};
use held::Held;
use lanes::Lanes;
use store::{
    Error, Stores,
    event_log::{APPEND_MAX, EventLog},
    ledger::{Outbox, ShardLeases, Share},
    sets::RelayMembers,
};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};
use tracing::{info, warn};

const LEASE_TTL: Duration = Duration::from_secs(12);
const CLAIM_EVERY: Duration = Duration::from_secs(3);
/// Publishing ends so long before a lease runs out, so that no send is under way when another owner begins.
const LEASE_MARGIN: Duration = Duration::from_secs(6);
const _: () = assert!(APPEND_MAX.as_secs() < LEASE_MARGIN.as_secs());
/// How often leftovers are looked for that no wake-up told of.
const POLL_EVERY: Duration = Duration::from_secs(10);
const RETRY_MIN: Duration = Duration::from_millis(100);
/// Below the time between two claims, so that leases are kept while the log does not answer.
const RETRY_MAX: Duration = Duration::from_secs(2);
const _: () = assert!(RETRY_MAX.as_millis() < CLAIM_EVERY.as_millis());
const _: () = assert!(CLAIM_EVERY.as_secs() + LEASE_MARGIN.as_secs() < LEASE_TTL.as_secs());

/// A relay that was not heard of for so long is out: three missed pings.
const MEMBER_TTL_MS: i64 = 3 * CLAIM_EVERY.as_millis() as i64;

/// Publishes the shards that its pod holds.
pub struct Publisher {
    owner: String,
    members: Arc<dyn RelayMembers>,
    outbox: Arc<dyn Outbox>,
    leases: Arc<dyn ShardLeases>,
    log: Arc<dyn EventLog>,
}

impl Publisher {
    /// A publisher that holds its shards under this name.
    #[must_use]
    pub fn new(owner: &str, stores: &Stores) -> Self {
        Self {
            owner: owner.to_owned(),
            members: stores.sets.relay_members.clone(),
            outbox: stores.ledger.outbox.clone(),
            leases: stores.ledger.shard_leases.clone(),
            log: stores.event_log.clone(),
        }
    }

    /// Publishes until asked to stop, then gives the shards up. This loop keeps the leases and rings when rows may wait; one
    /// reader reads for all shards; a lane a shard publishes, and waits for no other. While the ledger or the log does not
    /// answer they try again, with backoff; writers notice nothing.
    pub async fn run(&self, stop: Stop) -> Result<(), Error> {
        let held = watch::Sender::new(Held::nothing());
        let mut lanes = Lanes::new(self.outbox.clone(), self.log.clone(), held.subscribe(), stop.clone());
        let mut wakeups = self.outbox.wakeups();
        let (mut claim, mut poll) = (interval(CLAIM_EVERY), interval(POLL_EVERY));
        claim.set_missed_tick_behavior(MissedTickBehavior::Delay);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut wait = RETRY_MIN;
        loop {
            let claim_is_due = tokio::select! {
                () = stop.cancelled() => break,
                () = lanes.one_panicked() => false,
                _ = claim.tick() => true,
                _ = poll.tick() => false,
                _ = wakeups.changed() => false,
            };
            if claim_is_due {
                match self.renew(&held, &mut lanes).await {
                    Ok(()) => wait = RETRY_MIN,
                    Err(cause) => {
                        warn!("cannot claim shards to publish, trying again in {wait:?}: {cause}");
                        claim.reset_after(wait);
                        wait = (wait * 2).min(RETRY_MAX);
                    }
                }
            }
            lanes.wake();
        }
        lanes.finish().await;
        self.leave().await
    }

    async fn renew(&self, held: &watch::Sender<Held>, lanes: &mut Lanes) -> Result<(), Error> {
        let share = self.share().await;
        let now = self.claim(share).await?;
        tell_of_losses(&held.borrow(), &now, share);
        lanes.open(now.shards());
        held.send_replace(now);
        failpoint::reach("relay.after_claim").await;
        Ok(())
    }

    async fn claim(&self, share: Share) -> Result<Held, Error> {
        // Counted from before the call: the ledger's clock started it later.
        let until = Instant::now() + LEASE_TTL - LEASE_MARGIN;
        Ok(Held::new(self.leases.claim(&self.owner, LEASE_TTL, share).await?, until))
    }

    /// This pod's part of the shards, by the relays that are there. That is a hint, the lease is the right: while the sets do
    /// not answer, each relay keeps what it has and takes what nobody holds.
    async fn share(&self) -> Share {
        match self.members.ping(&self.owner, MEMBER_TTL_MS).await {
            Ok(members) => Share::of_member(&self.owner, &members).unwrap_or(Share::ALL),
            Err(cause) => {
                warn!("cannot tell which relays there are; taking every shard that nobody holds: {cause}");
                Share::ALL
            }
        }
    }

    /// Gives the shards up first: whoever hears that this pod is gone finds them free.
    async fn leave(&self) -> Result<(), Error> {
        self.leases.release(&self.owner).await?;
        if let Err(cause) = self.members.leave(&self.owner).await {
            // It is out after three missed pings.
            warn!("cannot take this relay off the members: {cause}");
        }
        Ok(())
    }
}

fn tell_of_losses(before: &Held, now: &Held, share: Share) {
    for gone in before.leases().iter().filter(|lease| !now.leases().contains(lease)) {
        let (shard, epoch) = (gone.shard, gone.epoch);
        if share.includes(shard) {
            warn!(%shard, epoch, "lost the lease on shard {shard}; stopped publishing it");
        } else {
            info!(%shard, epoch, "gave up shard {shard}: it is another relay's part");
        }
    }
}
