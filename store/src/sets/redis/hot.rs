//! Hot lists in Redis: a sorted set a day, and beside it the version of each score. A sentinel in the set, and a mark
//! among the versions, vouch that both are complete: neither can outlive what it vouches for.

use async_trait::async_trait;
use chassis::failpoint;
use proto::PostId;

use super::{Redis, error::STORE, script::Call};
use crate::{
    Error,
    error::damaged,
    ledger::Likes,
    sets::{Fill, Hot, HotLists},
};

/// A day's list is kept for a week; one more day, so that none ends early.
const KEPT_S: u64 = 8 * 24 * 60 * 60;
/// In the set with the lowest score, so that it comes last; not of the length of a post.
const SENTINEL: &[u8] = b"whole";
/// What the name of a fill begins with.
const FILL: &str = "filling:";
const POST_BYTES: usize = 8;

#[async_trait]
impl HotLists for Redis {
    async fn is_complete(&self, day: &str) -> Result<bool, Error> {
        let mut ask = redis::pipe();
        ask.atomic().cmd("ZSCORE").arg(self.keys.hot(day)).arg(SENTINEL);
        ask.cmd("HEXISTS").arg(self.keys.hot_versions(day)).arg(SENTINEL);
        let (score, marked): (Option<f64>, bool) = self.link.ask_all(&ask).await?;
        Ok(score.is_some() && marked)
    }

    async fn begin_fill(&self, day: &str) -> Result<Fill, Error> {
        let fill = Fill(self.random.number());
        let (list, versions, mark) = (self.keys.hot(day), self.keys.hot_versions(day), mark(fill));
        let mut begin = redis::pipe();
        begin.atomic().cmd("ZADD").arg(&list).arg("-inf").arg(&mark).ignore();
        begin.cmd("HSET").arg(&versions).arg(&mark).arg(1).ignore();
        begin.cmd("EXPIRE").arg(&list).arg(KEPT_S).ignore();
        begin.cmd("EXPIRE").arg(&versions).arg(KEPT_S).ignore();
        self.link.ask_all::<()>(&begin).await?;
        Ok(fill)
    }

    async fn set_complete(&self, day: &str, fill: Fill) -> Result<bool, Error> {
        let call = Call::default().key(self.keys.hot(day)).key(self.keys.hot_versions(day));
        self.scripts.complete_hot.call(&self.link, &call.arg(mark(fill)).arg(SENTINEL)).await
    }

    async fn record(&self, day: &str, post: PostId, likes: Likes, score: i64) -> Result<(), Error> {
        let member = post.get().to_be_bytes();
        // The fault that the harness must notice: old news that comes late wins.
        if failpoint::is_on("likes.ignore_versions") {
            return self.link.ask(redis::cmd("ZADD").arg(self.keys.hot(day)).arg(score).arg(&member)).await;
        }
        let call = Call::default().key(self.keys.hot(day)).key(self.keys.hot_versions(day));
        let call = call.arg(&member).arg(score).arg(likes.version).arg(KEPT_S);
        self.scripts.record_hot.call(&self.link, &call).await
    }

    async fn top(&self, day: &str, limit: usize) -> Result<Vec<Hot>, Error> {
        // In Redis a last place of -1 means all of them.
        let Some(last) = i64::try_from(limit).unwrap_or(i64::MAX).checked_sub(1).filter(|last| *last >= 0) else {
            return Ok(Vec::new());
        };
        let mut top = redis::cmd("ZREVRANGE");
        top.arg(self.keys.hot(day)).arg(0).arg(last).arg("WITHSCORES");
        let members: Vec<(Vec<u8>, f64)> = self.link.ask(&top).await?;
        members.into_iter().filter(|(member, _)| !is_mark(member)).map(hot).collect()
    }
}

/// A fill that has begun stands in both keys, with the lowest score: it is lost with what was filled.
fn mark(fill: Fill) -> String {
    format!("{FILL}{:016x}", fill.0)
}

fn is_mark(member: &[u8]) -> bool {
    member.len() != POST_BYTES && (member == SENTINEL || member.starts_with(FILL.as_bytes()))
}

#[expect(clippy::cast_possible_truncation, reason = "it was written from an integer")]
fn hot((member, score): (Vec<u8>, f64)) -> Result<Hot, Error> {
    let bad = || damaged(STORE, format_args!("the member {member:02x?} of a hot list is no post"));
    let id = <[u8; POST_BYTES]>::try_from(member.as_slice()).map_err(|_| bad())?;
    Ok(Hot { post: PostId::new(i64::from_be_bytes(id)).map_err(|_| bad())?, score: score as i64 })
}
