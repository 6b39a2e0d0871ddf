//! What people did and what they were told: kept on disk, line by line, so that a run can be looked at afterwards.

use std::{
    fs::File,
    io::Write as _,
    path::Path,
    sync::{Mutex, PoisonError},
};

use chassis::{Error, Reason};
use proto::UserId;
use serde_json::json;

/// What somebody wanted to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// To write a post; the id when there was an answer.
    Post {
        /// The text: unique in a run.
        text: String,
        /// The id, if it was told.
        id: Option<String>,
    },
    /// To like a post.
    Like {
        /// Which.
        post: String,
    },
    /// To follow somebody.
    Follow {
        /// Whom.
        followee: UserId,
    },
}

/// What they know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered: it must be there for ever.
    Acknowledged,
    /// It was refused: it must not be there.
    Refused,
    /// Nobody knows: it may be there.
    Unknown,
}

impl Outcome {
    /// What an answer means.
    #[must_use]
    pub fn of<T>(answer: &Result<T, Error>) -> Self {
        match answer {
            Ok(_) => Self::Acknowledged,
            Err(error) => match error.reason() {
                Reason::Unavailable | Reason::DeadlineExceeded | Reason::Internal => Self::Unknown,
                _ => Self::Refused,
            },
        }
    }
}

/// A line of the journal.
#[derive(Clone, Debug)]
pub struct Line {
    /// Who.
    pub person: UserId,
    /// What.
    pub deed: Deed,
    /// What came of it.
    pub outcome: Outcome,
}

/// The journal of a run.
pub struct Journal {
    file: Mutex<File>,
    lines: Mutex<Vec<Line>>,
}

impl Journal {
    /// A journal in this folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        let file = File::create(folder.join("journal.jsonl")).expect("a journal");
        Self { file: Mutex::new(file), lines: Mutex::default() }
    }

    /// Writes a line.
    pub fn write(&self, person: UserId, deed: Deed, outcome: Outcome) {
        let line = json!({"person": person, "deed": format!("{deed:?}"), "outcome": format!("{outcome:?}")});
        writeln!(self.file.lock().unwrap_or_else(PoisonError::into_inner), "{line}").expect("a line in the journal");
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(Line { person, deed, outcome });
    }

    /// All lines so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
