//! The one gRPC set-up of all roles: what every call passes on its way in, how a handler answers, and how pods call each
//! other.

mod border;
mod client;
mod pod;
mod server;
mod status;

pub use client::{Attach, Channel, connect};
pub use server::{Config, Server};
pub use status::{from_status, into_status};
use tonic::{Request, Response, Status, metadata::MetadataMap};

use crate::{Error, Reason, token::Caller};
use proto::access::Access;

/// What a handler may know of a call beside its message.
pub struct Call {
    /// Who calls.
    pub caller: Caller,
    metadata: MetadataMap,
}

impl Call {
    /// The text of a metadata entry, where the call has one.
    pub fn metadata(&self, name: &'static str) -> Result<Option<&str>, Error> {
        let text = self.metadata.get(name).map(|value| value.to_str()).transpose();
        text.map_err(|_| Error::invalid(name, "must be visible ASCII characters"))
    }
}

/// Answers a unary call: the method's rule first, then the work, then its error as a status. Every handler goes through
/// here, and a request without a rule does not compile.
pub async fn answer<Q, A, F>(request: Request<Q>, work: impl FnOnce(Q) -> F) -> Result<Response<A>, Status>
where
    Q: Access,
    F: Future<Output = Result<A, Error>>,
{
    answer_call(request, |_, wire| work(wire)).await
}

/// The same for work that depends on who calls.
pub async fn answer_call<Q, A, F>(request: Request<Q>, work: impl FnOnce(Call, Q) -> F) -> Result<Response<A>, Status>
where
    Q: Access,
    F: Future<Output = Result<A, Error>>,
{
    let (metadata, extensions, wire) = request.into_parts();
    let caller = extensions.get::<Caller>().cloned().ok_or_else(|| into_status(&missing_token()))?;
    caller.may(&wire).map_err(|error| into_status(&error))?;
    work(Call { caller, metadata }, wire).await.map(Response::new).map_err(|error| into_status(&error))
}

fn missing_token() -> Error {
    Error::new(Reason::TokenMissing, "the call has no token: send the metadata authorization: Bearer TOKEN")
}
