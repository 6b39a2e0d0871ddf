//! The posts that this pod was told of lately. The relay tells at least once: after a kill, or while Kafka was away, it may
//! tell of hundreds of posts again, long after the first time.

use std::collections::{HashMap, VecDeque};

use proto::PostId;

use crate::limits::TOLD_POSTS_MAX;

/// Which delivery of a pod: they are counted.
pub(crate) type Turn = u64;

/// What the pod was told, and when first. One memory serves all its streams.
#[derive(Default)]
pub(crate) struct Told {
    turn: Turn,
    first: HashMap<PostId, Turn>,
    order: VecDeque<PostId>,
}

impl Told {
    /// How many deliveries there were.
    pub(crate) const fn turn(&self) -> Turn {
        self.turn
    }

    /// Notes a delivery about a post. Gives the turn of the first one: whoever was there by then has had it.
    pub(crate) fn again(&mut self, post: PostId) -> Option<Turn> {
        self.turn += 1;
        if let Some(first) = self.first.get(&post) {
            return Some(*first);
        }
        if self.order.len() == TOLD_POSTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.first.remove(&oldest);
        }
        self.first.insert(post, self.turn);
        self.order.push_back(post);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_known_until_many_others_came() {
        let mut told = Told::default();
        let post = |number: usize| PostId::new(i64::try_from(number).unwrap() + 1).unwrap();
        assert_eq!(told.again(post(0)), None);
        for number in 1..TOLD_POSTS_MAX {
            assert_eq!(told.again(post(number)), None);
        }
        assert_eq!(told.again(post(0)), Some(1));
        assert_eq!(told.again(post(TOLD_POSTS_MAX)), None);
        assert_eq!(told.again(post(0)), None, "forgotten, as the oldest");
        assert_eq!((told.first.len(), told.order.len()), (TOLD_POSTS_MAX, TOLD_POSTS_MAX));
    }
}
