//! Who may see a post: the one rule that every read goes by.

use sqlx::QueryBuilder;

use super::Driver;
use crate::ledger::Viewer;

/// The rule, about a row of `posts` and the one of `viewer`. It is about this very moment: a private account's public posts
/// are its followers', at once and back at once; and a block hides both ways. The author's row is looked up and not
/// joined, so that a statement with this rule can lock the post's row alone.
pub(super) const MAY_SEE: &str = "posts.deleted_at_ms IS NULL AND EXISTS (SELECT 1 FROM viewer, accounts AS writer \
    WHERE writer.id = posts.author AND writer.deleted_at_ms IS NULL AND (posts.author = viewer.id OR ( \
        posts.visibility < 2 \
        AND (posts.visibility = 0 AND NOT writer.private OR EXISTS (SELECT 1 FROM follows \
            WHERE follows.follower = viewer.id AND follows.followee = posts.author AND follows.active)) \
        AND NOT EXISTS (SELECT 1 FROM blocks \
            WHERE blocks.blocker = viewer.id AND blocks.blocked = posts.author AND blocks.active) \
        AND NOT EXISTS (SELECT 1 FROM blocks \
            WHERE blocks.blocker = posts.author AND blocks.blocked = viewer.id AND blocks.active))))";

/// A statement that reads these columns of those posts that the viewer may see. It goes on with ` AND …`.
pub(super) fn sight(viewer: Viewer, columns: &str) -> QueryBuilder<Driver> {
    let mut query = QueryBuilder::new("WITH viewer (id) AS (SELECT CAST(");
    query.push_bind(number(viewer)).push(" AS BIGINT)) SELECT ").push(columns).push(" FROM posts WHERE ").push(MAY_SEE);
    query
}

/// Nobody has the id 0.
fn number(viewer: Viewer) -> i64 {
    match viewer {
        Viewer::Person(user) => user.get(),
        Viewer::Stranger => 0,
    }
}
