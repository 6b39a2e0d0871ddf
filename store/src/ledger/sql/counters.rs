//! People's exact numbers, and the lock under which what two people are to each other is changed.

use proto::UserId;
use sqlx::QueryBuilder;

use super::{
    Change, LOCK_ROW, Row, failed,
    modes::{author_mode, mode},
    push_is_one_of,
    row::number,
};
use crate::{
    Entity, Error,
    ledger::{AuthorMode, Mode, Pair},
};

/// A new person's row.
pub(super) async fn begin_counting(change: &mut Change, user: UserId) -> Result<(), Error> {
    let made = sqlx::query("INSERT INTO user_counters (user_id) VALUES ($1)").bind(user.get());
    made.execute(&mut *change.transaction).await.map(|_| ()).map_err(failed)
}

/// Makes the changes between two people come one after the other, to the end of this one. The rows are locked in the order of
/// their ids: two that follow each other at the same moment do not wait in a circle.
pub(super) async fn lock_both(change: &mut Change, pair: Pair) -> Result<(), Error> {
    let mut query = QueryBuilder::new("SELECT user_id FROM user_counters WHERE user_id");
    push_is_one_of(&mut query, vec![pair.from.get(), pair.to.get()]);
    query.push(" ORDER BY user_id").push(LOCK_ROW);
    let locked = query.build().fetch_all(&mut *change.transaction).await.map_err(failed)?;
    let wanted = if pair.from == pair.to { 1 } else { 2 };
    if locked.len() == wanted { Ok(()) } else { Err(Error::NotFound(Entity::User)) }
}

/// The same for many people at once.
pub(super) async fn lock_all(change: &mut Change, people: impl Iterator<Item = UserId>) -> Result<(), Error> {
    let mut query = QueryBuilder::new("SELECT user_id FROM user_counters WHERE user_id");
    push_is_one_of(&mut query, people.map(UserId::get).collect());
    query.push(" ORDER BY user_id").push(LOCK_ROW);
    query.build().fetch_all(&mut *change.transaction).await.map(|_| ()).map_err(failed)
}

/// Counts a follow that began. Under the lock; refused where it would be one too many. Gives the followee's mode, and how many
/// followers the followee has now.
pub(super) async fn count_follow(
    change: &mut Change,
    pair: Pair,
    followees_max: u32,
) -> Result<(AuthorMode, i64), Error> {
    let counted = count(change, pair, 1, i64::from(followees_max)).await?;
    counted.ok_or(Error::FolloweesFull { max: followees_max })
}

/// Counts a follow that ended. Under the lock.
pub(super) async fn count_unfollow(change: &mut Change, pair: Pair) -> Result<(AuthorMode, i64), Error> {
    count(change, pair, -1, i64::MAX).await?.ok_or(Error::NotFound(Entity::User))
}

/// `None` when not both are counted.
async fn count(
    change: &mut Change,
    pair: Pair,
    by: i64,
    followees_max: i64,
) -> Result<Option<(AuthorMode, i64)>, Error> {
    let counted = sqlx::query(
        "UPDATE user_counters SET following = following + CASE WHEN user_id = $1 THEN $3 ELSE 0 END, \
             followers = followers + CASE WHEN user_id = $2 THEN $3 ELSE 0 END \
         WHERE user_id IN ($1, $2) AND (user_id <> $1 OR following < $4) \
         RETURNING user_id, followers, mode, mode_version",
    )
    .bind(pair.from.get())
    .bind(pair.to.get())
    .bind(by)
    .bind(followees_max)
    .fetch_all(&mut *change.transaction)
    .await
    .map_err(failed)?;
    let of = |row: &Row| Ok((author_mode(row)?, number(row, "followers")?));
    let all = counted.iter().map(of).collect::<Result<Vec<_>, Error>>()?;
    Ok(all.iter().find(|(mode, _)| all.len() == 2 && mode.author == pair.to).copied())
}

/// Counts a post that is written, and tells in which mode its author is. The row is locked to the end of the change: the mode
/// stays so.
pub(super) async fn count_post(change: &mut Change, author: UserId) -> Result<Mode, Error> {
    let counted = sqlx::query("UPDATE user_counters SET posts = posts + 1 WHERE user_id = $1 RETURNING mode");
    let row = counted.bind(author.get()).fetch_one(&mut *change.transaction).await.map_err(failed)?;
    mode(&row)
}

/// Counts a post that was deleted.
pub(super) async fn uncount_post(change: &mut Change, author: UserId) -> Result<(), Error> {
    let counted = sqlx::query("UPDATE user_counters SET posts = posts - 1 WHERE user_id = $1").bind(author.get());
    counted.execute(&mut *change.transaction).await.map(|_| ()).map_err(failed)
}
