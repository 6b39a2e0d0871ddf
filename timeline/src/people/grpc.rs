//! UserService: from the wire to [`People`] and back. What is about accounts, sessions and the graph is
//! translated in files of its own.

mod accounts;
mod graph;
mod sessions;

use chassis::grpc::answer;
use proto::freshet::user::v1::{
    self as wire,
    user_service_server::{UserService, UserServiceServer},
};
use tonic::{Request, Response, Status};

use super::People;

pub(crate) fn service(people: People) -> UserServiceServer<People> {
    UserServiceServer::new(people)
}

#[tonic::async_trait]
impl UserService for People {
    async fn sign_up(&self, request: Request<wire::SignUpRequest>) -> Result<Response<wire::SignUpResponse>, Status> {
        answer(request, |wire| accounts::sign_up(self, wire)).await
    }

    async fn sign_in(&self, request: Request<wire::SignInRequest>) -> Result<Response<wire::SignInResponse>, Status> {
        answer(request, |wire| sessions::sign_in(self, wire)).await
    }

    async fn sign_out(
        &self,
        request: Request<wire::SignOutRequest>,
    ) -> Result<Response<wire::SignOutResponse>, Status> {
        answer(request, |wire| sessions::sign_out(self, wire)).await
    }

    async fn get_user(
        &self,
        request: Request<wire::GetUserRequest>,
    ) -> Result<Response<wire::GetUserResponse>, Status> {
        answer(request, |wire| accounts::get_user(self, wire)).await
    }

    async fn batch_get_users(
        &self,
        request: Request<wire::BatchGetUsersRequest>,
    ) -> Result<Response<wire::BatchGetUsersResponse>, Status> {
        answer(request, |wire| accounts::batch_get_users(self, wire)).await
    }

    async fn get_user_by_handle(
        &self,
        request: Request<wire::GetUserByHandleRequest>,
    ) -> Result<Response<wire::GetUserByHandleResponse>, Status> {
        answer(request, |wire| accounts::get_user_by_handle(self, wire)).await
    }

    async fn get_account(
        &self,
        request: Request<wire::GetAccountRequest>,
    ) -> Result<Response<wire::GetAccountResponse>, Status> {
        answer(request, |wire| accounts::get_account(self, wire)).await
    }

    async fn update_profile(
        &self,
        request: Request<wire::UpdateProfileRequest>,
    ) -> Result<Response<wire::UpdateProfileResponse>, Status> {
        answer(request, |wire| accounts::update_profile(self, wire)).await
    }

    async fn change_password(
        &self,
        request: Request<wire::ChangePasswordRequest>,
    ) -> Result<Response<wire::ChangePasswordResponse>, Status> {
        answer(request, |wire| sessions::change_password(self, wire)).await
    }

    async fn delete_account(
        &self,
        request: Request<wire::DeleteAccountRequest>,
    ) -> Result<Response<wire::DeleteAccountResponse>, Status> {
        answer(request, |wire| accounts::delete_account(self, wire)).await
    }

    async fn list_sessions(
        &self,
        request: Request<wire::ListSessionsRequest>,
    ) -> Result<Response<wire::ListSessionsResponse>, Status> {
        answer(request, |wire| sessions::list_sessions(self, wire)).await
    }

    async fn revoke_session(
        &self,
        request: Request<wire::RevokeSessionRequest>,
    ) -> Result<Response<wire::RevokeSessionResponse>, Status> {
        answer(request, |wire| sessions::revoke_session(self, wire)).await
    }

    async fn revoke_all_sessions(
        &self,
        request: Request<wire::RevokeAllSessionsRequest>,
    ) -> Result<Response<wire::RevokeAllSessionsResponse>, Status> {
        answer(request, |wire| sessions::revoke_all_sessions(self, wire)).await
    }

