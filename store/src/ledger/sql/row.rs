//! Reads columns.

use sqlx::Row as _;

use super::{Row, STORE, failed};
use crate::{Error, error::damaged};

/// Reads a number that only some values are allowed for, such as an id.
pub(super) fn number<T: TryFrom<i64>>(row: &Row, column: &str) -> Result<T, Error> {
    let number: i64 = row.try_get(column).map_err(failed)?;
    T::try_from(number).map_err(|_| damaged(STORE, format_args!("{column} = {number}")))
}
