//! UserService: from the wire to [`People`] and back.

mod graph;

use chassis::{error::InField as _, grpc::answer};
use proto::{
    freshet::user::v1::{
        AcceptFollowRequest, AcceptFollowResponse, BlockRequest, BlockResponse, FollowRequest, FollowResponse,
        GetRelationshipRequest, GetRelationshipResponse, ListBlocksRequest, ListBlocksResponse,
        ListFollowRequestsRequest, ListFollowRequestsResponse, ListFollowersRequest, ListFollowersResponse,
        ListFollowingRequest, ListFollowingResponse, ListMutesRequest, ListMutesResponse, MuteRequest, MuteResponse,
        RejectFollowRequest, RejectFollowResponse, SetPrivateRequest, SetPrivateResponse, SignInRequest,
        SignInResponse, SignUpRequest, SignUpResponse, UnblockRequest, UnblockResponse, UnfollowRequest,
        UnfollowResponse, UnmuteRequest, UnmuteResponse, UpsertRemoteAuthorRequest, UpsertRemoteAuthorResponse, User,
        user_service_server::{UserService, UserServiceServer},
    },
    timestamp,
};
use store::ledger::Account;
use tonic::{Request, Response, Status};

use super::{
    People, SignedIn,
    name::{DisplayName, Handle},
    password::Password,
};

pub(crate) fn service(people: People) -> UserServiceServer<People> {
    UserServiceServer::new(people)
}

#[tonic::async_trait]
impl UserService for People {
    async fn sign_up(&self, request: Request<SignUpRequest>) -> Result<Response<SignUpResponse>, Status> {
        answer(request, async |wire| {
            let handle = Handle::new(&wire.handle).in_field("handle")?;
            let name = DisplayName::new(&wire.display_name, &handle).in_field("display_name")?;
            let password = Password::chosen(wire.password).in_field("password")?;
            let account = People::sign_up(self, handle, name, password).await?;
            Ok(SignUpResponse { user: Some(user(account)) })
        })
        .await
    }

    async fn sign_in(&self, request: Request<SignInRequest>) -> Result<Response<SignInResponse>, Status> {
        answer(request, async |wire| {
            let password = Password::claimed(wire.password).in_field("password")?;
            let SignedIn { account, secret, expires_at_ms } = People::sign_in(self, &wire.handle, password).await?;
            let (user, expires_at) = (Some(user(account)), Some(timestamp(expires_at_ms)));
            Ok(SignInResponse { user, session_secret: secret, expires_at })
        })
        .await
    }

    async fn follow(&self, request: Request<FollowRequest>) -> Result<Response<FollowResponse>, Status> {
        answer(request, async |wire| graph::follow(&self.graph, wire).await).await
    }

    async fn unfollow(&self, request: Request<UnfollowRequest>) -> Result<Response<UnfollowResponse>, Status> {
        answer(request, async |wire| graph::unfollow(&self.graph, wire).await).await
    }

    async fn block(&self, request: Request<BlockRequest>) -> Result<Response<BlockResponse>, Status> {
        answer(request, async |wire| graph::block(&self.graph, wire).await).await
    }

    async fn unblock(&self, request: Request<UnblockRequest>) -> Result<Response<UnblockResponse>, Status> {
        answer(request, async |wire| graph::unblock(&self.graph, wire).await).await
    }

    async fn mute(&self, request: Request<MuteRequest>) -> Result<Response<MuteResponse>, Status> {
        answer(request, async |wire| graph::mute(&self.graph, wire).await).await
    }

    async fn unmute(&self, request: Request<UnmuteRequest>) -> Result<Response<UnmuteResponse>, Status> {
        answer(request, async |wire| graph::unmute(&self.graph, wire).await).await
    }

    async fn get_relationship(
        &self,
        request: Request<GetRelationshipRequest>,
    ) -> Result<Response<GetRelationshipResponse>, Status> {
        answer(request, async |wire| graph::get_relationship(&self.graph, wire).await).await
    }

    async fn list_following(
        &self,
        request: Request<ListFollowingRequest>,
    ) -> Result<Response<ListFollowingResponse>, Status> {
        answer(request, async |wire| graph::list_following(&self.graph, wire).await).await
    }

    async fn list_followers(
        &self,
        request: Request<ListFollowersRequest>,
    ) -> Result<Response<ListFollowersResponse>, Status> {
        answer(request, async |wire| graph::list_followers(&self.graph, wire).await).await
    }

    async fn list_blocks(&self, request: Request<ListBlocksRequest>) -> Result<Response<ListBlocksResponse>, Status> {
        answer(request, async |wire| graph::list_blocks(&self.graph, wire).await).await
    }

    async fn list_mutes(&self, request: Request<ListMutesRequest>) -> Result<Response<ListMutesResponse>, Status> {
        answer(request, async |wire| graph::list_mutes(&self.graph, wire).await).await
    }

    async fn set_private(&self, request: Request<SetPrivateRequest>) -> Result<Response<SetPrivateResponse>, Status> {
        answer(request, async |wire| graph::set_private(&self.graph, wire).await).await
    }

    async fn list_follow_requests(
        &self,
        request: Request<ListFollowRequestsRequest>,
    ) -> Result<Response<ListFollowRequestsResponse>, Status> {
        answer(request, async |wire| graph::list_follow_requests(&self.graph, wire).await).await
    }

    async fn accept_follow(
        &self,
        request: Request<AcceptFollowRequest>,
    ) -> Result<Response<AcceptFollowResponse>, Status> {
        answer(request, async |wire| graph::accept_follow(&self.graph, wire).await).await
    }

    async fn reject_follow(
        &self,
        request: Request<RejectFollowRequest>,
    ) -> Result<Response<RejectFollowResponse>, Status> {
        answer(request, async |wire| graph::reject_follow(&self.graph, wire).await).await
    }

    async fn upsert_remote_author(
        &self,
        request: Request<UpsertRemoteAuthorRequest>,
    ) -> Result<Response<UpsertRemoteAuthorResponse>, Status> {
        answer(request, async |wire| graph::upsert_remote_author(&self.graph, wire).await).await
    }
}

fn user(account: Account) -> User {
    User {
        id: account.id.to_string(),
        handle: account.handle,
        display_name: account.display_name,
        created_at: Some(timestamp(account.created_at_ms)),
    }
}
