//! Who is connected where.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use store::sets::{Connection, Coverage, Sets};
use tests::wait;

use super::{build, entry, open, soon, to, user};

sets_contract!({
    a_connection_is_new_once,
    a_connection_that_ran_out_is_new_again,
    a_round_that_comes_again_tells_the_same,
    a_connection_is_forgotten,
    a_push_tells_each_pod_once_a_reader,
    many_connections_are_registered_together,
});

const LONG_MS: i64 = 60_000;
const SHORT_MS: i64 = 50;

fn connection(id: &str, pod: &str, reader: i64) -> Connection {
    Connection { id: id.to_owned(), pod: pod.to_owned(), user: user(reader) }
}

/// Registers in a round of its own, and tells which were new.
async fn register(sets: &Sets, connections: &[&Connection], ttl_ms: i64) -> Vec<Connection> {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    let connections: Vec<_> = connections.iter().copied().cloned().collect();
    let round = ROUND.fetch_add(1, Ordering::Relaxed);
    let mut new = sets.connections.register(&connections, ttl_ms, round).await.unwrap();
    new.sort_by_key(|connection| connection.user);
    new
}

async fn of_user(sets: &Sets, reader: i64) -> Vec<Connection> {
    let mut found = sets.connections.of_user(user(reader)).await.unwrap();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

/// Whether they are the same connections.
fn are(found: &[Connection], expected: &[&Connection]) -> bool {
    found.iter().eq(expected.iter().copied())
}

async fn a_connection_is_new_once(sets: Sets) {
    let [first, second] = [connection("a", "here", 1), connection("b", "there", 1)];
    assert!(are(&register(&sets, &[&first], LONG_MS).await, &[&first]));
    assert!(are(&register(&sets, &[&first, &second], LONG_MS).await, &[&second]));
    assert!(are(&register(&sets, &[&first, &second], LONG_MS).await, &[]));
    assert!(are(&register(&sets, &[], LONG_MS).await, &[]));
    assert!(are(&of_user(&sets, 1).await, &[&first, &second]));
    assert!(are(&of_user(&sets, 2).await, &[]));
}

async fn a_connection_that_ran_out_is_new_again(sets: Sets) {
    let [short, long] = [connection("a", "here", 1), connection("b", "here", 1)];
    register(&sets, &[&long], LONG_MS).await;
    register(&sets, &[&short], SHORT_MS).await;
    wait::until("the end of a connection", async || are(&of_user(&sets, 1).await, &[&long]).then_some(())).await;
    assert!(are(&register(&sets, &[&short, &long], LONG_MS).await, &[&short]));
    assert!(are(&of_user(&sets, 1).await, &[&short, &long]));
}

/// Whoever lost the answer asks again, and is not told that all was well.
async fn a_round_that_comes_again_tells_the_same(sets: Sets) {
    let [old, new] = [connection("a", "here", 1), connection("b", "here", 2)];
    for (connections, round, expected) in [
        (vec![old.clone()], 1, vec![old.clone()]),
        (vec![old.clone(), new.clone()], u64::MAX, vec![new.clone()]),
        (vec![old.clone(), new.clone()], u64::MAX, vec![new.clone()]),
        (vec![old, new], u64::MAX - 1, Vec::new()),
    ] {
        assert_eq!(sets.connections.register(&connections, LONG_MS, round).await.unwrap(), expected);
    }
}

async fn a_connection_is_forgotten(sets: Sets) {
    let [first, second] = [connection("a", "here", 1), connection("b", "here", 1)];
    register(&sets, &[&first, &second], LONG_MS).await;
    sets.connections.forget(&first).await.unwrap();
    assert!(are(&of_user(&sets, 1).await, &[&second]));
    for _ in 0..2 {
        sets.connections.forget(&second).await.unwrap();
        assert!(are(&of_user(&sets, 1).await, &[]));
    }
    assert!(are(&register(&sets, &[&first], LONG_MS).await, &[&first]));
}

async fn a_push_tells_each_pod_once_a_reader(sets: Sets) {
    build(&sets, user(1), &[], Coverage::TO_THE_BEGINNING).await;
    let connections = [
        connection("a", "here", 1),
        connection("b", "there", 1),
        connection("c", "here", 1),
        // Connected, and without a home.
        connection("d", "here", 2),
        connection("e", "elsewhere", 4),
    ];
    register(&sets, &connections.each_ref(), LONG_MS).await;
    register(&sets, &[&connection("f", "here", 3)], SHORT_MS).await;
    wait::until("the end of a connection", async || of_user(&sets, 3).await.is_empty().then_some(())).await;
    let readers = [1, 2, 3].map(user);
    let expected = BTreeMap::from([("here".to_owned(), vec![user(1), user(2)]), ("there".to_owned(), vec![user(1)])]);
    for ms in 0..2 {
        let mut online = sets.homes.push(&to(&readers, entry(ms, 0)), soon()).await.unwrap();
        online.values_mut().for_each(|readers| readers.sort_unstable());
        assert_eq!(online, expected);
    }
}

async fn many_connections_are_registered_together(sets: Sets) {
    let connections: Vec<_> =
        (1..=1000).map(|reader| connection(&format!("c{reader}"), &format!("pod-{}", reader % 3), reader)).collect();
    let all: Vec<_> = connections.iter().collect();
    assert!(are(&register(&sets, &all, LONG_MS).await, &all));
    sets.connections.forget(&connections[500]).await.unwrap();
    assert!(are(&register(&sets, &all, LONG_MS).await, &[&connections[500]]));
    let readers: Vec<_> = (1..=2000).map(user).collect();
    let online = sets.homes.push(&to(&readers, entry(1, 0)), soon()).await.unwrap();
    assert_eq!(online.values().map(Vec::len).collect::<Vec<_>>(), [333, 334, 333]);
    for (pod, readers) in online {
        assert!(readers.iter().all(|reader| pod == format!("pod-{}", reader.get() % 3)), "{pod}: {readers:?}");
    }
}
