//! UserService: from the wire to [`People`] and back. What is about accounts and sessions is translated in files of its own.

mod accounts;
mod sessions;

use chassis::{error::InField as _, grpc::answer};
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
        answer(request, async |wire| {
            let follower = wire.follower_id.parse().in_field("follower_id")?;
            let followee = wire.followee_id.parse().in_field("followee_id")?;
            People::follow(self, follower, followee).await?;
            Ok(wire::FollowResponse {})
        })
        .await
    }
}
