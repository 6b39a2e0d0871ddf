//! What the relay tells this pod, on its way to the readers' streams.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use chassis::{Stop, trace};
use prost::Message as _;
use proto::{
    UserId,
    freshet::event::v1::{Delivery, Envelope, envelope::Payload},
};
use store::sets::{PodPosition, PodStreams};
use tracing::{error, info_span, warn};

use crate::{events, hub::Hub};

const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Passes deliveries on until asked to stop. While the sets do not answer it keeps its place and asks again.
pub(crate) async fn run(hub: Arc<Hub>, streams: Arc<dyn PodStreams>, pod: String, stop: Stop) {
    let mut after = PodPosition::default();
    loop {
        let told = tokio::select! {
            () = stop.cancelled() => return,
            told = streams.receive(&pod, after) => told,
        };
        match told {
            Ok(told) => {
                after = told.position;
                // Told before what comes after it, so that whoever reads again then misses nothing.
                if told.missed {
                    warn!("messages for this pod were lost; its streams are told to read again");
                    hub.tell_all_of_a_gap();
                }
                for delivery in told.deliveries {
                    if let Err(cause) = deliver(&hub, delivery) {
                        error!(number = after.number, "cannot deliver what the relay told: {cause}");
                    }
                }
            }
            Err(cause) => {
                warn!("cannot hear the relay, trying again: {cause}");
                tokio::select! { () = stop.cancelled() => return, () = tokio::time::sleep(RETRY_AFTER) => {} }
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
    let envelope = Envelope::decode(delivery.event.as_slice()).map_err(|cause| cause.to_string())?;
    let event = envelope.event_id.parse().map_err(|cause| format!("event_id {cause}"))?;
    let readers: Vec<_> = delivery.reader_ids.into_iter().filter_map(|id| UserId::new(id).ok()).collect();
    hub.send(&readers, event, &frame(&envelope)?);
    Ok(())
}

fn frame(envelope: &Envelope) -> Result<Bytes, String> {
    match &envelope.payload {
        Some(Payload::PostCreated(post)) => events::new_post(post),
        Some(Payload::PostUpdated(updated)) => events::updated_post(updated),
        Some(Payload::PostDeleted(deleted)) => events::deleted_post(&deleted.post_id),
        _ => Err(format!("the edge does not know the event {:?}", envelope.r#type)),
    }
}
