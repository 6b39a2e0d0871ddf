//! What people are to each other: from the wire to [`Graph`] and back.

use chassis::{Error, error::InField as _, page::PageLimit};
use proto::{
    UserId,
    freshet::user::v1::{
        self as v1, AcceptFollowRequest, AcceptFollowResponse, BlockRequest, BlockResponse, FollowRequest,
        FollowResponse, GetRelationshipRequest, GetRelationshipResponse, ListBlocksRequest, ListBlocksResponse,
        ListFollowRequestsRequest, ListFollowRequestsResponse, ListFollowersRequest, ListFollowersResponse,
        ListFollowingRequest, ListFollowingResponse, ListMutesRequest, ListMutesResponse, MuteRequest, MuteResponse,
        MutedUser, RejectFollowRequest, RejectFollowResponse, SetPrivateRequest, SetPrivateResponse, UnblockRequest,
        UnblockResponse, UnfollowRequest, UnfollowResponse, UnmuteRequest, UnmuteResponse, UpsertRemoteAuthorRequest,
        UpsertRemoteAuthorResponse,
    },
    timestamp, unix_ms,
};
use store::ledger::{List, Pair, Relationship, Wish};

use crate::{
    cursor::Cursor,
    people::{
        graph::{
            Graph,
            lists::{ListPage, RELATIONSHIPS_MAX},
            remote::{Origin, RemoteHandle, RemoteId},
        },
        name::DisplayName,
    },
};

const YEAR_MS: i64 = 366 * 24 * 60 * 60 * 1000;
const MUTE_YEARS_MAX: i64 = 10;

pub(super) async fn follow(graph: &Graph, wire: FollowRequest) -> Result<FollowResponse, Error> {
    let pair = pair(("follower_id", &wire.follower_id), ("followee_id", &wire.followee_id), "follows")?;
    Ok(FollowResponse { requested: graph.follow(pair).await? == Wish::Asks })
}

pub(super) async fn unfollow(graph: &Graph, wire: UnfollowRequest) -> Result<UnfollowResponse, Error> {
    graph.unfollow(pair(("follower_id", &wire.follower_id), ("followee_id", &wire.followee_id), "follows")?).await?;
    Ok(UnfollowResponse {})
}

pub(super) async fn block(graph: &Graph, wire: BlockRequest) -> Result<BlockResponse, Error> {
    graph.block(pair(("blocker_id", &wire.blocker_id), ("blocked_id", &wire.blocked_id), "blocks")?).await?;
    Ok(BlockResponse {})
}

pub(super) async fn unblock(graph: &Graph, wire: UnblockRequest) -> Result<UnblockResponse, Error> {
    graph.unblock(pair(("blocker_id", &wire.blocker_id), ("blocked_id", &wire.blocked_id), "blocks")?).await?;
    Ok(UnblockResponse {})
}

pub(super) async fn mute(graph: &Graph, wire: MuteRequest) -> Result<MuteResponse, Error> {
    let pair = pair(("muter_id", &wire.muter_id), ("muted_id", &wire.muted_id), "mutes")?;
    let until_ms = wire.until.map(|until| in_the_future(unix_ms(&until), graph.now_ms())).transpose()?;
    graph.mute(pair, until_ms).await?;
    Ok(MuteResponse {})
}

pub(super) async fn unmute(graph: &Graph, wire: UnmuteRequest) -> Result<UnmuteResponse, Error> {
    graph.unmute(pair(("muter_id", &wire.muter_id), ("muted_id", &wire.muted_id), "mutes")?).await?;
    Ok(UnmuteResponse {})
}

pub(super) async fn get_relationship(
    graph: &Graph,
    wire: GetRelationshipRequest,
) -> Result<GetRelationshipResponse, Error> {
    let viewer = wire.viewer_id.parse().in_field("viewer_id")?;
    let asked = wire.user_ids.len();
    if !(1..=RELATIONSHIPS_MAX).contains(&asked) {
        let rule = format!("must be from 1 to {RELATIONSHIPS_MAX} ids, and are {asked}");
        return Err(Error::invalid("user_ids", rule));
    }
    let others = wire.user_ids.iter().map(|id| id.parse()).collect::<Result<Vec<_>, _>>().in_field("user_ids")?;
    let found = graph.relationships(viewer, &others).await?;
    Ok(GetRelationshipResponse { relationships: found.into_iter().map(relationship).collect() })
}

pub(super) async fn list_following(graph: &Graph, wire: ListFollowingRequest) -> Result<ListFollowingResponse, Error> {
    let (limit, cursor) = page(wire.limit, wire.cursor)?;
    let people = (wire.viewer_id.parse().in_field("viewer_id")?, wire.user_id.parse().in_field("user_id")?);
    let (user_ids, next_cursor) = users(graph.list(List::Following, people, limit, cursor).await?);
    Ok(ListFollowingResponse { user_ids, next_cursor })
}

pub(super) async fn list_followers(graph: &Graph, wire: ListFollowersRequest) -> Result<ListFollowersResponse, Error> {
    let (limit, cursor) = page(wire.limit, wire.cursor)?;
    let people = (wire.viewer_id.parse().in_field("viewer_id")?, wire.user_id.parse().in_field("user_id")?);
    let (user_ids, next_cursor) = users(graph.list(List::Followers, people, limit, cursor).await?);
    Ok(ListFollowersResponse { user_ids, next_cursor })
}

