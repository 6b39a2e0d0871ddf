//! What every call passes on its way in: a limit on its size, its trace, its token, its deadline; and on its way out: a panic
//! becomes INTERNAL and is counted.

use std::{
    convert::Infallible,
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::FutureExt as _;
use http::{HeaderMap, Request, Response, header::AUTHORIZATION};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::time::Instant;
use tonic::{Status, body::Body};
use tower::{Layer, Service};
use tracing::{Instrument as _, error};

use super::{missing_token, status::into_status};
use crate::{Error, Pod, Reason, tasks::panic_text, token::Keyring, trace};

/// Services that answer without a token: probes and tools ask them.
const OPEN: [&str; 2] = ["/grpc.health.", "/grpc.reflection."];

/// The limits and keys of the border.
pub(super) struct Rules {
    pub(super) pod: Pod,
    pub(super) keyring: Keyring,
    pub(super) request_bytes_max: usize,
    pub(super) deadline_max: Duration,
}

#[derive(Clone)]
pub(super) struct BorderLayer(pub(super) Arc<Rules>);

impl<S> Layer<S> for BorderLayer {
    type Service = Border<S>;

    fn layer(&self, inner: S) -> Border<S> {
        Border { inner, rules: self.0.clone() }
    }
}

#[derive(Clone)]
pub(super) struct Border<S> {
    inner: S,
    rules: Arc<Rules>,
}

impl<S> Service<Request<Body>> for Border<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let rules = self.rules.clone();
        let method = request.uri().path().to_owned();
        let span = tracing::info_span!(parent: rules.pod.span(), "rpc", otel.name = %method, otel.kind = "server");
        trace::adopt(&span, header(request.headers(), trace::TRACEPARENT));
        // Taken here, not when first polled, so that it is never later than the transport's own.
        let deadline = Instant::now() + allowed_time(request.headers(), rules.deadline_max);
        let request = match rules.admit(request) {
            Ok(request) => request,
            Err(refused) => return Box::pin(async move { Ok(into_status(&refused).into_http()) }),
        };
        // The clone takes the place of the service that was polled ready.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let answer = async move {
            let call = AssertUnwindSafe(async { inner.call(request).await }).catch_unwind();
            match tokio::time::timeout_at(deadline, call).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(panic)) => {
                    rules.pod.metrics.handler_panicked(&method);
                    error!(%method, "{method} panicked: {}", panic_text(&*panic));
                    Ok(status(Reason::Internal, "a fault of the server; its log has more"))
                }
                Err(_) => Ok(status(Reason::DeadlineExceeded, "the call's deadline has passed")),
            }
        };
        Box::pin(answer.instrument(span))
    }
}

impl Rules {
    /// The request as the handlers get it, with its caller known and its body limited.
    fn admit(&self, request: Request<Body>) -> Result<Request<Body>, Error> {
        let open = OPEN.iter().any(|prefix| request.uri().path().starts_with(prefix));
        let caller = if open { None } else { Some(self.caller(request.headers())?) };
        let max = self.request_bytes_max;
        let mut request = request.map(|body| {
            Body::new(Limited::new(body, max).map_err(move |cause| match cause.downcast::<LengthLimitError>() {
                Ok(_) => status_of(Reason::RequestTooLarge, &format!("the request is larger than {max} bytes")),
                Err(cause) => Status::from_error(cause),
            }))
        });
        if let Some(caller) = caller {
            request.extensions_mut().insert(caller);
        }
        Ok(request)
    }

    fn caller(&self, headers: &HeaderMap) -> Result<crate::token::Caller, Error> {
        let token = header(headers, AUTHORIZATION.as_str()).strip_prefix("Bearer ").ok_or_else(missing_token)?;
        self.keyring.verify(token)
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn status_of(reason: Reason, message: &str) -> Status {
    into_status(&Error::new(reason, message))
}

fn status(reason: Reason, message: &str) -> Response<Body> {
    status_of(reason, message).into_http()
}

/// The time that the caller allows (`grpc-timeout`), at most the server's own.
fn allowed_time(headers: &HeaderMap, max: Duration) -> Duration {
    let text = header(headers, "grpc-timeout");
    let asked = text.split_at_checked(text.len().saturating_sub(1)).and_then(|(number, unit)| {
        let number: u64 = number.parse().ok()?;
        match unit {
            "H" => number.checked_mul(3600).map(Duration::from_secs),
            "M" => number.checked_mul(60).map(Duration::from_secs),
            "S" => Some(Duration::from_secs(number)),
            "m" => Some(Duration::from_millis(number)),
            "u" => Some(Duration::from_micros(number)),
            "n" => Some(Duration::from_nanos(number)),
            _ => None,
        }
    });
    asked.map_or(max, |asked| asked.min(max))
}
