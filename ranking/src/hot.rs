//! The hot posts of a day. Counts are absolute and carry their version, so an event that comes twice, late or out of order
//! does no harm; and a list that was lost is filled from the ledger.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use async_trait::async_trait;
use chassis::{Clock, Error, Reason, failpoint, page::PageLimit};
use futures_util::future::try_join_all;
use proto::{PostId, freshet::event::v1::envelope::Payload};
use store::{
    consumer::{Event, Failure, Handler},
    ledger::{Ledger, Likes, Posts, Viewer},
    sets::{Hot, HotLists, Sets},
};

use tokio::time::Instant;

use crate::day::{Calendar, DAYS_KEPT, Day};

const SCORE_PER_LIKE: i64 = 3;
const REFILL_POSTS: u32 = 1000;
const REFILL_TRIES_MAX: u32 = 3;
/// How often a list is asked for more, four times as many each time. Past that it is short.
const TOP_ASKS_MAX: u32 = 4;

/// Keeps and serves the hot posts.
pub(crate) struct HotPosts {
    lists: Arc<dyn HotLists>,
    ledger: Arc<dyn Posts>,
    clock: Arc<dyn Clock>,
    calendar: Calendar,
}

impl HotPosts {
    pub(crate) fn new(ledger: &Ledger, sets: &Sets, clock: Arc<dyn Clock>, calendar: Calendar) -> Self {
        Self { lists: sets.hot_lists.clone(), ledger: ledger.posts.clone(), clock, calendar }
    }

    /// The hottest posts of a day; of today when no day is named.
    pub(crate) async fn list(&self, day: Option<Day>, limit: PageLimit) -> Result<Vec<Hot>, Error> {
        let today = self.calendar.day_at(self.clock.unix_ms());
        let day = day.unwrap_or(today);
        if !day.is_kept(today) {
            return Err(Error::invalid(
                "day",
                format_args!("must be today or one of the {} days before", DAYS_KEPT - 1),
            ));
        }
        if !self.lists.is_complete(&day.key()).await? {
            self.refill(day).await?;
        }
        self.public_top(day, limit.get()).await
    }

    /// The hottest that everybody may see now. Where some of the list are not public any more, or were deleted, more of it are
    /// asked for.
    async fn public_top(&self, day: Day, limit: usize) -> Result<Vec<Hot>, Error> {
        let mut asked = limit;
        for _ in 1..TOP_ASKS_MAX {
            let hot = self.lists.top(&day.key(), asked).await?;
            let was_all = hot.len() < asked;
            let public = self.public(hot).await?;
            if was_all || public.len() >= limit {
                return Ok(public.into_iter().take(limit).collect());
            }
            asked *= 4;
        }
        let public = self.public(self.lists.top(&day.key(), asked).await?).await?;
        Ok(public.into_iter().take(limit).collect())
    }

    async fn public(&self, mut hot: Vec<Hot>) -> Result<Vec<Hot>, Error> {
        let ids: Vec<_> = hot.iter().map(|hot| hot.post).collect();
        let posts = self.ledger.batch(Viewer::Stranger, &ids).await?;
        let public: HashSet<_> = posts.iter().map(|post| post.id).collect();
        // A post that lost its likes stays in the list with its version, and is not hot.
        hot.retain(|hot| hot.score > 0 && public.contains(&hot.post));
        Ok(hot)
    }

    /// Fills a day's list from the ledger. Events that come meanwhile win where they are newer. A list that is lost meanwhile
    /// is filled again.
    async fn refill(&self, day: Day) -> Result<(), Error> {
        for _ in 0..REFILL_TRIES_MAX {
            let fill = self.lists.begin_fill(&day.key()).await?;
            let (mut from, until) = self.calendar.ids_of(day);
            loop {
                let liked = self.ledger.liked_between(from, until, REFILL_POSTS).await?;
                let Some((last, _)) = liked.last() else { break };
                from = last.get() + 1;
                for (post, likes) in &liked {
                    self.record(*post, *likes).await?;
                }
            }
            if self.lists.set_complete(&day.key(), fill).await? {
                return Ok(());
            }
        }
        Err(Error::new(Reason::Unavailable, "the hot list was lost while it was filled; try again"))
    }

    async fn record(&self, post: PostId, likes: Likes) -> Result<(), store::Error> {
        let day = self.calendar.day_of(post);
        // Nobody can ask for an older day's list any more.
        if !day.is_kept(self.calendar.day_at(self.clock.unix_ms())) {
            return Ok(());
        }
        self.lists.record(&day.key(), post, likes, likes.count * SCORE_PER_LIKE).await
    }
}

#[async_trait]
impl Handler for HotPosts {
    async fn apply(&self, events: &[Event], _not_after: Instant) -> Result<(), Failure> {
        // Of several about one post, the newest says it all.
        let mut newest: BTreeMap<PostId, Likes> = BTreeMap::new();
        for event in events {
            let (post, likes) = liked(event)?;
            let known = newest.entry(post).or_insert(likes);
            if known.version < likes.version || failpoint::is_on("likes.ignore_versions") {
                *known = likes;
            }
        }
        try_join_all(newest.into_iter().map(|(post, likes)| self.record(post, likes))).await?;
        Ok(())
    }
}

fn liked(event: &Event) -> Result<(PostId, Likes), Failure> {
    let (post_id, count) = match &event.envelope.payload {
        Some(Payload::Liked(liked)) => (&liked.post_id, liked.like_count),
        Some(Payload::Unliked(unliked)) => (&unliked.post_id, unliked.like_count),
        _ => {
            let what = &event.envelope.r#type;
            return Err(Failure::Final(format!("it is said to be {what:?} and carries something else")));
        }
    };
    let post = post_id.parse().map_err(|cause| Failure::Final(format!("post_id {cause}")))?;
    Ok((post, Likes { count, version: event.envelope.version }))
}