pub(super) async fn list_blocks(graph: &Graph, wire: ListBlocksRequest) -> Result<ListBlocksResponse, Error> {
    let (limit, cursor) = page(wire.limit, wire.cursor)?;
    let owner = wire.blocker_id.parse().in_field("blocker_id")?;
    let (user_ids, next_cursor) = users(graph.own_list(List::Blocks, owner, limit, cursor).await?);
    Ok(ListBlocksResponse { user_ids, next_cursor })
}

pub(super) async fn list_mutes(graph: &Graph, wire: ListMutesRequest) -> Result<ListMutesResponse, Error> {
    let (limit, cursor) = page(wire.limit, wire.cursor)?;
    let owner = wire.muter_id.parse().in_field("muter_id")?;
    let ListPage { listed, next } = graph.own_list(List::Mutes, owner, limit, cursor).await?;
    let users = listed
        .into_iter()
        .map(|muted| MutedUser { user_id: muted.place.user.to_string(), until: muted.until_ms.map(timestamp) });
    Ok(ListMutesResponse { users: users.collect(), next_cursor: next.map(|next| next.to_string()) })
}

pub(super) async fn set_private(graph: &Graph, wire: SetPrivateRequest) -> Result<SetPrivateResponse, Error> {
    graph.set_private(wire.user_id.parse().in_field("user_id")?, wire.private).await?;
    Ok(SetPrivateResponse {})
}

pub(super) async fn list_follow_requests(
    graph: &Graph,
    wire: ListFollowRequestsRequest,
) -> Result<ListFollowRequestsResponse, Error> {
    let (limit, cursor) = page(wire.limit, wire.cursor)?;
    let owner = wire.user_id.parse().in_field("user_id")?;
    let (user_ids, next_cursor) = users(graph.own_list(List::FollowRequests, owner, limit, cursor).await?);
    Ok(ListFollowRequestsResponse { user_ids, next_cursor })
}

pub(super) async fn accept_follow(graph: &Graph, wire: AcceptFollowRequest) -> Result<AcceptFollowResponse, Error> {
    graph.accept(request(&wire.user_id, &wire.requester_id)?).await?;
    Ok(AcceptFollowResponse {})
}

pub(super) async fn reject_follow(graph: &Graph, wire: RejectFollowRequest) -> Result<RejectFollowResponse, Error> {
    graph.reject(request(&wire.user_id, &wire.requester_id)?).await?;
    Ok(RejectFollowResponse {})
}

pub(super) async fn upsert_remote_author(
    graph: &Graph,
    wire: UpsertRemoteAuthorRequest,
) -> Result<UpsertRemoteAuthorResponse, Error> {
    let origin = Origin::new(&wire.origin).in_field("origin")?;
    let remote_id = RemoteId::new(wire.remote_id).in_field("remote_id")?;
    let handle = RemoteHandle::new(&wire.handle).in_field("handle")?;
    let name = DisplayName::or(&wire.display_name, handle.as_str()).in_field("display_name")?;
    let account = graph.upsert_remote((origin, remote_id), handle, name).await?;
    Ok(UpsertRemoteAuthorResponse { user: Some(super::accounts::user(account)) })
}

/// Two people who are not one.
fn pair(from: (&'static str, &str), to: (&'static str, &str), does: &str) -> Result<Pair, Error> {
    let pair = Pair { from: from.1.parse().in_field(from.0)?, to: to.1.parse().in_field(to.0)? };
    if pair.from == pair.to {
        return Err(Error::invalid(to.0, format!("must be somebody else: nobody {does} themselves")));
    }
    Ok(pair)
}

/// A request to follow, from who asks.
fn request(asked: &str, requester: &str) -> Result<Pair, Error> {
    Ok(Pair { from: requester.parse().in_field("requester_id")?, to: asked.parse().in_field("user_id")? })
}

fn page(limit: Option<i32>, cursor: Option<String>) -> Result<(PageLimit, Option<Cursor>), Error> {
    let cursor = cursor.map(|cursor| cursor.parse()).transpose().in_field("cursor")?;
    Ok((PageLimit::new(limit).in_field("limit")?, cursor))
}

/// A moment in the future, in milliseconds since 1970.
fn in_the_future(until_ms: Option<i64>, now_ms: i64) -> Result<i64, Error> {
    let last_ms = now_ms + MUTE_YEARS_MAX * YEAR_MS;
    until_ms
        .filter(|until_ms| (now_ms + 1..=last_ms).contains(until_ms))
        .ok_or_else(|| Error::invalid("until", format!("must be in the future, and within {MUTE_YEARS_MAX} years")))
}

fn users(ListPage { listed, next }: ListPage) -> (Vec<String>, Option<String>) {
    let ids = listed.into_iter().map(|listed| UserId::to_string(&listed.place.user)).collect();
    (ids, next.map(|next| next.to_string()))
}

fn relationship(found: Relationship) -> v1::Relationship {
    v1::Relationship {
        user_id: found.other.to_string(),
        following: found.following,
        followed_by: found.followed_by,
        requested: found.requested,
        requested_by: found.requested_by,
        blocking: found.blocking,
        muting: found.muting,
        muted_until: found.muted_until_ms.map(timestamp),
        private: found.private,
    }
}
