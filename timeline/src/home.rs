//! Home timelines: a page comes from the reader's set down to its coverage, and from the archive below it. A reader without
//! a set gets one. Authors who are muted, blocked or no longer followed are left out when the page is read.

mod fan_in;
pub(crate) mod grpc;

use std::{cmp::Reverse, collections::HashSet, sync::Arc};

use chassis::{Clock, Error, Reason, page::PageLimit};
use fan_in::FanIn;
use proto::{EntryId, UserId};
use store::{
    Stores,
    ledger::{Accounts, AuthorMode, Modes, Posts, Relations, Viewer},
    sets::{AuthorState, Build, Coverage, Entry, HOME_MEMBERS_KEPT, HomeTimelines, Page, Special},
};

use crate::sight::{Seen, Sight};

/// How many entries a build puts into a home: as many as a cut leaves, so that the first push does not cut it.
const BUILD_ENTRIES: usize = HOME_MEMBERS_KEPT - 1;

/// How often a page is filled up where posts of it are not for the reader any more. Past that it is short, and goes on.
const PAGE_FILLS_MAX: usize = 8;

/// A page of a home timeline, with its posts.
pub(crate) struct HomePage {
    /// Newest first.
    pub(crate) posts: Vec<Seen>,
    /// Where the next, older page begins; `None` when there is nothing older.
    pub(crate) next: Option<EntryId>,
}

/// Readers' home timelines.
pub(crate) struct Homes {
    sets: Arc<dyn HomeTimelines>,
    accounts: Arc<dyn Accounts>,
    posts: Arc<dyn Posts>,
    sight: Sight,
    relations: Arc<dyn Relations>,
    modes: Arc<dyn Modes>,
    clock: Arc<dyn Clock>,
    fan_in: FanIn,
}

impl Homes {
    pub(crate) fn new(stores: &Stores, clock: Arc<dyn Clock>) -> Self {
        let relations = stores.ledger.relations.clone();
        Self {
            sets: stores.sets.homes.clone(),
            accounts: stores.ledger.accounts.clone(),
            posts: stores.ledger.posts.clone(),
            sight: Sight::new(stores),
            fan_in: FanIn {
                graph: stores.ledger.graph.clone(),
                relations: relations.clone(),
                clock: clock.clone(),
                archive: stores.archive.posts_by_author.clone(),
            },
            relations,
            modes: stores.ledger.modes.clone(),
            clock,
        }
    }

    async fn page(&self, reader: UserId, below: Option<EntryId>, limit: PageLimit) -> Result<HomePage, Error> {
        let (mut posts, mut below) = (Vec::with_capacity(limit.get()), below);
        for _ in 0..PAGE_FILLS_MAX {
            let wanted = limit.get() - posts.len();
            // One more than asked for tells whether there is an older page.
            let mut entries = self.entries(reader, below, wanted + 1).await?;
            let more = entries.len() > wanted;
            entries.truncate(wanted);
            below = entries.last().map(|entry| entry.id).or(below);
            posts.extend(self.hydrate(reader, &entries).await?);
            if !more {
                return Ok(HomePage { posts, next: None });
            }
            if posts.len() == limit.get() {
                break;
            }
        }
        Ok(HomePage { posts, next: below })
    }

