//! Home timelines: a page comes from the reader's set down to its coverage, and from the archive below it. A reader without
//! a set gets one.

mod fan_in;
pub(crate) mod grpc;

use std::{collections::HashMap, sync::Arc};

use chassis::{Error, Reason, page::PageLimit};
use fan_in::FanIn;
use proto::{EntryId, UserId};
use store::{
    Stores,
    ledger::{Accounts, Post, Posts},
    sets::{Build, Coverage, Entry, HOME_MEMBERS_KEPT, HomeTimelines},
};

/// How many entries a build puts into a home: as many as a cut leaves, so that the first push does not cut it.
const BUILD_ENTRIES: usize = HOME_MEMBERS_KEPT - 1;

/// A page of a home timeline, with its posts.
pub(crate) struct HomePage {
    /// Newest first.
    pub(crate) posts: Vec<Post>,
    /// Where the next, older page begins; `None` when there is nothing older.
    pub(crate) next: Option<EntryId>,
}

/// Readers' home timelines.
pub(crate) struct Homes {
    sets: Arc<dyn HomeTimelines>,
    accounts: Arc<dyn Accounts>,
    posts: Arc<dyn Posts>,
    fan_in: FanIn,
}

impl Homes {
    pub(crate) fn new(stores: &Stores) -> Self {
        Self {
            sets: stores.sets.homes.clone(),
            accounts: stores.ledger.accounts.clone(),
            posts: stores.ledger.posts.clone(),
            fan_in: FanIn { graph: stores.ledger.graph.clone(), archive: stores.archive.posts_by_author.clone() },
        }
    }

    async fn page(&self, reader: UserId, below: Option<EntryId>, limit: PageLimit) -> Result<HomePage, Error> {
        // One more than asked for tells whether there is an older page.
        let mut entries = self.entries(reader, below, limit.get() + 1).await?;
        let more = entries.len() > limit.get();
        entries.truncate(limit.get());
        let next = entries.last().filter(|_| more).map(|entry| entry.id);
        Ok(HomePage { posts: self.hydrate(&entries).await?, next })
    }

    async fn entries(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Vec<Entry>, Error> {
        let page = match self.sets.page(reader, below, limit).await? {
            Some(page) => Some(page),
            // Only people have homes: nobody can fill the sets with those of ids that are nobody's.
            None if !self.accounts.exists(reader).await? => {
                return Err(Error::new(Reason::UserNotFound, "there is no such user"));
            }
            None => {
                self.build(reader).await?;
                self.sets.page(reader, below, limit).await?
            }
        };
        // Another pod is still building: the archive knows everything that its set will.
        let Some(page) = page else { return self.fan_in.page(reader, below, limit).await };
        let mut entries = page.entries;
        if let Some(bottom) = page.coverage.bottom()
            && entries.len() < limit
        {
            let below = below.map_or(bottom, |below| below.min(bottom));
            entries.extend(self.fan_in.page(reader, Some(below), limit - entries.len()).await?);
        }
        Ok(entries)
    }

    /// Builds a home where there is none. The keys are made before anything is read, and fan-out writes the archive before it
    /// pushes: so of a post and a build at the same moment, at least one sees the other.
    async fn build(&self, reader: UserId) -> Result<(), Error> {
        let Build::Mine(token) = self.sets.begin_build(reader).await? else { return Ok(()) };
        let entries = self.fan_in.page(reader, None, BUILD_ENTRIES).await?;
        let complete_to = match entries.last() {
            Some(last) if entries.len() == BUILD_ENTRIES => Coverage::down_to(last.id),
            _ => Coverage::TO_THE_BEGINNING,
        };
        self.sets.finish_build(reader, token, &entries, complete_to).await?;
        Ok(())
    }

    async fn hydrate(&self, entries: &[Entry]) -> Result<Vec<Post>, Error> {
        let ids: Vec<_> = entries.iter().map(|entry| entry.id.as_post()).collect();
        let posts = self.posts.batch(&ids).await?;
        let mut by_id: HashMap<_, _> = posts.into_iter().map(|post| (post.id, post)).collect();
        Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
    }
}
