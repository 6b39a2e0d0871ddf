//! Fan-in: a page merged from the followees' own posts in the archive. It is slower than a set, and always whole.

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use chassis::{Clock, Error};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use proto::{EntryId, UserId};
use store::{
    archive::PostsByAuthor,
    ledger::{Graph, Relations},
    sets::Entry,
};

/// How many authors are asked at the same time.
const AT_ONCE: usize = 16;

pub(super) struct FanIn {
    pub(super) graph: Arc<dyn Graph>,
    pub(super) relations: Arc<dyn Relations>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) archive: Arc<dyn PostsByAuthor>,
}

impl FanIn {
    /// The newest entries with ids below `below` of the reader's followees, but for those who are hidden from the reader.
    pub(super) async fn page(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Vec<Entry>, Error> {
        let mut followees = self.graph.followees(reader).await?;
        let (states, now) = (self.relations.hidden(reader).await?, self.clock.unix_ms());
        let hidden: HashSet<_> = states.iter().filter(|state| state.hides_at(now)).map(|state| state.author).collect();
        followees.retain(|followee| !hidden.contains(followee));
        self.of(followees, below, limit).await
    }

    /// The newest entries of a reader's followees but these, whoever is hidden: a mute that ends must not leave a hole in what is
    /// built of them.
    pub(super) async fn newest(
        &self,
        reader: UserId,
        without: &HashSet<UserId>,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let mut followees = self.graph.followees(reader).await?;
        followees.retain(|followee| !without.contains(followee));
        self.of(followees, None, limit).await
    }

    /// The newest entries with ids below `below` of these authors.
    pub(super) async fn of(
        &self,
        followees: Vec<UserId>,
        below: Option<EntryId>,
        limit: usize,
    ) -> Result<Vec<Entry>, Error> {
        let wanted = u32::try_from(limit).unwrap_or(u32::MAX);
        let pages = stream::iter(followees)
            .map(|followee| self.archive.page(followee, below.map(EntryId::as_post), wanted))
            .buffer_unordered(AT_ONCE);
        let newest = pages.try_fold(Vec::new(), async |mut newest: Vec<Entry>, posts| {
            newest.extend(posts.iter().map(|post| Entry { id: post.id.into(), author: post.author }));
            // What lies below the best so far cannot come back: memory stays at a few pages, whatever the followees.
            newest.sort_unstable_by_key(|entry| Reverse(entry.id));
            newest.truncate(limit);
            Ok(newest)
        });
        Ok(newest.await?)
    }
}
