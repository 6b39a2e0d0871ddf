//! Requests to answers: routes, bodies, errors.

use std::{convert::Infallible, net::IpAddr, time::Duration};

use ::http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER},
};
use bytes::Bytes;
use chassis::{Error, Reason};
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use serde::Serialize;
use serde_json::json;

use crate::{
    Edge, events,
    hub::Seat,
    limits::{RETRY_MS_MIN, RETRY_MS_SPREAD},
    sessions,
};

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Answers a request; an error becomes its JSON form.
pub(crate) async fn answer(edge: &Edge, request: Request<Incoming>, peer: IpAddr) -> Response<Body> {
    let answered = match (request.method(), request.uri().path()) {
        (&Method::POST, "/session") => sessions::open(edge, request, peer).await,
        (&Method::DELETE, "/session") => sessions::end(edge, request.headers()).await,
        (&Method::GET, "/events/timeline/home") => home_events(edge, request.headers()).await,
        (&Method::GET, "/healthz") => Ok(text(StatusCode::OK, "ok\n")),
        (&Method::GET, "/readyz") if edge.pod.health.is_ready() => Ok(text(StatusCode::OK, "ready\n")),
        (&Method::GET, "/readyz") => Ok(text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")),
        (_, "/session") => Ok(wrong_method("POST, DELETE")),
        (_, "/events/timeline/home" | "/healthz" | "/readyz") => Ok(wrong_method("GET")),
        (_, path) => Err(Error::new(Reason::MethodNotFound, format!("there is nothing at {path}"))),
    };
    answered.unwrap_or_else(|error| refusal(&error))
}

/// Opens the event stream of the reader's home timeline.
async fn home_events(edge: &Edge, headers: &HeaderMap) -> Result<Response<Body>, Error> {
    let seat = match take_seat(edge, headers).await {
        Ok(Some(seat)) => seat,
        // A native EventSource gives up for good on an error status: it is sent away with 200 and told when to return.
        Ok(None) => return Ok(come_back(edge)),
        Err(error) if error.reason() == Reason::Unavailable => return Ok(come_back(edge)),
        Err(error) => return Err(error),
    };
    let hello = events::hello(seat.connection_id()).map_err(Error::internal)?;
    let frames = stream::unfold((seat, edge.config.heartbeat), async |(mut seat, heartbeat): (Seat, Duration)| {
        let frame = match tokio::time::timeout(heartbeat, seat.next()).await {
            Ok(frame) => frame?,
            Err(_) => events::HEARTBEAT,
        };
        Some((frame, (seat, heartbeat)))
    });
    let frames = stream::iter([hello]).chain(frames).map(|frame| Ok(Frame::data(frame)));
    Ok(event_stream(StreamBody::new(frames).boxed_unsync()))
}

async fn take_seat(edge: &Edge, headers: &HeaderMap) -> Result<Option<Seat>, Error> {
    let session = sessions::find(edge, headers).await?;
    Ok(edge.hub.join(session.user, edge.random.secret()).await?)
}

fn come_back(edge: &Edge) -> Response<Body> {
    let after_ms = RETRY_MS_MIN + edge.random.number() % RETRY_MS_SPREAD;
    event_stream(full(events::retry(after_ms)))
}

fn event_stream(body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // nginx would hold events back to fill its buffer.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    answer
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Result<Response<Body>, Error> {
    let mut answer = Response::new(full(serde_json::to_vec(value).map_err(Error::internal)?.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// An error as browsers get it.
pub(crate) fn refusal(error: &Error) -> Response<Body> {
    let fields: Vec<_> = error.violations().iter().map(|one| json!({"field": one.field, "rule": one.rule})).collect();
    let value = json!({"error": {
        "reason": error.reason().name(),
        "message": error.message(),
        "fields": fields,
    }});
    let mut answer = json(error.reason().http_status(), &value)
        .unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, "a fault of the server\n"));
    if let Some(after) = error.retry_after() {
        // Whole seconds, and never too early.
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(after.as_millis().div_ceil(1000) as u64));
    }
    answer
}

fn wrong_method(allowed: &'static str) -> Response<Body> {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "this path takes other methods\n");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(full(Bytes::from_static(text.as_bytes())));
    *answer.status_mut() = status;
    answer
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}
