//! Crossings: an author has got too many followers to push to, or few enough again. Every home of a follower is told, and only
//! then the author's mode is settled. Whoever follows meanwhile, or builds a home, is told by whoever does that.

use std::sync::Arc;

use chassis::{Clock, Error, id::Minter};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use proto::UserId;
use store::{
    Stores,
    archive::PostsByAuthor,
    ledger::{AuthorMode, Event, Graph, GraphChange, Job, JobKind, Modes},
    sets::{AuthorState, Authors, Coverage, Entry, HOME_MEMBERS_KEPT, HomeTimelines, STATE_WRITE_MS_MAX},
};

use super::Next;

/// Followers a chunk.
const CHUNK_FOLLOWERS: u32 = 500;
/// For how long an author who is pushed again is merged at read all the same. A post that the archive had too late for this job
/// is pushed by the relay a moment later: who has seen it by then must not miss it in between.
const MERGED_ON_MS: i64 = 10_000;
/// How many homes are told at the same time.
const AT_ONCE: usize = 32;

pub(super) struct Crossings {
    modes: Arc<dyn Modes>,
    graph: Arc<dyn Graph>,
    archive: Arc<dyn PostsByAuthor>,
    homes: Arc<dyn HomeTimelines>,
    authors: Arc<dyn Authors>,
    ids: Arc<Minter>,
    clock: Arc<dyn Clock>,
}

impl Crossings {
    pub(super) fn new(stores: &Stores, ids: Arc<Minter>, clock: Arc<dyn Clock>) -> Self {
        Self {
            modes: stores.ledger.modes.clone(),
            graph: stores.ledger.graph.clone(),
            archive: stores.archive.posts_by_author.clone(),
            homes: stores.sets.homes.clone(),
            authors: stores.sets.authors.clone(),
            ids,
            clock,
        }
    }

    /// Tells the homes of the next followers, in the order of their ids. Who has crossed again since has another job.
    pub(super) async fn chunk(&self, job: &Job) -> Result<Next, Error> {
        let not_after = self.clock.unix_ms() + STATE_WRITE_MS_MAX;
        let modes = self.modes.modes(&[job.subject]).await?;
        let Some(mode) = modes.into_iter().find(|mode| mode.version == job.version) else { return Ok(Next::Through) };
        let after = UserId::new(job.step).ok().map(|last| (job.subject, last));
        let edges = self.graph.followers(&[job.subject], after, CHUNK_FOLLOWERS).await?;
        let readers: Vec<_> = edges.iter().map(|(_, reader)| *reader).collect();
        match job.kind {
            JobKind::MergePulled => self.merge(mode, &readers, not_after).await?,
            _ => self.mark(mode, &readers, not_after).await?,
        }
        match readers.last() {
            Some(last) if readers.len() == CHUNK_FOLLOWERS as usize => Ok(Next::Step(last.get())),
            _ => self.settle(job).await,
        }
    }

    /// The posts are merged at read from now on.
    async fn mark(&self, mode: AuthorMode, readers: &[UserId], not_after: i64) -> Result<(), Error> {
        let state = [mode.state()];
        let marks = stream::iter(readers.to_vec()).map(|reader| self.authors.set(reader, &state, not_after));
        Ok(marks.buffer_unordered(AT_ONCE).try_collect().await?)
    }

    /// The posts come into the home, and are soon no longer merged at read, in one step. They are read after the author has fallen:
    /// what the archive does not have by then, the relay pushes when it comes, because it looks at the mode once more.
    async fn merge(&self, mode: AuthorMode, readers: &[UserId], not_after: i64) -> Result<(), Error> {
        let wanted = HOME_MEMBERS_KEPT - 1;
        let rows = u32::try_from(wanted).unwrap_or(u32::MAX);
        let posts = self.archive.page(mode.author, None, rows).await?;
        let complete_to = match posts.last() {
            Some(last) if posts.len() == wanted => Coverage::down_to(last.id.into()),
            _ => Coverage::TO_THE_BEGINNING,
        };
        let entries: Vec<_> = posts.iter().map(|post| Entry { id: post.id.into(), author: post.author }).collect();
        let state = [AuthorState { until_ms: self.clock.unix_ms() + MERGED_ON_MS, ..mode.state() }];
        let merges = stream::iter(readers.to_vec())
            .map(|reader| self.homes.merge_with(reader, &state, &entries, complete_to, not_after));
        Ok(merges.buffer_unordered(AT_ONCE).try_collect().await?)
    }

    async fn settle(&self, job: &Job) -> Result<Next, Error> {
        let event = Event { id: self.ids.mint()?, compose: &GraphChange::payload };
        match self.modes.settle(job, event).await? {
            true => Ok(Next::Ended),
            // Another pod does it: it is told by the checkpoint that is not written.
            false => Ok(Next::Step(job.step)),
        }
    }
}
