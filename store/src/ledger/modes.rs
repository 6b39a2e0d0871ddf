//! How authors' posts reach their followers: pushed to each home when they are written, or, where there are too many followers,
//! merged at read. On the way from one to the other they are pushed and merged, until a job has told every home.

use async_trait::async_trait;
use proto::{UserId, freshet::event::v1};

use super::{Event, GraphChange, Job, Post};
use crate::{
    Error,
    sets::{AuthorState, Special},
};

/// Limits of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowLimits {
    /// How many people one may follow.
    pub followees_max: u32,
    /// From how many followers on an author's posts are merged at read; below nine tenths of it they are pushed again.
    pub celebrity_followers: u32,
}

/// How a post reaches the followers' homes. It is decided when the post is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOut {
    /// It is pushed.
    Push,
    /// It is pushed, and some readers merge its author's posts already, or still.
    Both,
    /// Every reader merges its author's posts.
    Pull,
}

impl FanOut {
    /// As it is written in the post's row.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Push => 0,
            Self::Both => 1,
            Self::Pull => 2,
        }
    }

    /// As events have it.
    #[must_use]
    pub const fn to_wire(self) -> v1::FanOut {
        match self {
            Self::Push => v1::FanOut::Push,
            Self::Both => v1::FanOut::Both,
            Self::Pull => v1::FanOut::Pull,
        }
    }
}

/// A post as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The post.
    pub post: Post,
    /// How it reaches the followers' homes.
    pub fan_out: FanOut,
}

/// How an author's posts reach the followers' homes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are pushed.
    Push,
    /// They are pushed, and a job tells every home to merge them.
    Rising,
    /// They are merged at read.
    Pull,
    /// They are pushed, and a job brings every home those that were not.
    Falling,
}

impl Mode {
    const ALL: [Self; 4] = [Self::Push, Self::Rising, Self::Pull, Self::Falling];

    /// As it is written in the author's row.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Push => 0,
            Self::Rising => 1,
            Self::Pull => 2,
            Self::Falling => 3,
        }
    }

    /// The mode with this number.
    pub(crate) fn numbered(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.number() == number)
    }

    /// How a post that is written now reaches the homes.
    #[must_use]
    pub const fn fan_out(self) -> FanOut {
        match self {
            Self::Push => FanOut::Push,
            Self::Rising | Self::Falling => FanOut::Both,
            Self::Pull => FanOut::Pull,
        }
    }

    /// Whether a home that is told of the author now must merge the posts.
    #[must_use]
    pub const fn is_merged(self) -> bool {
        matches!(self, Self::Rising | Self::Pull)
    }

    /// What an author becomes who has so many followers now; `None` when that is nothing new.
    pub(crate) fn crossed(self, followers: i64, celebrity_followers: u32) -> Option<Self> {
        let celebrity = i64::from(celebrity_followers);
        match self {
            Self::Push | Self::Falling if followers >= celebrity => Some(Self::Rising),
            Self::Pull | Self::Rising if followers * 10 < celebrity * 9 => Some(Self::Falling),
            _ => None,
        }
    }

    /// What comes after it when its job is through.
    pub(crate) const fn settled(self) -> Self {
        match self {
            Self::Rising | Self::Pull => Self::Pull,
            Self::Falling | Self::Push => Self::Push,
        }
    }
}

/// An author's mode, since a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorMode {
    /// Whose.
    pub author: UserId,
    /// How the posts reach the homes.
    pub mode: Mode,
    /// Of two, the higher one is the newer truth.
    pub version: i64,
}

impl AuthorMode {
    /// What the author is to a reader by it.
    #[must_use]
    pub const fn state(&self) -> AuthorState {
        AuthorState::new(self.author, Special::Pull, self.mode.is_merged(), self.version)
    }
}

/// How authors' posts reach their followers. A crossing is part of the follow, or of its end, that makes it.
#[async_trait]
pub trait Modes: Send + Sync {
    /// The modes of these authors, in no order; those who never had another one than [`Mode::Push`] are left out.
    async fn modes(&self, authors: &[UserId]) -> Result<Vec<AuthorMode>, Error>;

    /// Of those whom a reader follows, the ones whose posts are merged at read, in no order.
    async fn merged_followees(&self, reader: UserId) -> Result<Vec<AuthorMode>, Error>;

    /// Ends a crossing whose job has told every home, and the job with it. Where the author has crossed again meanwhile, only the
    /// job ends. False, and nothing ends, when the job's lease was lost.
    async fn settle(&self, job: &Job, event: Event<'_, GraphChange>) -> Result<bool, Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_author_rises_at_the_threshold_and_falls_below_nine_tenths_of_it() {
        for (mode, followers, expected) in [
            (Mode::Push, 99, None),
            (Mode::Push, 100, Some(Mode::Rising)),
            (Mode::Falling, 100, Some(Mode::Rising)),
            (Mode::Rising, 101, None),
            (Mode::Pull, 90, None),
            (Mode::Pull, 89, Some(Mode::Falling)),
            (Mode::Rising, 89, Some(Mode::Falling)),
            (Mode::Falling, 89, None),
        ] {
            assert_eq!(mode.crossed(followers, 100), expected, "{mode:?} with {followers}");
        }
    }

    #[test]
    fn a_mode_is_read_as_it_was_written() {
        for mode in Mode::ALL {
            assert_eq!(Mode::numbered(mode.number()), Some(mode));
        }
        assert_eq!(Mode::numbered(4), None);
    }
}
