//! Which archive it is: one that was lost and made again is another one.

use std::fmt;

/// One life of an archive, from its making to its loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generation(i64);

impl Generation {
    /// The generation with this number.
    #[must_use]
    pub const fn new(number: i64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
