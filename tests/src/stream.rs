//! A browser's side of the edge: signing in, and reading an event stream.

use std::{collections::VecDeque, net::SocketAddr};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_TYPE, COOKIE, SET_COOKIE},
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use proto::freshet::post::v1::Post;
use serde_json::{Value, json};

use crate::wait::within;

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened.
    pub name: String,
    /// The data, read as JSON.
    pub data: Value,
}

/// An open event stream.
#[derive(Debug)]
pub struct Stream {
    body: Incoming,
    /// What came and is not a whole line yet.
    rest: String,
    name: String,
    events: VecDeque<Event>,
}

/// What the edge answered when it refused: status and body.
#[derive(Debug, PartialEq)]
pub struct Refused {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body, read as JSON.
    pub body: Value,
}

/// Sends a request to an edge pod.
pub async fn send(
    edge: SocketAddr,
    method: Method,
    path: &str,
    cookie: Option<&str>,
    body: Option<&Value>,
) -> Response<Incoming> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut request = Request::builder().method(method).uri(format!("http://{edge}{path}"));
    if let Some(cookie) = cookie {
        request = request.header(COOKIE, cookie);
    }
    if body.is_some() {
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    let request = request.body(Full::new(bytes)).expect("a request");
    within("the edge's answer", client.request(request)).await.expect("an answer of the edge")
}

/// Signs in and gives the cookie to send.
pub async fn sign_in(edge: SocketAddr, handle: &str, password: &str) -> Result<String, Refused> {
    let body = json!({"handle": handle, "password": password});
    let answer = accepted(send(edge, Method::POST, "/session", None, Some(&body)).await, StatusCode::CREATED).await?;
    let cookie = answer.headers()[SET_COOKIE].to_str().expect("a readable cookie");
    assert!(cookie.contains("; HttpOnly"), "scripts must not read the session: {cookie}");
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

async fn accepted(answer: Response<Incoming>, status: StatusCode) -> Result<Response<Incoming>, Refused> {
    if answer.status() == status {
        return Ok(answer);
    }
    let status = answer.status();
    let body = within("a body", answer.into_body().collect()).await.expect("a whole body").to_bytes();
    Err(Refused { status, body: serde_json::from_slice(&body).unwrap_or_default() })
}

impl Stream {
    /// Opens the home event stream and waits for its greeting: from then on, nothing is missed.
    pub async fn open(edge: SocketAddr, cookie: &str) -> Result<Self, Refused> {
        let answer = send(edge, Method::GET, "/events/timeline/home", Some(cookie), None).await;
        let answer = accepted(answer, StatusCode::OK).await?;
        assert_eq!(answer.headers()[CONTENT_TYPE], "text/event-stream");
        let body = answer.into_body();
        let mut stream = Self { body, rest: String::new(), name: String::new(), events: VecDeque::new() };
        let hello = stream.next().await.expect("a greeting");
        assert_eq!(hello.name, "hello");
        Ok(stream)
    }

    /// The next event; `None` when the edge closed the stream.
    pub async fn next(&mut self) -> Option<Event> {
        // Over all frames: heartbeats are no events.
        within("an event", self.next_whenever()).await
    }

    /// The next event, however long it takes; `None` when the edge closed the stream.
    pub async fn next_whenever(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.take(std::str::from_utf8(&data).expect("UTF-8"));
            }
        }
    }

    /// The next event must tell of this post.
    pub async fn shows_next(&mut self, post: &Post) {
        let event = self.next().await.expect("an open stream");
        assert_eq!(event.name, "new_post");
        assert_eq!(event.data["id"], post.id);
        assert_eq!(event.data["author_id"], post.author_id);
        assert_eq!(event.data["text"], post.text);
    }

    fn take(&mut self, text: &str) {
        self.rest.push_str(text);
        while let Some((line, rest)) = self.rest.split_once('\n') {
            if let Some(name) = line.strip_prefix("event: ") {
                self.name = name.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(data).expect("JSON");
                self.events.push_back(Event { name: std::mem::take(&mut self.name), data });
            }
            self.rest = rest.to_owned();
        }
    }
}
