//! Which relays there are.

use store::sets::Sets;
use tests::wait;

use super::open;

sets_contract!({
    relays_that_ping_are_there_in_order_until_they_leave,
    a_relay_that_no_longer_pings_is_out,
});

const LONG_MS: i64 = 60_000;
const SHORT_MS: i64 = 100;

async fn relays_that_ping_are_there_in_order_until_they_leave(sets: Sets) {
    let relays = &sets.relay_members;
    assert_eq!(relays.ping("b", LONG_MS).await.unwrap(), ["b"]);
    assert_eq!(relays.ping("c", LONG_MS).await.unwrap(), ["b", "c"]);
    assert_eq!(relays.ping("a", LONG_MS).await.unwrap(), ["a", "b", "c"]);
    assert_eq!(relays.ping("b", LONG_MS).await.unwrap(), ["a", "b", "c"]);
    relays.leave("a").await.unwrap();
    relays.leave("nobody").await.unwrap();
    assert_eq!(relays.ping("c", LONG_MS).await.unwrap(), ["b", "c"]);
}

async fn a_relay_that_no_longer_pings_is_out(sets: Sets) {
    let relays = &sets.relay_members;
    relays.ping("dead", SHORT_MS).await.unwrap();
    assert_eq!(relays.ping("alive", SHORT_MS).await.unwrap(), ["alive", "dead"]);
    wait::until("the dead one to be out", async || {
        (relays.ping("alive", SHORT_MS).await.unwrap() == ["alive"]).then_some(())
    })
    .await;
}
