//! Ids: 41 bits of milliseconds since 2024-01-01 UTC, 10 bits of writer, 12 of sequence. They are types of their own, parse
//! at the border, and are strings in JSON, where a number is exact to 2^53 only.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 2024-01-01T00:00:00Z, in milliseconds since 1970: where ids begin.
pub const EPOCH_UNIX_MS: i64 = 1_704_067_200_000;
/// How many bits of an id number the ids of one millisecond and writer.
pub const SEQUENCE_BITS: u32 = 12;
/// How many bits of an id name its writer.
pub const WRITER_BITS: u32 = 10;
/// Milliseconds that an id can count: until the year 2093.
pub const MILLIS_MAX: i64 = (1 << 41) - 1;

/// What was given is not an id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not an id: a decimal number from 1 to 9223372036854775807, without sign or leading zeros")]
pub struct InvalidId;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(i64);

        impl $name {
            /// The id with this number; an id is positive.
            pub fn new(number: i64) -> Result<Self, InvalidId> {
                if number > 0 { Ok(Self(number)) } else { Err(InvalidId) }
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }

            /// When it was minted, in milliseconds since 1970.
            #[must_use]
            pub const fn unix_ms(self) -> i64 {
                (self.0 >> (WRITER_BITS + SEQUENCE_BITS)) + EPOCH_UNIX_MS
            }
        }

        impl TryFrom<i64> for $name {
            type Error = InvalidId;

            fn try_from(number: i64) -> Result<Self, InvalidId> {
                Self::new(number)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                // One id has one spelling, so that texts of ids can be compared: no sign, no leading zero.
                let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
                if !plain {
                    return Err(InvalidId);
                }
                text.parse().map_err(|_| InvalidId).and_then(Self::new)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A person.
    UserId;
    /// A post.
    PostId;
    /// Something that is attached to a post.
    AttachmentId;
    /// An event of the log.
    EventId;
    /// An entry of a timeline. A plain post's entry has the post's number; a repost has its own.
    EntryId;
}

impl From<PostId> for EntryId {
    fn from(post: PostId) -> Self {
        Self(post.0)
    }
}

impl EntryId {
    /// The post that this entry is, when it is the entry of a plain post.
    #[must_use]
    pub const fn as_post(self) -> PostId {
        PostId(self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_survives_text_and_json(number in 1..=i64::MAX) {
            let id = PostId::new(number).unwrap();
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(&json, &format!("\"{number}\""));
            prop_assert_eq!(serde_json::from_str::<PostId>(&json).unwrap(), id);
        }

        #[test]
        fn whatever_parses_is_spelled_the_one_way(text in "[-+ 0-9a-f]{0,20}") {
            if let Ok(id) = text.parse::<UserId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["", "0", "-1", "+1", "01", " 1", "1 ", "1e3", "9223372036854775808", "ada"] {
            assert_eq!(text.parse::<UserId>(), Err(InvalidId), "{text:?}");
        }
    }

    #[test]
    fn an_id_tells_when_it_was_minted() {
        let id = PostId::new(1234 << (WRITER_BITS + SEQUENCE_BITS)).unwrap();
        assert_eq!(id.unix_ms(), EPOCH_UNIX_MS + 1234);
    }
}
