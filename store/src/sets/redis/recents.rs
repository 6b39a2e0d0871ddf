//! Authors' newest posts in Redis.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use proto::UserId;

use super::{Redis, script::Call};
use crate::{
    Error,
    sets::{Entry, RECENT_MEMBERS_MAX, Recents},
};

/// Entries a script call: Redis does nothing else meanwhile.
const CALL_ENTRIES_MAX: usize = 250;

/// Entries, those of an author together, in calls of a bearable size. One server takes any authors in one call; of a Cluster,
/// a call is for one author, whose key has a slot of its own.
fn calls(mut entries: Vec<Entry>, is_cluster: bool) -> Vec<Vec<Entry>> {
    entries.sort_unstable_by_key(|entry| entry.author);
    let together = |a: &Entry, b: &Entry| !is_cluster || a.author == b.author;
    entries.chunk_by(together).flat_map(|part| part.chunks(CALL_ENTRIES_MAX)).map(<[_]>::to_vec).collect()
}

#[async_trait]
impl Recents for Redis {
    async fn push(&self, entries: &[Entry]) -> Result<(), Error> {
        let push = async |entries: Vec<Entry>| {
            let mut call = Call::default().arg(RECENT_MEMBERS_MAX);
            for of_author in entries.chunk_by(|a, b| a.author == b.author) {
                call.add_key(self.keys.recent(of_author[0].author));
                call.add_entries(of_author);
            }
            self.scripts.push_recents.call::<()>(&self.link, &call).await
        };
        try_join_all(calls(entries.to_vec(), self.is_cluster).into_iter().map(push)).await.map(|_| ())
    }

    async fn take_out(&self, entry: Entry) -> Result<(), Error> {
        let mut remove = redis::cmd("ZREM");
        self.link.ask(remove.arg(self.keys.recent(entry.author)).arg(&entry.member())).await
    }

    async fn newest(&self, author: UserId, limit: usize) -> Result<Vec<Entry>, Error> {
        // In Redis a last place of -1 means all of them.
        let Some(last) = limit.min(RECENT_MEMBERS_MAX).checked_sub(1) else { return Ok(Vec::new()) };
        let mut newest = redis::cmd("ZRANGE");
        let members: Vec<Vec<u8>> = self.link.ask(newest.arg(self.keys.recent(author)).arg(0).arg(last)).await?;
        members.iter().map(|member| Entry::from_member(member)).collect()
    }
}
