//! Signing in and out: the session's secret lives in an HttpOnly cookie, which no script can read.

use ::http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_TYPE, COOKIE, SET_COOKIE},
};
use chassis::{Error, Reason};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::json;
use store::sets::{Session, SessionHash};

use crate::{
    Edge,
    http::{Body, json},
    limits::BODY_BYTES_MAX,
};

const COOKIE_NAME: &str = "freshet_session";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    handle: String,
    password: String,
}

/// `POST /session`: signs in.
pub(crate) async fn open(edge: &Edge, request: Request<Incoming>) -> Result<Response<Body>, Error> {
    let SignIn { handle, password } = read_json(request).await?;
    let signed_in = edge.users.sign_in(handle, password).await?;
    let user = signed_in.user.unwrap_or_default();
    let expires_ms = signed_in.expires_at.map_or(0, |at| at.seconds * 1000);
    let max_age = (expires_ms - edge.clock.unix_ms()).max(0) / 1000;
    let body = json!({"user": {"id": user.id, "handle": user.handle, "display_name": user.display_name}});
    let mut answer = json(StatusCode::CREATED, &body)?;
    answer.headers_mut().insert(SET_COOKIE, cookie(edge, &signed_in.session_secret, max_age)?);
    Ok(answer)
}

/// `DELETE /session`: signs out. Without a session there is nothing to do.
pub(crate) async fn end(edge: &Edge, headers: &HeaderMap) -> Result<Response<Body>, Error> {
    if let Some(secret) = secret(headers) {
        edge.sessions.end(SessionHash::of(secret)).await?;
    }
    let mut answer = json(StatusCode::OK, &json!({}))?;
    answer.headers_mut().insert(SET_COOKIE, cookie(edge, "", 0)?);
    Ok(answer)
}

/// The session that a request's cookie names.
pub(crate) async fn find(edge: &Edge, headers: &HeaderMap) -> Result<Session, Error> {
    let missing = || Error::new(Reason::SessionMissing, "there is no session: sign in by POST /session");
    let secret = secret(headers).ok_or_else(missing)?;
    edge.sessions.find(SessionHash::of(secret)).await?.ok_or_else(missing)
}

fn secret(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value)
}

fn cookie(edge: &Edge, secret: &str, max_age_s: i64) -> Result<HeaderValue, Error> {
    let secure = if edge.config.cookie_secure { "; Secure" } else { "" };
    let text = format!("{COOKIE_NAME}={secret}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).map_err(Error::internal)
}

/// Only JSON is taken: a form of another site cannot send that without the browser asking first.
async fn read_json<T: for<'de> Deserialize<'de>>(request: Request<Incoming>) -> Result<T, Error> {
    let is_json = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| value.split(';').next().unwrap_or_default().trim() == "application/json");
    if !is_json {
        return Err(Error::invalid("content-type", "must be application/json"));
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await.map_err(|cause| {
        if cause.is::<LengthLimitError>() {
            Error::new(Reason::RequestTooLarge, format!("the body is larger than {BODY_BYTES_MAX} bytes"))
        } else {
            Error::invalid("body", format_args!("cannot be read: {cause}"))
        }
    })?;
    serde_json::from_slice(&body.to_bytes())
        .map_err(|cause| Error::invalid("body", format_args!("is not valid: {cause}")))
}
