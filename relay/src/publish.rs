//! From the outbox to the event log. The right to publish a shard is a lease in the ledger; published rows are taken away
//! under the same lease. So what a stale owner sent is either counted already or sent again: duplicates, never loss.

use std::{sync::Arc, time::Duration};

use chassis::{Stop, failpoint};
use futures_util::future::join_all;
use store::{
    Error, Stores,
    event_log::{APPEND_MAX, EventLog, Record},
    ledger::{Lease, Outbox, OutboxRow, ShardLeases, Share},
    sets::RelayMembers,
};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tracing::{info, warn};

const LEASE_TTL: Duration = Duration::from_secs(12);
const CLAIM_EVERY: Duration = Duration::from_secs(3);
/// Publishing ends so long before a lease runs out, so that no send is under way when another owner begins.
const LEASE_MARGIN: Duration = Duration::from_secs(6);
const _: () = assert!(APPEND_MAX.as_secs() < LEASE_MARGIN.as_secs());
/// How often leftovers are looked for that no wake-up told of.
const POLL_EVERY: Duration = Duration::from_secs(10);
const BATCH_ROWS: u32 = 256;
const RETRY_MIN: Duration = Duration::from_millis(100);
/// Below the time between two claims, so that leases are kept while the log does not answer.
const RETRY_MAX: Duration = Duration::from_secs(2);
const _: () = assert!(RETRY_MAX.as_millis() < CLAIM_EVERY.as_millis());
const _: () = assert!(CLAIM_EVERY.as_secs() + LEASE_MARGIN.as_secs() < LEASE_TTL.as_secs());

/// A relay that was not heard of for so long is out: three missed pings.
const MEMBER_TTL_MS: i64 = 3 * CLAIM_EVERY.as_millis() as i64;

/// Publishes the shards that its pod holds.
pub(crate) struct Publisher {
    owner: String,
    members: Arc<dyn RelayMembers>,
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
            members: stores.sets.relay_members.clone(),
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
                () = stop.cancelled() => return self.leave().await,
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
            let share = self.share().await;
            let now = self.claim(share).await?;
            for gone in held.leases.iter().filter(|lease| !now.leases.contains(lease)) {
                let (shard, epoch) = (gone.shard, gone.epoch);
                if share.includes(shard) {
                    warn!(%shard, epoch, "lost the lease on shard {shard}; stopped publishing it");
                } else {
                    info!(%shard, epoch, "gave up shard {shard}: it is another relay's part");
                }
            }
            *held = now;
        }
        self.publish(held).await
    }

    async fn claim(&self, share: Share) -> Result<Held, Error> {
        // Counted from before the call: the ledger's clock started it later.
        let until = Instant::now() + LEASE_TTL - LEASE_MARGIN;
        Ok(Held { leases: self.leases.claim(&self.owner, LEASE_TTL, share).await?, until })
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

    async fn publish(&self, held: &Held) -> Result<(), Error> {
        let waiting = self.outbox.waiting().await?;
        let due = held.leases.iter().filter(|lease| waiting.contains(&lease.shard));
        // Side by side: a shard's rows wait for their own acknowledgement, and for no other's.
        // One that cannot be published keeps none from being tried.
        let published = join_all(due.map(|lease| self.publish_shard(lease, held.until))).await;
        published.into_iter().collect()
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
