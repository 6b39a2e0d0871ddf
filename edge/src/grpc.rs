//! How the edge calls the timeline role.

use chassis::{
    Error,
    grpc::{Attach, Channel, connect, from_status},
    token::{Caller, Keyring},
};
use proto::freshet::user::v1::{SignInRequest, SignInResponse, SignOutRequest, user_service_client::UserServiceClient};
use tonic::service::interceptor::InterceptedService;

/// UserService, called as the service `edge`.
pub(crate) struct Users(UserServiceClient<InterceptedService<Channel, Attach>>);

impl Users {
    pub(crate) fn connect(timeline_url: &str, keyring: Keyring) -> Result<Self, Error> {
        let attach = Attach::new(keyring, Caller::Service("edge".into()));
        Ok(Self(UserServiceClient::with_interceptor(connect(timeline_url)?, attach)))
    }

    /// Opens a session.
    pub(crate) async fn sign_in(&self, request: SignInRequest) -> Result<SignInResponse, Error> {
        // Cloning a client clones a handle to its connection.
        let answer = self.0.clone().sign_in(request).await;
        answer.map(tonic::Response::into_inner).map_err(|status| from_status(&status))
    }

    /// Ends a session.
    pub(crate) async fn sign_out(&self, session_secret: String) -> Result<(), Error> {
        let answer = self.0.clone().sign_out(SignOutRequest { session_secret }).await;
        answer.map(|_| ()).map_err(|status| from_status(&status))
    }
}