    /// Entries that the reader may see: those of the set, and those of the authors who are merged at read. Of two lists, each
    /// whole from `below` down to its end, the newest of both are the newest of all, at any depth.
    async fn entries(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Vec<Entry>, Error> {
        let (mut shown, merged) = self.pushed(reader, below, limit).await?;
        if !merged.is_empty() {
            shown.extend(self.fan_in.of(merged, below, limit).await?);
            shown.sort_unstable_by_key(|entry| Reverse(entry.id));
            // What was pushed before its author crossed comes from both.
            shown.dedup_by_key(|entry| entry.id);
            shown.truncate(limit);
        }
        Ok(shown)
    }

    /// Entries of the set, and of the archive below it; and the authors whose posts the set need not have. Where some of a page
    /// are hidden, the set is asked for more.
    async fn pushed(
        &self,
        reader: UserId,
        below: Option<EntryId>,
        limit: usize,
    ) -> Result<(Vec<Entry>, Vec<UserId>), Error> {
        let (mut shown, mut below) = (Vec::with_capacity(limit), below);
        let mut merged = None;
        loop {
            let wanted = limit - shown.len();
            // Another pod is still building: the archive knows everything that its set will.
            let Some(page) = self.set_page(reader, below, wanted).await? else {
                shown.extend(self.fan_in.page(reader, below, wanted).await?);
                return Ok((shown, merged.unwrap_or_default()));
            };
            // Below the set all comes from the archive, theirs too.
            let is_below = page.coverage.bottom().is_some_and(|bottom| below.is_some_and(|below| below <= bottom));
            let merged = merged.get_or_insert_with(|| if is_below { Vec::new() } else { self.merged(&page) });
            let (coverage, last) = (page.coverage, page.entries.last().map(|entry| entry.id));
            let was_full = page.entries.len() >= wanted;
            shown.extend(self.visible(page));
            if was_full && shown.len() < limit {
                below = last;
                continue;
            }
            if let Some(bottom) = coverage.bottom()
                && shown.len() < limit
            {
                let below = below.map_or(bottom, |below| below.min(bottom));
                shown.extend(self.fan_in.page(reader, Some(below), limit - shown.len()).await?);
            }
            return Ok((shown, std::mem::take(merged)));
        }
    }

    /// A page of the reader's set, which is built where there is none; `None` when another pod does that.
    async fn set_page(&self, reader: UserId, below: Option<EntryId>, limit: usize) -> Result<Option<Page>, Error> {
        match self.sets.page(reader, below, limit).await? {
            Some(page) => Ok(Some(page)),
            // Only people have homes: nobody can fill the sets with those of ids that are nobody's.
            None if !self.accounts.exists(reader).await? => Err(nobody()),
            None => {
                self.build(reader).await?;
                Ok(self.sets.page(reader, below, limit).await?)
            }
        }
    }

    /// The authors of a page's reader who are merged at read, without those who are hidden now.
    fn merged(&self, page: &Page) -> Vec<UserId> {
        let now = self.clock.unix_ms();
        let hides = |author: UserId| page.authors.iter().any(|state| state.author == author && state.hides_at(now));
        let is_merged = |state: &&AuthorState| state.special == Special::Pull && now < state.until_ms;
        let merged = page.authors.iter().filter(is_merged).map(|state| state.author);
        merged.filter(|author| !hides(*author)).collect()
    }

    /// What is left of a page without the authors who are hidden now.
    fn visible(&self, page: Page) -> impl Iterator<Item = Entry> {
        let now = self.clock.unix_ms();
        let hidden: HashSet<_> =
            page.authors.iter().filter(|state| state.hides_at(now)).map(|state| state.author).collect();
        page.entries.into_iter().filter(move |entry| !hidden.contains(&entry.author))
    }

    /// Builds a home where there is none. The keys are made before anything is read, and fan-out writes the archive before it
    /// pushes: so of a post and a build at the same moment, at least one sees the other. Whoever mutes meanwhile writes into
    /// the keys too, and what is read here never overwrites a newer state. Authors who are merged at read are marked so, and
    /// fill no room; whoever takes the mark away brings their posts.
    async fn build(&self, reader: UserId) -> Result<(), Error> {
        let Build::Mine(token) = self.sets.begin_build(reader).await? else { return Ok(()) };
        // Asked once more now that the keys are made: who is deleted after this loses them with the deletion.
        if !self.accounts.exists(reader).await? {
            self.sets.remove(reader).await?;
            return Err(nobody());
        }
        let mut authors = self.relations.hidden(reader).await?;
        let merged = self.modes.merged_followees(reader).await?;
        authors.extend(merged.iter().map(AuthorMode::state));
        let merged = merged.iter().map(|mode| mode.author).collect();
        let entries = self.fan_in.newest(reader, &merged, BUILD_ENTRIES).await?;
        let complete_to = match entries.last() {
            Some(last) if entries.len() == BUILD_ENTRIES => Coverage::down_to(last.id),
            _ => Coverage::TO_THE_BEGINNING,
        };
        self.sets.finish_build(reader, token, &entries, complete_to, &authors).await?;
        Ok(())
    }

    /// The posts of these entries that the reader may see. Entries of posts that are gone for good are taken out of the home:
    /// the relay does so too, but a build or a push that was under way then may have brought one back.
    async fn hydrate(&self, reader: UserId, entries: &[Entry]) -> Result<Vec<Seen>, Error> {
        let ids: Vec<_> = entries.iter().map(|entry| entry.id.as_post()).collect();
        let seen = self.sight.see(Viewer::Person(reader), &ids).await?;
        if seen.len() < entries.len() {
            let shown: HashSet<_> = seen.iter().map(|seen| seen.post.id).collect();
            let dropped: Vec<_> = ids.into_iter().filter(|id| !shown.contains(id)).collect();
            let gone = self.posts.gone(&dropped).await?;
            for entry in entries.iter().filter(|entry| gone.contains(&entry.id.as_post())) {
                self.sets.take_out(&[reader], *entry).await?;
            }
        }
        Ok(seen)
    }
}

fn nobody() -> Error {
    Error::new(Reason::UserNotFound, "there is no such user")
}
