//! UserService: from the wire to [`People`] and back.

use chassis::{error::InField as _, grpc::answer};
use proto::{
    freshet::user::v1::{
        FollowRequest, FollowResponse, SignInRequest, SignInResponse, SignUpRequest, SignUpResponse, User,
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
        answer(request, async |wire| {
            let follower = wire.follower_id.parse().in_field("follower_id")?;
            let followee = wire.followee_id.parse().in_field("followee_id")?;
            People::follow(self, follower, followee).await?;
            Ok(FollowResponse {})
        })
        .await
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
