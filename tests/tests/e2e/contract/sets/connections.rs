//! Who is connected where.

use std::collections::BTreeMap;

use store::sets::{Connection, Coverage, Sets};
use tests::wait;

use super::{build, entry, open, soon, user};

sets_contract!({
    a_connection_is_new_once,
    a_connection_that_ran_out_is_new_again,
    a_connection_is_forgotten,
    a_push_tells_each_pod_once_a_reader,
    many_connections_are_registered_together,
});

const LONG_MS: i64 = 60_000;
const SHORT_MS: i64 = 50;

fn connection(id: &str, pod: &str, reader: i64) -> Connection {
    Connection { id: id.to_owned(), pod: pod.to_owned(), user: user(reader) }
}

async fn of_user(sets: &Sets, reader: i64) -> Vec<Connection> {
    let mut found = sets.connections.of_user(user(reader)).await.unwrap();
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found
}

async fn a_connection_is_new_once(sets: Sets) {
    let [first, second] = [connection("a", "here", 1), connection("b", "there", 1)];
    assert_eq!(sets.connections.register(&[first.clone()], LONG_MS).await.unwrap(), [first.clone()]);
    assert_eq!(sets.connections.register(&[first.clone(), second.clone()], LONG_MS).await.unwrap(), [second.clone()]);
    assert!(sets.connections.register(&[first.clone(), second.clone()], LONG_MS).await.unwrap().is_empty());
    assert!(sets.connections.register(&[], LONG_MS).await.unwrap().is_empty());
    assert_eq!(of_user(&sets, 1).await, [first, second]);
    assert!(of_user(&sets, 2).await.is_empty());
}

async fn a_connection_that_ran_out_is_new_again(sets: Sets) {
    let [short, long] = [connection("a", "here", 1), connection("b", "here", 1)];
    sets.connections.register(&[long.clone()], LONG_MS).await.unwrap();
    sets.connections.register(&[short.clone()], SHORT_MS).await.unwrap();
    wait::until("the end of a connection", async || (of_user(&sets, 1).await == [long.clone()]).then_some(())).await;
    assert_eq!(sets.connections.register(&[short.clone(), long.clone()], LONG_MS).await.unwrap(), [short.clone()]);
    assert_eq!(of_user(&sets, 1).await, [short, long]);
}

async fn a_connection_is_forgotten(sets: Sets) {
    let [first, second] = [connection("a", "here", 1), connection("b", "here", 1)];
    sets.connections.register(&[first.clone(), second.clone()], LONG_MS).await.unwrap();
    sets.connections.forget(&first).await.unwrap();
    assert_eq!(of_user(&sets, 1).await, [second.clone()]);
    for _ in 0..2 {
        sets.connections.forget(&second).await.unwrap();
        assert!(of_user(&sets, 1).await.is_empty());
    }
    assert_eq!(sets.connections.register(&[first.clone()], LONG_MS).await.unwrap(), [first]);
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
    sets.connections.register(&connections, LONG_MS).await.unwrap();
    sets.connections.register(&[connection("f", "here", 3)], SHORT_MS).await.unwrap();
    wait::until("the end of a connection", async || of_user(&sets, 3).await.is_empty().then_some(())).await;
    let readers = [1, 2, 3].map(user);
    let expected = BTreeMap::from([("here".to_owned(), vec![user(1), user(2)]), ("there".to_owned(), vec![user(1)])]);
    for ms in 0..2 {
        let mut online = sets.homes.push(&readers, entry(ms, 0), soon()).await.unwrap();
        online.values_mut().for_each(|readers| readers.sort_unstable());
        assert_eq!(online, expected);
    }
}

async fn many_connections_are_registered_together(sets: Sets) {
    let connections: Vec<_> =
        (1..=1000).map(|reader| connection(&format!("c{reader}"), &format!("pod-{}", reader % 3), reader)).collect();
    let mut new = sets.connections.register(&connections, LONG_MS).await.unwrap();
    new.sort_by_key(|connection| connection.user);
    assert_eq!(new, connections);
    sets.connections.forget(&connections[500]).await.unwrap();
    assert_eq!(sets.connections.register(&connections, LONG_MS).await.unwrap(), [connections[500].clone()]);
    let readers: Vec<_> = (1..=2000).map(user).collect();
    let online = sets.homes.push(&readers, entry(1, 0), soon()).await.unwrap();
    assert_eq!(online.values().map(Vec::len).collect::<Vec<_>>(), [333, 334, 333]);
    for (pod, readers) in online {
        assert!(readers.iter().all(|reader| pod == format!("pod-{}", reader.get() % 3)), "{pod}: {readers:?}");
    }
}
