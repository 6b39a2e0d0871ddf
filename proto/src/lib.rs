//! Freshet's language: the protobuf packages, the types generated from them, ids, and the names of events.
//!
//! It knows nothing of how a pod runs or where data lives.

pub mod access;
pub mod event;
pub mod id;

pub use id::{AttachmentId, EntryId, EventId, InvalidId, PostId, UserId};

/// The generated types, in modules that mirror the packages.
#[expect(missing_docs, reason = "the services' client and server types come without comments")]
pub mod freshet {
    pub mod auth {
        pub mod v1 {
            tonic::include_proto!("freshet.auth.v1");
        }
    }
    pub mod contents {
        pub mod v1 {
            tonic::include_proto!("freshet.contents.v1");
        }
    }
    pub mod event {
        pub mod v1 {
            tonic::include_proto!("freshet.event.v1");
        }
    }
    pub mod pod {
        pub mod v1 {
            tonic::include_proto!("freshet.pod.v1");
        }
    }
    pub mod post {
        pub mod v1 {
            tonic::include_proto!("freshet.post.v1");
        }
    }
    pub mod ranking {
        pub mod v1 {
            tonic::include_proto!("freshet.ranking.v1");
        }
    }
    pub mod timeline {
        pub mod v1 {
            tonic::include_proto!("freshet.timeline.v1");
        }
    }
    pub mod user {
        pub mod v1 {
            tonic::include_proto!("freshet.user.v1");
        }
    }
}

/// Every file of the language with its comments and options, as an encoded `FileDescriptorSet`: for reflection, and for
/// tests that walk it.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// A moment in milliseconds since 1970, as the wire has it.
#[must_use]
pub fn timestamp(unix_ms: i64) -> prost_types::Timestamp {
    let nanos = i32::try_from(unix_ms.rem_euclid(1000) * 1_000_000).unwrap_or_default();
    prost_types::Timestamp { seconds: unix_ms.div_euclid(1000), nanos }
}

/// The milliseconds since 1970 of a protobuf timestamp; `None` when they are beyond counting.
#[must_use]
pub fn unix_ms(timestamp: &prost_types::Timestamp) -> Option<i64> {
    timestamp.seconds.checked_mul(1000)?.checked_add(i64::from(timestamp.nanos) / 1_000_000)
}
