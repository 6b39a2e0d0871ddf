//! Hot lists in the process.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use async_trait::async_trait;
use proto::PostId;

use super::Memory;
use crate::{
    Error,
    ledger::Likes,
    sets::{Fill, Hot, HotLists},
};

/// The seven that can be asked for, and one more: at midnight pods do not turn the day at the same moment.
const DAYS_KEPT: usize = 8;

/// A day's list.
#[derive(Default)]
pub(super) struct Day {
    complete: bool,
    /// Those that have begun and not ended.
    fills: HashSet<Fill>,
    posts: HashMap<PostId, (i64, Likes)>,
}

impl super::State {
    fn forget_old_days(&mut self) {
        while self.hot.len() > DAYS_KEPT {
            self.hot.pop_first();
        }
    }
}

#[async_trait]
impl HotLists for Memory {
    async fn is_complete(&self, day: &str) -> Result<bool, Error> {
        Ok(self.state().hot.get(day).is_some_and(|day| day.complete))
    }

    async fn begin_fill(&self, day: &str) -> Result<Fill, Error> {
        let fill = Fill(self.random.number());
        let mut state = self.state();
        state.hot.entry(day.to_owned()).or_default().fills.insert(fill);
        state.forget_old_days();
        Ok(fill)
    }

    async fn set_complete(&self, day: &str, fill: Fill) -> Result<bool, Error> {
        let mut state = self.state();
        let Some(day) = state.hot.get_mut(day) else { return Ok(false) };
        let begun = day.fills.remove(&fill);
        day.complete |= begun;
        Ok(begun)
    }

    async fn record(&self, day: &str, post: PostId, likes: Likes, score: i64) -> Result<(), Error> {
        let mut state = self.state();
        let posts = &mut state.hot.entry(day.to_owned()).or_default().posts;
        if posts.get(&post).is_none_or(|(_, known)| known.version < likes.version) {
            posts.insert(post, (score, likes));
        }
        state.forget_old_days();
        Ok(())
    }

    async fn top(&self, day: &str, limit: usize) -> Result<Vec<Hot>, Error> {
        let state = self.state();
        let posts = state.hot.get(day).map(|day| &day.posts).into_iter().flatten();
        let mut hot: Vec<_> = posts.map(|(post, (score, _))| Hot { post: *post, score: *score }).collect();
        hot.sort_unstable_by_key(|hot| Reverse((hot.score, hot.post)));
        hot.truncate(limit);
        Ok(hot)
    }
}
