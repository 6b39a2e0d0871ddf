//! What a pod may publish, and until when.

use store::{Shard, ledger::Lease};
use tokio::time::Instant;

/// The leases of a pod, as of its last claim.
#[derive(Debug)]
pub(super) struct Held {
    leases: Vec<Lease>,
    until: Instant,
}

impl Held {
    /// Leases under which something may be begun until then.
    pub(super) fn new(leases: Vec<Lease>, until: Instant) -> Self {
        Self { leases, until }
    }

    /// No leases.
    pub(super) fn nothing() -> Self {
        Self::new(Vec::new(), Instant::now())
    }

    /// The leases, whether something may still be begun under them or not.
    pub(super) fn leases(&self) -> &[Lease] {
        &self.leases
    }

    /// The leased shards.
    pub(super) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.leases.iter().map(|lease| lease.shard)
    }

    /// The leases under which something may be begun now.
    pub(super) fn usable(&self) -> &[Lease] {
        if Instant::now() < self.until { &self.leases } else { &[] }
    }

    /// The lease on a shard, if something may be begun under it now.
    pub(super) fn usable_on(&self, shard: Shard) -> Option<&Lease> {
        self.usable().iter().find(|lease| lease.shard == shard)
    }
}
