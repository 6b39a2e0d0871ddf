//! How much a caller may ask for at once.

/// The most entries of a page.
pub const PAGE_ENTRIES_MAX: usize = 200;
/// The entries of a page when the caller does not say.
pub const PAGE_ENTRIES_DEFAULT: usize = 10;
const _: () = assert!(PAGE_ENTRIES_DEFAULT <= PAGE_ENTRIES_MAX);

/// How many entries a page may have: 1 to [`PAGE_ENTRIES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimit(usize);

/// The caller asked for too few or too many.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be from 1 to {PAGE_ENTRIES_MAX}, and is {0}")]
pub struct InvalidLimit(i32);

impl PageLimit {
    /// What the caller asked for, or the default when nothing was said.
    pub fn new(asked: Option<i32>) -> Result<Self, InvalidLimit> {
        let Some(asked) = asked else { return Ok(Self(PAGE_ENTRIES_DEFAULT)) };
        let entries = usize::try_from(asked).map_err(|_| InvalidLimit(asked))?;
        if (1..=PAGE_ENTRIES_MAX).contains(&entries) { Ok(Self(entries)) } else { Err(InvalidLimit(asked)) }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0
    }
}
