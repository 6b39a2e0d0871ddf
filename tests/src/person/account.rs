//! What people do with their accounts and sessions.

use chassis::Error;
use proto::freshet::user::v1::{
    BatchGetUsersRequest, BatchGetUsersResponse, ChangePasswordRequest, DeleteAccountRequest, GetAccountRequest,
    GetAccountResponse, GetUserByHandleRequest, GetUserRequest, ListSessionsRequest, RevokeAllSessionsRequest,
    RevokeSessionRequest, Session, SignInRequest, SignInResponse, SignOutRequest, UpdateProfileRequest,
    UpdateProfileResponse, User,
};

use super::{PASSWORD, Person};

/// From where people come in the stories that are not about it.
pub const HOME_ADDRESS: &str = "192.0.2.1";

impl Person {
    /// Signs in with the right password.
    pub async fn signs_in(&self) -> SignInResponse {
        self.tries_to_sign_in(PASSWORD, HOME_ADDRESS).await.expect("a session")
    }

    /// Signs in with this password from this address, if that is possible.
    pub async fn tries_to_sign_in(&self, password: &str, address: &str) -> Result<SignInResponse, Error> {
        self.tries_to_sign_in_on(password, address, "").await
    }

    /// The same on a device that has this secret.
    pub async fn tries_to_sign_in_on(
        &self,
        password: &str,
        address: &str,
        device_secret: &str,
    ) -> Result<SignInResponse, Error> {
        let (handle, device) = (self.handle.clone(), "a test".to_owned());
        let [password, address, device_secret] = [password, address, device_secret].map(str::to_owned);
        self.service.sign_in(SignInRequest { handle, password, address, device, device_secret }).await
    }

    /// Signs out.
    pub async fn signs_out(&self, session: &SignInResponse) {
        let session_secret = session.session_secret.clone();
        self.service.sign_out(SignOutRequest { session_secret }).await.expect("an end");
    }

    /// The open sessions.
    pub async fn sessions(&self) -> Vec<Session> {
        let request = ListSessionsRequest { user_id: self.id.to_string() };
        self.timeline.list_sessions(request).await.expect("sessions").sessions
    }

    /// The ids of the open sessions.
    pub async fn session_ids(&self) -> Vec<String> {
        self.sessions().await.into_iter().map(|session| session.id).collect()
    }

    /// Ends a session, if that is possible.
    pub async fn tries_to_revoke(&self, session_id: &str) -> Result<(), Error> {
        let request = RevokeSessionRequest { user_id: self.id.to_string(), session_id: session_id.into() };
        self.timeline.revoke_session(request).await.map(|_| ())
    }

    /// Ends all sessions but this one, if that is possible, and learns how many they were.
    pub async fn tries_to_revoke_all(&self, keep_session_id: &str) -> Result<i32, Error> {
        let request =
            RevokeAllSessionsRequest { user_id: self.id.to_string(), keep_session_id: keep_session_id.into() };
        self.timeline.revoke_all_sessions(request).await.map(|answer| answer.ended)
    }

    /// Changes the password, if that is possible; this session stays.
    pub async fn tries_to_change_password(&self, old: &str, new: &str, keep: &str) -> Result<(), Error> {
        let [old_password, new_password, keep_session_id] = [old, new, keep].map(str::to_owned);
        let user_id = self.id.to_string();
        let request = ChangePasswordRequest { user_id, old_password, new_password, keep_session_id };
        self.timeline.change_password(request).await.map(|_| ())
    }

    /// Sees another person, if that is possible.
    pub async fn sees(&self, other: &Self) -> Result<User, Error> {
        let request = GetUserRequest { user_id: other.id.to_string() };
        Ok(self.timeline.get_user(request).await?.user.expect("a user"))
    }

    /// Sees whoever has this handle, if that is possible.
    pub async fn sees_handle(&self, handle: &str) -> Result<User, Error> {
        let request = GetUserByHandleRequest { handle: handle.into() };
        Ok(self.timeline.get_user_by_handle(request).await?.user.expect("a user"))
    }

    /// Sees several people, if that is possible.
    pub async fn sees_all(&self, user_ids: Vec<String>) -> Result<BatchGetUsersResponse, Error> {
        self.timeline.batch_get_users(BatchGetUsersRequest { user_ids }).await
    }

    /// The own account.
    pub async fn account(&self) -> GetAccountResponse {
        let request = GetAccountRequest { user_id: self.id.to_string() };
        self.timeline.get_account(request).await.expect("an account")
    }

    /// Changes these fields of the profile, if that is possible.
    pub async fn tries_to_update(
        &self,
        fields: &[&str],
        profile: UpdateProfileRequest,
    ) -> Result<UpdateProfileResponse, Error> {
        let paths = fields.iter().map(|field| (*field).to_owned()).collect();
        let update_mask = Some(prost_types::FieldMask { paths });
        let request = UpdateProfileRequest { user_id: self.id.to_string(), update_mask, ..profile };
        self.timeline.update_profile(request).await
    }

    /// Deletes the account.
    pub async fn goes_away(&self) {
        let request = DeleteAccountRequest { user_id: self.id.to_string() };
        self.timeline.delete_account(request).await.expect("an end");
    }
}
