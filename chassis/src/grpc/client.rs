//! How pods call each other: a channel, and what goes with each call (token, trace, deadline).

use std::time::Duration;

use tonic::{Request, Status, metadata::MetadataValue, service::Interceptor, transport::Endpoint};

use super::status::into_status;
use crate::{
    Error,
    token::{CALL_TTL, Caller, Keyring},
    trace,
};

pub use tonic::transport::Channel;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// A channel to an address such as `http://127.0.0.1:7701`. It connects at the first call, and again whenever it must.
pub fn connect(address: &str) -> Result<Channel, Error> {
    let endpoint = Endpoint::from_shared(address.to_owned())
        .map_err(|cause| Error::internal(format!("{address} is no address: {cause}")))?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(CALL_TIMEOUT)
        .tcp_nodelay(true)
        // A peer that vanished without a word is noticed, and the next call connects anew.
        .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true);
    Ok(endpoint.connect_lazy())
}

/// Attaches token and trace to each call.
#[derive(Clone, Debug)]
pub struct Attach {
    keyring: Keyring,
    caller: Caller,
}

impl Attach {
    /// Calls as this caller.
    #[must_use]
    pub fn new(keyring: Keyring, caller: Caller) -> Self {
        Self { keyring, caller }
    }
}

impl Interceptor for Attach {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let token = self.keyring.sign(&self.caller, CALL_TTL).map_err(|error| into_status(&error))?;
        let bearer = MetadataValue::try_from(format!("Bearer {token}"))
            .map_err(|cause| into_status(&Error::internal(format!("a token that is no header: {cause}"))))?;
        request.metadata_mut().insert("authorization", bearer);
        if let Ok(traceparent) = MetadataValue::try_from(trace::current())
            && !traceparent.is_empty()
        {
            request.metadata_mut().insert(trace::TRACEPARENT, traceparent);
        }
        Ok(request)
    }
}