    async fn follow(&self, request: Request<wire::FollowRequest>) -> Result<Response<wire::FollowResponse>, Status> {
        answer(request, async |wire| graph::follow(&self.graph, wire).await).await
    }

    async fn unfollow(
        &self,
        request: Request<wire::UnfollowRequest>,
    ) -> Result<Response<wire::UnfollowResponse>, Status> {
        answer(request, async |wire| graph::unfollow(&self.graph, wire).await).await
    }

    async fn block(&self, request: Request<wire::BlockRequest>) -> Result<Response<wire::BlockResponse>, Status> {
        answer(request, async |wire| graph::block(&self.graph, wire).await).await
    }

    async fn unblock(&self, request: Request<wire::UnblockRequest>) -> Result<Response<wire::UnblockResponse>, Status> {
        answer(request, async |wire| graph::unblock(&self.graph, wire).await).await
    }

    async fn mute(&self, request: Request<wire::MuteRequest>) -> Result<Response<wire::MuteResponse>, Status> {
        answer(request, async |wire| graph::mute(&self.graph, wire).await).await
    }

    async fn unmute(&self, request: Request<wire::UnmuteRequest>) -> Result<Response<wire::UnmuteResponse>, Status> {
        answer(request, async |wire| graph::unmute(&self.graph, wire).await).await
    }

    async fn get_relationship(
        &self,
        request: Request<wire::GetRelationshipRequest>,
    ) -> Result<Response<wire::GetRelationshipResponse>, Status> {
        answer(request, async |wire| graph::get_relationship(&self.graph, wire).await).await
    }

    async fn list_following(
        &self,
        request: Request<wire::ListFollowingRequest>,
    ) -> Result<Response<wire::ListFollowingResponse>, Status> {
        answer(request, async |wire| graph::list_following(&self.graph, wire).await).await
    }

    async fn list_followers(
        &self,
        request: Request<wire::ListFollowersRequest>,
    ) -> Result<Response<wire::ListFollowersResponse>, Status> {
        answer(request, async |wire| graph::list_followers(&self.graph, wire).await).await
    }

    async fn list_blocks(
        &self,
        request: Request<wire::ListBlocksRequest>,
    ) -> Result<Response<wire::ListBlocksResponse>, Status> {
        answer(request, async |wire| graph::list_blocks(&self.graph, wire).await).await
    }

    async fn list_mutes(
        &self,
        request: Request<wire::ListMutesRequest>,
    ) -> Result<Response<wire::ListMutesResponse>, Status> {
        answer(request, async |wire| graph::list_mutes(&self.graph, wire).await).await
    }

    async fn set_private(
        &self,
        request: Request<wire::SetPrivateRequest>,
    ) -> Result<Response<wire::SetPrivateResponse>, Status> {
        answer(request, async |wire| graph::set_private(&self.graph, wire).await).await
    }

    async fn list_follow_requests(
        &self,
        request: Request<wire::ListFollowRequestsRequest>,
    ) -> Result<Response<wire::ListFollowRequestsResponse>, Status> {
        answer(request, async |wire| graph::list_follow_requests(&self.graph, wire).await).await
    }

    async fn accept_follow(
        &self,
        request: Request<wire::AcceptFollowRequest>,
    ) -> Result<Response<wire::AcceptFollowResponse>, Status> {
        answer(request, async |wire| graph::accept_follow(&self.graph, wire).await).await
    }

    async fn reject_follow(
        &self,
        request: Request<wire::RejectFollowRequest>,
    ) -> Result<Response<wire::RejectFollowResponse>, Status> {
        answer(request, async |wire| graph::reject_follow(&self.graph, wire).await).await
    }

    async fn upsert_remote_author(
        &self,
        request: Request<wire::UpsertRemoteAuthorRequest>,
    ) -> Result<Response<wire::UpsertRemoteAuthorResponse>, Status> {
        answer(request, async |wire| graph::upsert_remote_author(&self.graph, wire).await).await
    }
}
