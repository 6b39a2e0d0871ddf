//! What the relay tells this pod, on its way to the readers' streams.

use std::sync::Arc;

use bytes::Bytes;
use chassis::{Stop, trace};
use prost::Message as _;
use proto::{
    PostId, UserId,
    freshet::event::v1::{Delivery, PostCreated, envelope::Payload},
};
use store::{Error, sets::PodStreams};
use tracing::{error, info_span};

use crate::{events, hub::Hub};

/// Passes deliveries on until asked to stop.
pub(crate) async fn run(hub: Arc<Hub>, streams: Arc<dyn PodStreams>, pod: String, stop: Stop) -> Result<(), Error> {
    let mut after = 0;
    loop {
        let messages = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            messages = streams.receive(&pod, after) => messages?,
        };
        for message in messages {
            after = message.position;
            if let Err(cause) = deliver(&hub, message.delivery) {
                error!(position = message.position, "cannot deliver what the relay told: {cause}");
            }
        }
    }
}

/// The frame's bytes are made once and shared by all its readers.
fn deliver(hub: &Hub, delivery: Bytes) -> Result<(), String> {
    let delivery = Delivery::decode(delivery).map_err(|cause| cause.to_string())?;
    let span = info_span!("deliver", otel.name = "edge deliver");
    trace::adopt(&span, &delivery.traceparent);
    let _entered = span.enter();
    let Some(Payload::PostCreated(event)) = delivery.event.and_then(|event| event.payload) else {
        return Err("the edge does not know this event".into());
    };
    let readers: Vec<_> = delivery.reader_ids.into_iter().filter_map(|id| UserId::new(id).ok()).collect();
    hub.send(&readers, post_id(&event)?, &events::new_post(&event)?);
    Ok(())
}

fn post_id(event: &PostCreated) -> Result<PostId, String> {
    event.post_id.parse().map_err(|cause| format!("post_id {cause}"))
}
