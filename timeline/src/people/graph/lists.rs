//! Lists and relationships, as a viewer may see them. They come from the ledger: it has an index for each list, a page costs
//! the same whatever the list's length, and it shows a change from its answer on. The archive's tables are in the order of
//! ids, for fan-out.

use std::collections::HashMap;

use chassis::{Error, Reason, page::PageLimit};
use proto::UserId;
use store::ledger::{List, Listed, Relationship};

use super::Graph;
use crate::cursor::Cursor;

/// How many people may be asked about at once.
pub(in crate::people) const RELATIONSHIPS_MAX: usize = 200;

/// A page of a list.
pub(in crate::people) struct ListPage {
    pub(in crate::people) listed: Vec<Listed>,
    /// Where the next one begins; `None` when this is the last one.
    pub(in crate::people) next: Option<Cursor>,
}

impl Graph {
    /// What a person is to others, in their order.
    pub(in crate::people) async fn relationships(
        &self,
        viewer: UserId,
        others: &[UserId],
    ) -> Result<Vec<Relationship>, Error> {
        let found = self.relations.relationships(viewer, others).await?;
        let by_id: HashMap<_, _> = found.into_iter().map(|found| (found.other, found)).collect();
        Ok(others.iter().filter_map(|other| by_id.get(other).copied()).collect())
    }

    /// A page of the viewer's own list.
    pub(in crate::people) async fn own_list(
        &self,
        list: List,
        owner: UserId,
        limit: PageLimit,
        cursor: Option<Cursor>,
    ) -> Result<ListPage, Error> {
        // One more than asked for tells whether there is another page.
        let wanted = u32::try_from(limit.get() + 1).unwrap_or(u32::MAX);
        let mut listed = self.relations.list(list, owner, cursor.map(|cursor| cursor.0), wanted).await?;
        let more = listed.len() > limit.get();
        listed.truncate(limit.get());
        let next = listed.last().filter(|_| more).map(|last| Cursor(last.place));
        Ok(ListPage { listed, next })
    }

    /// A page of anyone's list, without those whom the viewer may not see.
    pub(in crate::people) async fn list(
        &self,
        list: List,
        (viewer, owner): (UserId, UserId),
        limit: PageLimit,
        cursor: Option<Cursor>,
    ) -> Result<ListPage, Error> {
        self.require_sight(viewer, owner).await?;
        let mut page = self.own_list(list, owner, limit, cursor).await?;
        let people: Vec<_> = page.listed.iter().map(|listed| listed.place.user).collect();
        let relationships = self.relations.relationships(viewer, &people).await?;
        let is_seen: HashMap<_, _> =
            relationships.into_iter().map(|other| (other.other, !other.blocking && !other.blocked_by)).collect();
        page.listed.retain(|listed| is_seen.get(&listed.place.user).copied().unwrap_or(false));
        Ok(page)
    }

    /// That the viewer may look at someone's lists.
    async fn require_sight(&self, viewer: UserId, owner: UserId) -> Result<(), Error> {
        let found = self.relations.relationships(viewer, &[owner]).await?.pop();
        match found {
            Some(_) if viewer == owner => Ok(()),
            Some(owner) if owner.blocking || owner.blocked_by => Err(nobody()),
            Some(owner) if owner.private && !owner.following => {
                Err(Error::new(Reason::NotAllowed, "the account is private: only its followers see its lists"))
            }
            Some(_) => Ok(()),
            None => Err(nobody()),
        }
    }
}

fn nobody() -> Error {
    Error::new(Reason::UserNotFound, "there is no such user")
}
