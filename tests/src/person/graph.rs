//! What a person is to others.

use chassis::Error;
use proto::{
    UserId,
    freshet::user::v1::{
        AcceptFollowRequest, BlockRequest, GetRelationshipRequest, ListBlocksRequest, ListFollowRequestsRequest,
        ListFollowersRequest, ListFollowingRequest, ListMutesRequest, MuteRequest, RejectFollowRequest, Relationship,
        SetPrivateRequest, UnblockRequest, UnfollowRequest, UnmuteRequest,
    },
    timestamp,
};

use super::Person;

impl Person {
    /// No longer follows someone.
    pub async fn unfollow(&self, other: &Self) {
        self.tries_to_unfollow(&other.id.to_string()).await.expect("no follow");
    }

    /// No longer follows whoever has this id, if that is possible.
    pub async fn tries_to_unfollow(&self, followee_id: &str) -> Result<(), Error> {
        let request = UnfollowRequest { follower_id: self.id.to_string(), followee_id: followee_id.into() };
        self.timeline.unfollow(request).await.map(|_| ())
    }

    /// Blocks someone.
    pub async fn block(&self, other: &Self) {
        self.tries_to_block(&other.id.to_string()).await.expect("a block");
    }

    /// Blocks whoever has this id, if that is possible.
    pub async fn tries_to_block(&self, blocked_id: &str) -> Result<(), Error> {
        let request = BlockRequest { blocker_id: self.id.to_string(), blocked_id: blocked_id.into() };
        self.timeline.block(request).await.map(|_| ())
    }

    /// No longer blocks someone.
    pub async fn unblock(&self, other: &Self) {
        self.tries_to_unblock(&other.id.to_string()).await.expect("no block");
    }

    /// No longer blocks whoever has this id, if that is possible.
    pub async fn tries_to_unblock(&self, blocked_id: &str) -> Result<(), Error> {
        let request = UnblockRequest { blocker_id: self.id.to_string(), blocked_id: blocked_id.into() };
        self.timeline.unblock(request).await.map(|_| ())
    }

    /// Mutes someone for good.
    pub async fn mute(&self, other: &Self) {
        self.tries_to_mute(&other.id.to_string(), None).await.expect("a mute");
    }

    /// Mutes whoever has this id until a moment in milliseconds since 1970, or for good, if that is possible.
    pub async fn tries_to_mute(&self, muted_id: &str, until_ms: Option<i64>) -> Result<(), Error> {
        let (muter_id, muted_id) = (self.id.to_string(), muted_id.into());
        self.timeline.mute(MuteRequest { muter_id, muted_id, until: until_ms.map(timestamp) }).await.map(|_| ())
    }

    /// No longer mutes someone.
    pub async fn unmute(&self, other: &Self) {
        self.tries_to_unmute(&other.id.to_string()).await.expect("no mute");
    }

    /// No longer mutes whoever has this id, if that is possible.
    pub async fn tries_to_unmute(&self, muted_id: &str) -> Result<(), Error> {
        let request = UnmuteRequest { muter_id: self.id.to_string(), muted_id: muted_id.into() };
        self.timeline.unmute(request).await.map(|_| ())
    }

    /// What this person is to others, if that is possible.
    pub async fn tries_to_relate_to(&self, user_ids: Vec<String>) -> Result<Vec<Relationship>, Error> {
        let request = GetRelationshipRequest { viewer_id: self.id.to_string(), user_ids };
        self.timeline.get_relationship(request).await.map(|answer| answer.relationships)
    }

    /// What this person is to another one.
    pub async fn relation_to(&self, other: &Self) -> Relationship {
        self.tries_to_relate_to(vec![other.id.to_string()]).await.expect("a relationship").remove(0)
    }

    /// A page of someone's followers as this person sees them, if that is possible.
    pub async fn tries_to_list_followers(
        &self,
        user_id: &str,
        limit: Option<i32>,
        cursor: Option<String>,
    ) -> Result<(Vec<UserId>, Option<String>), Error> {
        let (viewer_id, user_id) = (self.id.to_string(), user_id.into());
        let request = ListFollowersRequest { viewer_id, user_id, limit, cursor };
        self.timeline.list_followers(request).await.map(|page| (ids(&page.user_ids), page.next_cursor))
    }

    /// A page of those whom someone follows as this person sees them, if that is possible.
    pub async fn tries_to_list_following(
        &self,
        user_id: &str,
        limit: Option<i32>,
        cursor: Option<String>,
    ) -> Result<(Vec<UserId>, Option<String>), Error> {
        let (viewer_id, user_id) = (self.id.to_string(), user_id.into());
        let request = ListFollowingRequest { viewer_id, user_id, limit, cursor };
        self.timeline.list_following(request).await.map(|page| (ids(&page.user_ids), page.next_cursor))
    }

    /// A page of those whom this person blocks, if that is possible.
    pub async fn tries_to_list_blocks(
        &self,
        limit: Option<i32>,
        cursor: Option<String>,
    ) -> Result<(Vec<UserId>, Option<String>), Error> {
        let request = ListBlocksRequest { blocker_id: self.id.to_string(), limit, cursor };
        self.timeline.list_blocks(request).await.map(|page| (ids(&page.user_ids), page.next_cursor))
    }

    /// A page of those whom this person mutes, if that is possible.
    pub async fn tries_to_list_mutes(
        &self,
        limit: Option<i32>,
        cursor: Option<String>,
    ) -> Result<(Vec<UserId>, Option<String>), Error> {
        let request = ListMutesRequest { muter_id: self.id.to_string(), limit, cursor };
        let page = self.timeline.list_mutes(request).await?;
        let users: Vec<_> = page.users.into_iter().map(|muted| muted.user_id).collect();
        Ok((ids(&users), page.next_cursor))
    }

    /// A page of those who ask to follow this person, if that is possible.
    pub async fn tries_to_list_requests(
        &self,
        limit: Option<i32>,
        cursor: Option<String>,
    ) -> Result<(Vec<UserId>, Option<String>), Error> {
        let request = ListFollowRequestsRequest { user_id: self.id.to_string(), limit, cursor };
        self.timeline.list_follow_requests(request).await.map(|page| (ids(&page.user_ids), page.next_cursor))
    }

    /// Makes the account private, or public again.
    pub async fn set_private(&self, private: bool) {
        let request = SetPrivateRequest { user_id: self.id.to_string(), private };
        self.timeline.set_private(request).await.expect("an account");
    }

    /// Lets whoever has this id follow, if that is possible.
    pub async fn tries_to_accept(&self, requester_id: &str) -> Result<(), Error> {
        let request = AcceptFollowRequest { user_id: self.id.to_string(), requester_id: requester_id.into() };
        self.timeline.accept_follow(request).await.map(|_| ())
    }

    /// Does not let whoever has this id follow, if that is possible.
    pub async fn tries_to_reject(&self, requester_id: &str) -> Result<(), Error> {
        let request = RejectFollowRequest { user_id: self.id.to_string(), requester_id: requester_id.into() };
        self.timeline.reject_follow(request).await.map(|_| ())
    }
}

fn ids(texts: &[String]) -> Vec<UserId> {
    texts.iter().map(|text| text.parse().expect("a user id")).collect()
}
