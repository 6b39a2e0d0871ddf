//! Sessions, from the wire and back.

use chassis::{Error, error::InField as _};
use proto::{freshet::user::v1 as wire, timestamp};
use store::sets::{Session, SessionId};

use super::accounts::user;
use crate::people::{
    People,
    attempts::{DeviceSecret, Source},
    password::Password,
    sessions::Device,
    sign_in::SignIn,
};

pub(super) async fn sign_in(people: &People, wire: wire::SignInRequest) -> Result<wire::SignInResponse, Error> {
    let password = Password::claimed(wire.password).in_field("password")?;
    let address = wire.address.parse().in_field("address")?;
    let source = Source { address, device: DeviceSecret::claimed(wire.device_secret) };
    let device = Device::new(&wire.device);
    let signed_in = people.sign_in(SignIn { handle: wire.handle, password, source, device }).await?;
    Ok(wire::SignInResponse {
        user: Some(user(signed_in.account)),
        session_secret: signed_in.secret,
        expires_at: Some(timestamp(signed_in.session.expires_at_ms())),
        ends_at: Some(timestamp(signed_in.session.ends_at_ms)),
        session_id: signed_in.id.to_string(),
        device_secret: signed_in.device_secret.into(),
    })
}

pub(super) async fn sign_out(people: &People, wire: wire::SignOutRequest) -> Result<wire::SignOutResponse, Error> {
    people.sign_out(&wire.session_secret).await?;
    Ok(wire::SignOutResponse {})
}

pub(super) async fn change_password(
    people: &People,
    wire: wire::ChangePasswordRequest,
) -> Result<wire::ChangePasswordResponse, Error> {
    let id = wire.user_id.parse().in_field("user_id")?;
    let old = Password::claimed(wire.old_password).in_field("old_password")?;
    let new = Password::chosen(wire.new_password).in_field("new_password")?;
    people.change_password(id, [old, new], kept(&wire.keep_session_id)?).await?;
    Ok(wire::ChangePasswordResponse {})
}

pub(super) async fn list_sessions(
    people: &People,
    wire: wire::ListSessionsRequest,
) -> Result<wire::ListSessionsResponse, Error> {
    let sessions = people.list_sessions(wire.user_id.parse().in_field("user_id")?).await?;
    Ok(wire::ListSessionsResponse { sessions: sessions.into_iter().map(session).collect() })
}

pub(super) async fn revoke_session(
    people: &People,
    wire: wire::RevokeSessionRequest,
) -> Result<wire::RevokeSessionResponse, Error> {
    let id = wire.user_id.parse().in_field("user_id")?;
    people.revoke_session(id, wire.session_id.parse().in_field("session_id")?).await?;
    Ok(wire::RevokeSessionResponse {})
}

pub(super) async fn revoke_all_sessions(
    people: &People,
    wire: wire::RevokeAllSessionsRequest,
) -> Result<wire::RevokeAllSessionsResponse, Error> {
    let id = wire.user_id.parse().in_field("user_id")?;
    let ended = people.revoke_all_sessions(id, kept(&wire.keep_session_id)?).await?;
    Ok(wire::RevokeAllSessionsResponse { ended: i32::try_from(ended).unwrap_or(i32::MAX) })
}

fn kept(id: &str) -> Result<Option<SessionId>, Error> {
    if id.is_empty() { Ok(None) } else { id.parse().map(Some).in_field("keep_session_id") }
}

fn session((id, session): (SessionId, Session)) -> wire::Session {
    wire::Session {
        id: id.to_string(),
        created_at: Some(timestamp(session.created_at_ms)),
        last_seen_at: Some(timestamp(session.last_seen_at_ms)),
        expires_at: Some(timestamp(session.expires_at_ms())),
        device: session.device,
    }
}
