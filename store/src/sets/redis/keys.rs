//! Every key of the sets. What one script touches has one `{tag}`, and so one slot of a Cluster.

use proto::UserId;

use crate::{config::Namespace, sets::SessionHash, shard::stable_hash};

/// Into how many buckets readers are divided: one script call serves the readers of a bucket. Fixed for ever, because a
/// reader's keys carry it.
const BUCKETS: u64 = 64;

/// A slice of the readers, whose keys lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bucket(u64);

impl Bucket {
    pub(super) fn of(reader: UserId) -> Self {
        Self(stable_hash(reader.to_string().as_bytes()) % BUCKETS)
    }

    /// All of them.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..BUCKETS).map(Self)
    }

    pub(super) const fn number(self) -> u64 {
        self.0
    }
}

/// Names keys, each after what all keys of this installation begin with.
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(namespace: &Namespace) -> Self {
        Self { prefix: namespace.key_prefix() }
    }

    /// Nothing: asked for at the start, to see that keys can be asked for.
    pub(super) fn probe(&self) -> String {
        format!("{}probe", self.prefix)
    }

    /// Sorted set: a reader's home timeline and its sentinel.
    pub(super) fn home(&self, reader: UserId) -> String {
        self.home_in(Bucket::of(reader), reader)
    }

    /// The same, of a reader whose bucket is known.
    pub(super) fn home_in(&self, bucket: Bucket, reader: UserId) -> String {
        format!("{}timeline:home:{{{}}}:{reader}", self.prefix, bucket.0)
    }

    /// Hash: what a reader's authors are to them, and the token of the build that it belongs to.
    pub(super) fn authors(&self, reader: UserId) -> String {
        format!("{}authors:{{{}}}:{reader}", self.prefix, Bucket::of(reader).0)
    }

    /// What the names of all homes look like.
    pub(super) fn home_pattern(&self) -> String {
        format!("{}timeline:home:*", self.prefix)
    }

    /// Hash: lane -> in which life of the server, and up to where, it is applied to the bucket's homes.
    pub(super) fn progress(&self, bucket: Bucket) -> String {
        format!("{}applied:{{{}}}", self.prefix, bucket.0)
    }

    /// Hash: reader -> that reader's connections.
    pub(super) fn online(&self, bucket: Bucket) -> String {
        format!("{}online:{{{}}}", self.prefix, bucket.0)
    }

    /// Sorted set: an author's newest posts.
    pub(super) fn recent(&self, author: UserId) -> String {
        format!("{}recent:{author}", self.prefix)
    }

    /// Hash: whose session it is, on which device, since when and until when.
    pub(super) fn session(&self, hash: SessionHash) -> String {
        let hex = hash.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("{}session:{hex}", self.prefix)
    }

    /// Sorted set: the hashes of a person's sessions, by when they were opened.
    pub(super) fn sessions_of(&self, user: UserId) -> String {
        format!("{}sessions:{user}", self.prefix)
    }

    /// Sorted set: the places of a window that are taken, by when they were.
    pub(super) fn attempts(&self, window: &str) -> String {
        format!("{}attempts:{window}", self.prefix)
    }

    /// Sorted set: from where a person has come in, by until when that counts.
    pub(super) fn known(&self, who: &str) -> String {
        format!("{}known:{who}", self.prefix)
    }

    /// Stream: what a pod is told.
    pub(super) fn pod(&self, name: &str) -> String {
        format!("{}pod:{{{name}}}", self.prefix)
    }

    /// Number: how many messages a pod was ever sent.
    pub(super) fn pod_sent(&self, name: &str) -> String {
        format!("{}pod:{{{name}}}:sent", self.prefix)
    }

    /// Sorted set: the relays that are there, by their last ping.
    pub(super) fn relay_members(&self) -> String {
        format!("{}relay:members", self.prefix)
    }

    /// Hash: shard -> the millisecond up to which it is settled.
    pub(super) fn settled(&self) -> String {
        format!("{}settled", self.prefix)
    }

    /// Sorted set: the hot posts of a day, and the sentinel that vouches for them.
    pub(super) fn hot(&self, day: &str) -> String {
        format!("{}hot:{{{day}}}", self.prefix)
    }

    /// Hash: post -> the version of its score.
    pub(super) fn hot_versions(&self, day: &str) -> String {
        format!("{}hot:{{{day}}}:versions", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use proto::id::{SEQUENCE_BITS, WRITER_BITS};

    use super::*;

    #[test]
    fn a_readers_keys_lie_together_and_never_move() {
        let keys = Keys::new(&Namespace::default());
        let reader = UserId::new(4242).unwrap();
        assert_eq!(keys.home(reader), "timeline:home:{5}:4242");
        assert_eq!(keys.authors(reader), "authors:{5}:4242");
        assert_eq!(keys.online(Bucket::of(reader)), "online:{5}");
    }

    #[test]
    fn readers_spread_over_the_buckets() {
        let mut counts = [0; BUCKETS as usize];
        for ms in 0..6400 {
            let reader = UserId::new((7_000_000_000 + ms * 977) << (WRITER_BITS + SEQUENCE_BITS)).unwrap();
            counts[Bucket::of(reader).0 as usize] += 1;
        }
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
    }
}
