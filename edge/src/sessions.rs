//! Signing in and out: the session's secret lives in an HttpOnly cookie, which no script can read.

use std::net::IpAddr;

use ::http::{
    HeaderMap, HeaderValue, Request, Response, StatusCode,
    header::{CONTENT_TYPE, COOKIE, SET_COOKIE, USER_AGENT},
};
use chassis::{Error, Reason};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use proto::freshet::user::v1::SignInRequest;
use serde::Deserialize;
use serde_json::json;
use store::sets::{Session, SessionHash};
use tracing::warn;

use crate::{
    Edge, address,
    http::{Body, json},
    limits::BODY_BYTES_MAX,
};

const SESSION_COOKIE: &str = "freshet_session";
/// What a device is known by when somebody signs in on it again.
const DEVICE_COOKIE: &str = "freshet_device";
/// 400 days, the longest that browsers keep a cookie.
const DEVICE_COOKIE_S: i64 = 400 * 24 * 3600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    handle: String,
    password: String,
}

/// `POST /session`: signs in.
pub(crate) async fn open(edge: &Edge, request: Request<Incoming>, peer: IpAddr) -> Result<Response<Body>, Error> {
    let headers = request.headers();
    let address = address::of_person(headers, peer, edge.config.proxies).to_string();
    let device = headers.get(USER_AGENT).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let device_secret = cookie_of(headers, DEVICE_COOKIE).unwrap_or_default().to_owned();
    let SignIn { handle, password } = read_json(request).await?;
    let device = device.unwrap_or_default();
    let signed_in = edge.users.sign_in(SignInRequest { handle, password, address, device, device_secret }).await?;
    let user = signed_in.user.unwrap_or_default();
    // The cookie lasts as long as the session can: how long it does is decided where the session is kept.
    let ends_ms = signed_in.ends_at.map_or(0, |at| at.seconds * 1000);
    let max_age = (ends_ms - edge.clock.unix_ms()).max(0) / 1000;
    let body = json!({"user": {"id": user.id, "handle": user.handle, "display_name": user.display_name}});
    let mut answer = json(StatusCode::CREATED, &body)?;
    let session = cookie(edge, SESSION_COOKIE, &signed_in.session_secret, max_age)?;
    let device = cookie(edge, DEVICE_COOKIE, &signed_in.device_secret, DEVICE_COOKIE_S)?;
    answer.headers_mut().append(SET_COOKIE, session);
    answer.headers_mut().append(SET_COOKIE, device);
    Ok(answer)
}

/// `DELETE /session`: signs out. Without a session there is nothing to do. The device stays known: who signs in on it again
/// is not taken for a stranger.
pub(crate) async fn end(edge: &Edge, headers: &HeaderMap) -> Result<Response<Body>, Error> {
    if let Some(secret) = cookie_of(headers, SESSION_COOKIE) {
        edge.users.sign_out(secret.to_owned()).await?;
    }
    let mut answer = json(StatusCode::OK, &json!({}))?;
    answer.headers_mut().insert(SET_COOKIE, cookie(edge, SESSION_COOKIE, "", 0)?);
    Ok(answer)
}

/// The session that a request's cookie names. Now and then it is written down that it was used.
pub(crate) async fn find(edge: &Edge, headers: &HeaderMap) -> Result<Session, Error> {
    let missing = || Error::new(Reason::SessionMissing, "there is no session: sign in by POST /session");
    let hash = SessionHash::of(cookie_of(headers, SESSION_COOKIE).ok_or_else(missing)?);
    let session = edge.sessions.find(hash).await?.ok_or_else(missing)?;
    let now = edge.clock.unix_ms();
    if session.is_to_be_renewed(now)
        && let Err(cause) = edge.sessions.renew(hash, now).await
    {
        // It is good for this request all the same, and the next one writes it down.
        warn!("cannot note that a session was used: {cause}");
    }
    Ok(session)
}

fn cookie_of<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

fn cookie(edge: &Edge, name: &str, secret: &str, max_age_s: i64) -> Result<HeaderValue, Error> {
    let secure = if edge.config.cookie_secure { "; Secure" } else { "" };
    let text = format!("{name}={secret}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax{secure}");
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
