//! gRPC as the suites speak it: typed calls, and raw ones for what a typed client cannot say.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes};
use chassis::{
    Error,
    grpc::{Attach, Channel, connect, from_status},
    token::{Caller, Keyring},
};
use proto::freshet::{
    post::v1::{self as post, post_service_client::PostServiceClient},
    ranking::v1::{self as ranking, ranking_service_client::RankingServiceClient},
    timeline::v1::{self as timeline, timeline_service_client::TimelineServiceClient},
    user::v1::{self as user, user_service_client::UserServiceClient},
};
use tonic::{
    Request, Response, Status,
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    metadata::MetadataValue,
};

/// Calls the services of a pod as one caller.
#[derive(Clone)]
pub struct Client {
    channel: Channel,
    attach: Attach,
}

macro_rules! calls {
    ($($service:ident { $($method:ident($request:ty) -> $response:ty;)* })*) => {$($(
        #[doc = concat!("Calls `", stringify!($method), "`.")]
        pub async fn $method(&self, request: $request) -> Result<$response, Error> {
            let mut client = $service::with_interceptor(self.channel.clone(), self.attach.clone());
            client.$method(request).await.map(Response::into_inner).map_err(|status| from_status(&status))
        }
    )*)*};
}

impl Client {
    /// Calls the pod at this address as this caller.
    #[must_use]
    pub fn new(address: SocketAddr, keyring: Keyring, caller: Caller) -> Self {
        let channel = connect(&format!("http://{address}")).expect("an address");
        Self { channel, attach: Attach::new(keyring, caller) }
    }

    /// Calls `create_post` with a metadata entry.
    pub async fn create_post_with(
        &self,
        request: post::CreatePostRequest,
        name: &'static str,
        value: &str,
    ) -> Result<post::CreatePostResponse, Error> {
        let mut request = Request::new(request);
        request.metadata_mut().insert(name, MetadataValue::try_from(value).map_err(Error::internal)?);
        let mut client = PostServiceClient::with_interceptor(self.channel.clone(), self.attach.clone());
        client.create_post(request).await.map(Response::into_inner).map_err(|status| from_status(&status))
    }

    calls! {
        UserServiceClient {
            sign_up(user::SignUpRequest) -> user::SignUpResponse;
            sign_in(user::SignInRequest) -> user::SignInResponse;
            sign_out(user::SignOutRequest) -> user::SignOutResponse;
            get_user(user::GetUserRequest) -> user::GetUserResponse;
            batch_get_users(user::BatchGetUsersRequest) -> user::BatchGetUsersResponse;
            get_user_by_handle(user::GetUserByHandleRequest) -> user::GetUserByHandleResponse;
            get_account(user::GetAccountRequest) -> user::GetAccountResponse;
            update_profile(user::UpdateProfileRequest) -> user::UpdateProfileResponse;
            change_password(user::ChangePasswordRequest) -> user::ChangePasswordResponse;
            delete_account(user::DeleteAccountRequest) -> user::DeleteAccountResponse;
            list_sessions(user::ListSessionsRequest) -> user::ListSessionsResponse;
            revoke_session(user::RevokeSessionRequest) -> user::RevokeSessionResponse;
            revoke_all_sessions(user::RevokeAllSessionsRequest) -> user::RevokeAllSessionsResponse;
            follow(user::FollowRequest) -> user::FollowResponse;
            unfollow(user::UnfollowRequest) -> user::UnfollowResponse;
            block(user::BlockRequest) -> user::BlockResponse;
            unblock(user::UnblockRequest) -> user::UnblockResponse;
            mute(user::MuteRequest) -> user::MuteResponse;
            unmute(user::UnmuteRequest) -> user::UnmuteResponse;
            get_relationship(user::GetRelationshipRequest) -> user::GetRelationshipResponse;
            list_following(user::ListFollowingRequest) -> user::ListFollowingResponse;
            list_followers(user::ListFollowersRequest) -> user::ListFollowersResponse;
            list_blocks(user::ListBlocksRequest) -> user::ListBlocksResponse;
            list_mutes(user::ListMutesRequest) -> user::ListMutesResponse;
            set_private(user::SetPrivateRequest) -> user::SetPrivateResponse;
            list_follow_requests(user::ListFollowRequestsRequest) -> user::ListFollowRequestsResponse;
            accept_follow(user::AcceptFollowRequest) -> user::AcceptFollowResponse;
            reject_follow(user::RejectFollowRequest) -> user::RejectFollowResponse;
            upsert_remote_author(user::UpsertRemoteAuthorRequest) -> user::UpsertRemoteAuthorResponse;
        }
        PostServiceClient {
            create_post(post::CreatePostRequest) -> post::CreatePostResponse;
            get_post(post::GetPostRequest) -> post::GetPostResponse;
            batch_get_posts(post::BatchGetPostsRequest) -> post::BatchGetPostsResponse;
            list_posts_by_author(post::ListPostsByAuthorRequest) -> post::ListPostsByAuthorResponse;
            update_post(post::UpdatePostRequest) -> post::UpdatePostResponse;
            list_revisions(post::ListRevisionsRequest) -> post::ListRevisionsResponse;
            delete_post(post::DeletePostRequest) -> post::DeletePostResponse;
            like(post::LikeRequest) -> post::LikeResponse;
            unlike(post::UnlikeRequest) -> post::UnlikeResponse;
            list_likers(post::ListLikersRequest) -> post::ListLikersResponse;
            batch_get_liked(post::BatchGetLikedRequest) -> post::BatchGetLikedResponse;
        }
        TimelineServiceClient {
            get_home_timeline(timeline::GetHomeTimelineRequest) -> timeline::GetHomeTimelineResponse;
        }
        RankingServiceClient {
            list_hot_posts(ranking::ListHotPostsRequest) -> ranking::ListHotPostsResponse;
        }
    }
}

/// Calls a method by its path with an encoded message and, maybe, a token.
pub async fn call_raw(address: SocketAddr, path: &str, token: Option<&str>, message: Bytes) -> Result<Bytes, Error> {
    let mut client = Grpc::new(connect(&format!("http://{address}"))?);
    client.ready().await.map_err(Error::internal)?;
    let mut request = Request::new(message);
    if let Some(token) = token {
        let bearer = MetadataValue::try_from(format!("Bearer {token}")).map_err(Error::internal)?;
        request.metadata_mut().insert("authorization", bearer);
    }
    let path = path.parse().map_err(Error::internal)?;
    client.unary(request, path, Raw).await.map(Response::into_inner).map_err(|status| from_status(&status))
}

/// Messages as bytes.
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
