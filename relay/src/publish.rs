//! From the outbox to the event log. The right to publish a shard is a lease in the ledger; published rows are taken away
//! under the same lease. So what a stale owner sent is either counted already or sent again: duplicates, never loss.

use std::{sync::Arc, time::Duration};

use chassis::{Stop, failpoint};
use store::{
    Error, Stores,
    event_log::{EventLog, Record},
    ledger::{Lease, Outbox, OutboxRow, ShardLeases},
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::warn;

const LEASE_TTL: Duration = Duration::from_secs(10);
const CLAIM_EVERY: Duration = Duration::from_secs(3);
/// Publishing ends so long before a lease runs out, so that no send is under way when another owner begins.
const LEASE_MARGIN: Duration = Duration::from_secs(2);
/// How often leftovers are looked for that no wake-up told of.
const POLL_EVERY: Duration = Duration::from_secs(10);
const BATCH_ROWS: u32 = 256;
const RETRY_MIN: Duration = Duration::from_millis(100);
/// Below the time between two claims, so that leases are kept while the log does not answer.
const RETRY_MAX: Duration = Duration::from_secs(2);
const _: () = assert!(RETRY_MAX.as_millis() < CLAIM_EVERY.as_millis());
const _: () = assert!(CLAIM_EVERY.as_secs() + LEASE_MARGIN.as_secs() < LEASE_TTL.as_secs());

/// Publishes the shards that its pod holds.
pub(crate) struct Publisher {
    owner: String,
    outbox: Arc<dyn Outbox>,
    leases: Arc<dyn ShardLeases>,
    log: Arc<dyn EventLog>,
}

/// What this pod may publish, and until when.
struct Held {
    leases: Vec<Lease>,
    until: Instant,
}

impl Publisher {
    pub(crate) fn new(owner: &str, stores: &Stores) -> Self {
        Self {
            owner: owner.to_owned(),
            outbox: stores.ledger.outbox.clone(),
            leases: stores.ledger.shard_leases.clone(),
            log: stores.event_log.clone(),
        }
    }

    /// Publishes until asked to stop, then gives the shards up. One loop publishes, so a wake-up never races the poll. While
    /// the ledger or the log does not answer it tries again, with backoff; writers notice nothing.
    pub(crate) async fn run(&self, stop: Stop) -> Result<(), Error> {
        let mut wakeups = self.outbox.wakeups();
        let mut held = Held { leases: Vec::new(), until: Instant::now() };
        let (mut claim, mut poll) = (interval(CLAIM_EVERY), interval(POLL_EVERY));
        claim.set_missed_tick_behavior(MissedTickBehavior::Delay);
        poll.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut wait = RETRY_MIN;
        loop {
            let claim_is_due = tokio::select! {
                () = stop.cancelled() => return self.leases.release(&self.owner).await,
                _ = claim.tick() => true,
                _ = poll.tick() => false,
                _ = wakeups.changed() => false,
            };
            wakeups.mark_unchanged();
            match self.step(&mut held, claim_is_due).await {
                Ok(()) => wait = RETRY_MIN,
                Err(cause) => {
                    warn!("cannot publish, trying again in {wait:?}: {cause}");
                    // Wake-ups count for nothing meanwhile: at load there is one at any moment.
                    tokio::select! { () = stop.cancelled() => {}, () = sleep(wait) => {} }
                    wait = (wait * 2).min(RETRY_MAX);
                    claim.reset_immediately();
                }
            }
        }
    }

    async fn step(&self, held: &mut Held, claim_is_due: bool) -> Result<(), Error> {
        if claim_is_due {
            let now = self.claim().await?;
            for lost in held.leases.iter().filter(|lease| !now.leases.contains(lease)) {
                let (shard, epoch) = (lost.shard, lost.epoch);
                warn!(%shard, epoch, "lost the lease on shard {shard}; stopped publishing it");
            }
            *held = now;
        }
        self.publish(held).await
    }

    async fn claim(&self) -> Result<Held, Error> {
        // Counted from before the call: the ledger's clock started it later.
        let until = Instant::now() + LEASE_TTL - LEASE_MARGIN;
        Ok(Held { leases: self.leases.claim(&self.owner, LEASE_TTL).await?, until })
    }

    async fn publish(&self, held: &Held) -> Result<(), Error> {
        let waiting = self.outbox.waiting().await?;
        for lease in held.leases.iter().filter(|lease| waiting.contains(&lease.shard)) {
            self.publish_shard(lease, held.until).await?;
        }
        Ok(())
    }

    async fn publish_shard(&self, lease: &Lease, until: Instant) -> Result<(), Error> {
        loop {
            let rows = self.outbox.oldest(lease.shard, BATCH_ROWS).await?;
            if rows.is_empty() || Instant::now() >= until {
                return Ok(());
            }
            let ids: Vec<_> = rows.iter().map(|row| row.id).collect();
            let records = rows.into_iter().map(|row| record(row, lease)).collect();
            failpoint::reach("relay.before_publish").await;
            self.log.append(records).await?;
            failpoint::reach("relay.before_remove").await;
            if !self.outbox.remove(lease, &ids).await? {
                let (shard, epoch) = (lease.shard, lease.epoch);
                warn!(%shard, epoch, "lost the lease on shard {shard} while publishing; its next owner sends again");
                return Ok(());
            }
        }
    }
}

fn record(row: OutboxRow, lease: &Lease) -> Record {
    Record {
        topic: row.topic,
        partition: lease.shard,
        key: row.key,
        kind: row.kind,
        payload: row.payload,
        traceparent: row.traceparent,
        epoch: lease.epoch,
    }
}
