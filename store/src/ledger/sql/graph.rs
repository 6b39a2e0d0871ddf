//! Who follows whom.

use async_trait::async_trait;
use proto::UserId;

use sqlx::QueryBuilder;

use super::{SqlLedger, accounts::require_users, failed, push_is_one_of, row::number};
use crate::{
    Error,
    ledger::{Event, Graph},
};

#[async_trait]
impl Graph for SqlLedger {
    async fn follow(&self, follower: UserId, followee: UserId, event: Event<'_, ()>) -> Result<bool, Error> {
        self.retried(|| self.try_follow(follower, followee, &event)).await
    }

    async fn followees(&self, reader: UserId) -> Result<Vec<UserId>, Error> {
        let query = sqlx::query("SELECT followee FROM follows WHERE follower = $1 AND active").bind(reader.get());
        let rows = self.answered(query.fetch_all(self.reader())).await?;
        rows.iter().map(|row| number(row, "followee")).collect()
    }

    async fn followers(
        &self,
        authors: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
    ) -> Result<Vec<(UserId, UserId)>, Error> {
        if authors.is_empty() {
            return Ok(Vec::new());
        }
        let after = after.map_or((0, 0), |(author, follower)| (author.get(), follower.get()));
        let mut query = QueryBuilder::new("SELECT followee, follower FROM follows WHERE active AND followee");
        push_is_one_of(&mut query, authors.iter().map(|author| author.get()).collect());
        query.push(" AND (followee, follower) > (").push_bind(after.0).push(", ").push_bind(after.1);
        query.push(") ORDER BY followee, follower LIMIT ").push_bind(i64::from(limit));
        let rows = self.answered(query.build().fetch_all(self.reader())).await?;
        rows.iter().map(|row| Ok((number(row, "followee")?, number(row, "follower")?))).collect()
    }
}

impl SqlLedger {
    async fn try_follow(&self, follower: UserId, followee: UserId, event: &Event<'_, ()>) -> Result<bool, Error> {
        let mut change = self.begin().await?;
        require_users(&mut change, [follower, followee]).await?;
        // One statement: of many at once, the row's lock lets one through, and the others then find it active.
        let version: Option<i64> = sqlx::query_scalar(
            "INSERT INTO follows (follower, followee, active, version) VALUES ($1, $2, TRUE, $3) \
             ON CONFLICT (follower, followee) DO UPDATE SET active = TRUE, version = \
                 CASE WHEN follows.version < excluded.version THEN excluded.version ELSE follows.version + 1 END \
             WHERE NOT follows.active RETURNING version",
        )
        .bind(follower.get())
        .bind(followee.get())
        .bind(change.now_us)
        .fetch_optional(&mut *change.transaction)
        .await
        .map_err(failed)?;
        let Some(version) = version else { return Ok(false) };
        self.write_event(&mut change, event, version, &()).await?;
        self.commit(change).await?;
        Ok(true)
    }
}
