//! The bare client: the same records, headers and partitions, with the settings that the product gives it, and nothing else.

use std::{collections::VecDeque, time::Duration};

use rdkafka::{
    ClientConfig,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{DeliveryFuture, FutureProducer, FutureRecord},
};
use store::event_log::Record;
use tokio::time::Instant;

use super::Bench;

/// How many records are under way at once.
const WINDOW: usize = 16_000;
const QUEUE_PAUSE: Duration = Duration::from_millis(1);

/// Events a second until the last one is acknowledged.
pub(super) async fn pace(bench: &Bench, events: &[Record]) -> f64 {
    let client: FutureProducer = ClientConfig::new()
        .set("bootstrap.servers", bench.brokers())
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("linger.ms", "0.2")
        .set("socket.nagle.disable", "true")
        .set("queue.buffering.max.messages", "20000")
        .set("queue.buffering.max.kbytes", "65536")
        .create()
        .expect("a client");
    let topic = bench.topic();
    let begun = Instant::now();
    let mut under_way = VecDeque::with_capacity(WINDOW);
    for event in events {
        if under_way.len() == WINDOW {
            acknowledged(under_way.pop_front()).await;
        }
        under_way.push_back(send(&client, &topic, event).await);
    }
    while !under_way.is_empty() {
        acknowledged(under_way.pop_front()).await;
    }
    events.len() as f64 / begun.elapsed().as_secs_f64()
}

async fn send(client: &FutureProducer, topic: &str, event: &Record) -> DeliveryFuture {
    let epoch = event.epoch.to_string();
    let headers = [("type", &event.kind), ("traceparent", &event.traceparent), ("epoch", &epoch)];
    let headers = headers.into_iter().fold(OwnedHeaders::new_with_capacity(3), |headers, (key, value)| {
        headers.insert(Header { key, value: Some(value) })
    });
    let mut message = FutureRecord::to(topic)
        .partition(i32::from(event.partition.0))
        .key(event.key.as_str())
        .payload(event.payload.as_ref())
        .headers(headers);
    loop {
        match client.send_result(message) {
            Ok(delivery) => return delivery,
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), returned)) => {
                message = returned;
                tokio::time::sleep(QUEUE_PAUSE).await;
            }
            Err((cause, _)) => panic!("a record was not taken: {cause}"),
        }
    }
}

async fn acknowledged(delivery: Option<DeliveryFuture>) {
    if let Some(delivery) = delivery {
        delivery.await.expect("a delivery").expect("an acknowledgement");
    }
}
