//! People's exact numbers, and the lock under which what two people are to each other is changed.

use proto::UserId;
use sqlx::QueryBuilder;

use super::{Change, LOCK_ROW, failed, push_is_one_of};
use crate::{Entity, Error, ledger::Pair};

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

/// Counts a follow that began. Under the lock; refused where it would be one too many.
pub(super) async fn count_follow(change: &mut Change, pair: Pair, followees_max: u32) -> Result<(), Error> {
    let counted = count(change, pair, 1, i64::from(followees_max)).await?;
    if counted == 2 { Ok(()) } else { Err(Error::FolloweesFull { max: followees_max }) }
}

/// Counts a follow that ended. Under the lock.
pub(super) async fn count_unfollow(change: &mut Change, pair: Pair) -> Result<(), Error> {
    count(change, pair, -1, i64::MAX).await.map(|_| ())
}

async fn count(change: &mut Change, pair: Pair, by: i64, followees_max: i64) -> Result<u64, Error> {
    let counted = sqlx::query(
        "UPDATE user_counters SET following = following + CASE WHEN user_id = $1 THEN $3 ELSE 0 END, \
             followers = followers + CASE WHEN user_id = $2 THEN $3 ELSE 0 END \
         WHERE user_id IN ($1, $2) AND (user_id <> $1 OR following < $4)",
    )
    .bind(pair.from.get())
    .bind(pair.to.get())
    .bind(by)
    .bind(followees_max)
    .execute(&mut *change.transaction)
    .await
    .map_err(failed)?;
    Ok(counted.rows_affected())
}

/// Counts a post that was written.
pub(super) async fn count_post(change: &mut Change, author: UserId) -> Result<(), Error> {
    let counted = sqlx::query("UPDATE user_counters SET posts = posts + 1 WHERE user_id = $1").bind(author.get());
    counted.execute(&mut *change.transaction).await.map(|_| ()).map_err(failed)
}

/// Counts a post that was deleted.
pub(super) async fn uncount_post(change: &mut Change, author: UserId) -> Result<(), Error> {
    let counted = sqlx::query("UPDATE user_counters SET posts = posts - 1 WHERE user_id = $1").bind(author.get());
    counted.execute(&mut *change.transaction).await.map(|_| ()).map_err(failed)
}
