//! How far events are applied to readers' homes, noted beside the homes under the life of the server that holds them: a
//! failover, a restart and a restored copy are each another life.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tracing::warn;

use super::{Redis, error::STORE, keys::Bucket, script::Call};
use crate::{Error, error::damaged, event_log::Lane, sets::Progress};

/// What a bucket's note says.
enum Noted {
    /// It is of this life.
    Well,
    /// There is none.
    Unknown,
    /// Another life had applied the lane up to here.
    UpTo(i64),
}

/// What is done with a bucket that is not simply noted.
#[derive(Clone, Copy)]
enum How {
    /// Nothing: it is only told of.
    Told,
    /// Nothing was known of it: now it is.
    Adopt,
    /// Another life's note holds for this one.
    Accept,
}

impl How {
    const fn name(self) -> &'static str {
        match self {
            Self::Told => "",
            Self::Adopt => "adopt",
            Self::Accept => "accept",
        }
    }
}

impl Redis {
    /// Notes a position in every bucket. One server takes all of them in one call; of a Cluster, a call is for one bucket.
    async fn note_all(&self, lane: Lane, position: Option<i64>, how: How) -> Result<Vec<(Bucket, Noted)>, Error> {
        let buckets: Vec<_> = Bucket::all().collect();
        let together = if self.is_cluster { 1 } else { buckets.len() };
        let calls = buckets.chunks(together).map(|some| self.note_some(some, lane, position, how));
        Ok(try_join_all(calls).await?.into_iter().flatten().collect())
    }

    async fn note_some(
        &self,
        buckets: &[Bucket],
        lane: Lane,
        position: Option<i64>,
        how: How,
    ) -> Result<Vec<(Bucket, Noted)>, Error> {
        let position = position.map(|position| position.to_string()).unwrap_or_default();
        let mut call = Call::default().arg(lane.to_string()).arg(position).arg(how.name());
        for bucket in buckets {
            call.add_key(self.keys.progress(*bucket));
        }
        let answers: Vec<String> = self.scripts.note_progress.call(&self.link, &call).await?;
        let noted = |answer: &str| match answer {
            "" => Ok(Noted::Well),
            "?" => Ok(Noted::Unknown),
            applied => {
                applied.parse().map(Noted::UpTo).map_err(|_| damaged(STORE, format_args!("position {applied:?}")))
            }
        };
        buckets.iter().zip(&answers).map(|(bucket, answer)| Ok((*bucket, noted(answer)?))).collect()
    }

    /// Drops the homes of buckets that nothing is known of.
    async fn drop_homes(&self, buckets: &[Bucket]) -> Result<(), Error> {
        let together = if self.is_cluster { 1 } else { buckets.len().max(1) };
        for some in buckets.chunks(together) {
            let mut cursor = "0".to_owned();
            loop {
                let mut call =
                    Call::default().key(self.keys.progress(some[0])).arg(&cursor).arg(self.keys.home_pattern());
                for bucket in some {
                    call.add_arg(bucket.number());
                }
                cursor = self.scripts.drop_homes.call(&self.link, &call).await?;
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Progress for Redis {
    async fn note(&self, lane: Lane, position: Option<i64>) -> Result<Option<i64>, Error> {
        let noted = self.note_all(lane, position, How::Told).await?;
        let unknown: Vec<_> =
            noted.iter().filter(|(_, noted)| matches!(noted, Noted::Unknown)).map(|(bucket, _)| *bucket).collect();
        if !unknown.is_empty() {
            warn!("nothing is known of {} buckets of homes; they are dropped, and built when asked for", unknown.len());
            // Before they are adopted: whoever dies in between finds them unknown again.
            self.drop_homes(&unknown).await?;
            self.note_all(lane, position, How::Adopt).await?;
        }
        let behind = noted.into_iter().filter_map(|(_, noted)| match noted {
            Noted::UpTo(applied) => Some(applied),
            Noted::Well | Noted::Unknown => None,
        });
        Ok(behind.min())
    }
    async fn accept(&self, lane: Lane) -> Result<(), Error> {
        self.note_all(lane, None, How::Accept).await.map(|_| ())
    }
}
