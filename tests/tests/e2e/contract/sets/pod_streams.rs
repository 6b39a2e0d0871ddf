//! What edge pods are told.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, future::join, stream};
use store::sets::{POD_STREAM_MESSAGES_MAX, PodPosition, Sets, Told};
use tests::wait;

use super::open;

sets_contract!({
    messages_come_in_order_and_numbered,
    a_pod_that_waits_is_woken,
    a_wait_that_was_given_up_costs_nothing,
    a_pod_that_falls_behind_the_cap_is_told,
});

fn message(number: usize) -> Bytes {
    // Bytes that are no text.
    [&[0xFF, 0x00][..], number.to_string().as_bytes()].concat().into()
}

async fn receive(sets: &Sets, pod: &str, after: PodPosition) -> Told {
    wait::within("a message", sets.pod_streams.receive(pod, after)).await.unwrap()
}

async fn messages_come_in_order_and_numbered(sets: Sets) {
    let mut after = PodPosition::default();
    for round in 0..3 {
        for number in 0..5 {
            sets.pod_streams.send("here", &[message(round * 5 + number)]).await.unwrap();
            sets.pod_streams.send("there", &[message(0)]).await.unwrap();
        }
        let told = receive(&sets, "here", after).await;
        assert_eq!(told.deliveries, (0..5).map(|number| message(round * 5 + number)).collect::<Vec<_>>());
        assert_eq!((told.missed, told.position.number), (false, after.number + 5));
        assert_eq!(receive(&sets, "here", after).await, told, "to read takes nothing away");
        after = told.position;
    }
    let all = receive(&sets, "here", PodPosition::default()).await;
    assert_eq!((all.deliveries.len(), all.missed, all.position), (15, false, after));
}

async fn a_pod_that_waits_is_woken(sets: Sets) {
    let mut after = PodPosition::default();
    for number in 0..3 {
        let send = async {
            // While it waits, other calls go on.
            assert!(sets.recents.newest(super::user(1), 1).await.unwrap().is_empty());
            sets.pod_streams.send("here", &[message(number)]).await.unwrap();
        };
        let (told, ()) = join(receive(&sets, "here", after), send).await;
        assert_eq!((told.deliveries, told.missed), (vec![message(number)], false));
        after = told.position;
    }
}

async fn a_wait_that_was_given_up_costs_nothing(sets: Sets) {
    for _ in 0..3 {
        let waited = tokio::time::timeout(Duration::from_millis(20), receive(&sets, "here", PodPosition::default()));
        assert!(waited.await.is_err(), "there is nothing to hear");
    }
    sets.pod_streams.send("here", &[message(1)]).await.unwrap();
    let told = receive(&sets, "here", PodPosition::default()).await;
    assert_eq!((told.deliveries, told.missed), (vec![message(1)], false));
}

async fn a_pod_that_falls_behind_the_cap_is_told(sets: Sets) {
    const SENT: usize = POD_STREAM_MESSAGES_MAX + 500;
    sets.pod_streams.send("here", &[message(0)]).await.unwrap();
    let behind = receive(&sets, "here", PodPosition::default()).await.position;
    let sends: Vec<_> = (1..SENT).map(|number| [message(number)]).collect();
    let sent = stream::iter(&sends).map(|messages| sets.pod_streams.send("here", messages));
    sent.buffer_unordered(100).for_each(|sent| async { sent.unwrap() }).await;
    for begin in [behind, PodPosition::default()] {
        let (mut after, mut missed, mut count) = (begin, Vec::new(), 0);
        while after.number < SENT as u64 {
            let told = receive(&sets, "here", after).await;
            missed.push(told.missed);
            count += told.deliveries.len();
            after = told.position;
        }
        assert!(missed[0], "the first read tells that some were cut off");
        assert!(missed[1..].iter().all(|missed| !missed), "{missed:?}");
        assert!((POD_STREAM_MESSAGES_MAX..SENT - 1).contains(&count), "{count} were kept");
    }
}
