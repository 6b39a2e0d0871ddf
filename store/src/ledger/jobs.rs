//! Jobs: work that a change leaves to be done, too much for its transaction. A job is a row that is written with the change, so
//! that none is forgotten; whoever holds its lease does it, a chunk at a time.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use proto::UserId;
use tokio::sync::watch;

use crate::Error;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// To end all that a deleted person has to do with others.
    CleanUp,
    /// To tell the homes of an author's followers that the posts are merged at read.
    MarkPull,
    /// To bring the homes of an author's followers the posts that were merged at read.
    MergePulled,
}

impl JobKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::CleanUp, Self::MarkPull, Self::MergePulled];

    /// As it is written in its row.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CleanUp => "clean-up",
            Self::MarkPull => "mark-pull",
            Self::MergePulled => "merge-pulled",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A job, and the right to do its next chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub id: i64,
    /// What is to be done.
    pub kind: JobKind,
    /// About whom.
    pub subject: UserId,
    /// The version of what it is done for: where that has a higher one, nobody wants it any more.
    pub version: i64,
    /// How far it is; zero before the first chunk.
    pub step: i64,
    /// Whose right it is.
    pub owner: String,
    /// Higher than every earlier owner's.
    pub epoch: i64,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} ({} of {})", self.id, self.kind.name(), self.subject)
    }
}

/// Jobs, leased by the ledger's clock. A chunk may be done twice: by one who dies before it writes down how far it is, and by
/// the next one.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// Takes the right to do the next chunk of a job that nobody does; of several, the one whose turn is longest ago. `None`
    /// when there is none.
    async fn claim(&self, owner: &str, ttl: Duration) -> Result<Option<Job>, Error>;

    /// Writes down how far the job is, and gives it back. False, and nothing is written, when the lease was lost.
    async fn advance(&self, job: &Job, step: i64) -> Result<bool, Error>;

    /// Gives the job back as it was taken, not to be taken again before that time has passed.
    async fn postpone(&self, job: &Job, span: Duration) -> Result<(), Error>;

    /// Takes away a job that is through. False when the lease was lost.
    async fn finish(&self, job: &Job) -> Result<bool, Error>;

    /// How many there are.
    async fn waiting(&self) -> Result<u64, Error>;

    /// Changes whenever this process has committed a change with a job.
    fn made(&self) -> watch::Receiver<u64>;
}
