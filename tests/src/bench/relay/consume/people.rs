//! Who writes and who reads: everybody has a home and ten followers, and every fifth is connected to one of two edge pods.

use std::collections::HashMap;

use chassis::{Clock as _, clock};
use futures_util::{StreamExt as _, stream};
use proto::{
    UserId,
    event::Topic,
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::{
    event_log::Lane,
    sets::{Build, Connection, Coverage},
};
use tokio_postgres::Client;

use super::{super::AUTHORS, Bench, shards};

/// How far along the ring of people each one's followers stand.
const FOLLOWERS: [usize; 10] = [1, 14, 53, 118, 209, 326, 469, 638, 833, 1054];
const CONNECTED_EVERY: usize = 5;
const EDGE_PODS: [&str; 2] = ["edge-1", "edge-2"];
const CONNECTED_MS: i64 = 60 * 60 * 1000;
const AT_ONCE: usize = 64;
const _: () = assert!(FOLLOWERS[FOLLOWERS.len() - 1] < AUTHORS);

/// The people of the run.
pub(super) struct People {
    pub(super) all: Vec<UserId>,
    /// Each one's, in order.
    pub(super) followers: HashMap<UserId, Vec<UserId>>,
}

impl People {
    /// Has them signed up, followed, at home and connected.
    pub(super) async fn settle(bench: &Bench) -> Self {
        let since = clock::System.unix_ms() - EPOCH_UNIX_MS - AUTHORS as i64;
        let person = |place: usize| {
            UserId::new((since + place as i64) << (WRITER_BITS + SEQUENCE_BITS)).expect("an id of a person")
        };
        let all: Vec<_> = (0..AUTHORS).map(person).collect();
        let followers_of = |place: usize| {
            let mut followers: Vec<_> = FOLLOWERS.iter().map(|step| all[(place + step) % AUTHORS]).collect();
            followers.sort_unstable();
            followers
        };
        let followers = all.iter().enumerate().map(|(place, one)| (*one, followers_of(place))).collect();
        let people = Self { all, followers };
        people.sign_up(&bench.raw).await;
        // As after an earlier run of the relay: homes that nothing is known of would be dropped.
        for lane in
            [Topic::Posts, Topic::Graph].into_iter().flat_map(|topic| shards().map(move |shard| Lane { topic, shard }))
        {
            bench.stores.sets.progress.note(lane, Some(-1)).await.expect("a note");
        }
        stream::iter(&people.all).for_each_concurrent(AT_ONCE, |reader| make_home(bench, *reader)).await;
        people.connect(bench).await;
        people
    }

    async fn sign_up(&self, client: &Client) {
        let ids: Vec<_> = self.all.iter().map(|one| one.get()).collect();
        let accounts = "INSERT INTO accounts (id, handle, display_name, created_at_ms, version) \
                        SELECT id, 'p' || id, 'somebody', 0, 1 FROM unnest($1::BIGINT[]) AS people (id)";
        client.execute(accounts, &[&ids]).await.expect("accounts");
        let edges = self.followers.iter().flat_map(|(one, all)| all.iter().map(|follower| (follower.get(), one.get())));
        let (followers, followees): (Vec<_>, Vec<_>) = edges.unzip();
        let follows = "INSERT INTO follows (follower, followee, active, version) \
                       SELECT follower, followee, TRUE, 1 FROM unnest($1::BIGINT[], $2::BIGINT[]) AS edges (follower, followee)";
        client.execute(follows, &[&followers, &followees]).await.expect("follows");
        client.batch_execute("ANALYZE").await.expect("statistics");
    }

    async fn connect(&self, bench: &Bench) {
        let connected = self.all.iter().step_by(CONNECTED_EVERY).enumerate();
        let connections: Vec<_> = connected
            .map(|(place, user)| Connection {
                id: format!("connection-{place}"),
                pod: EDGE_PODS[place % EDGE_PODS.len()].to_owned(),
                user: *user,
            })
            .collect();
        bench.stores.sets.connections.register(&connections, CONNECTED_MS, 1).await.expect("connections");
    }
}

async fn make_home(bench: &Bench, reader: UserId) {
    let homes = &bench.stores.sets.homes;
    let Build::Mine(token) = homes.begin_build(reader).await.expect("a build") else { panic!("there is a home") };
    assert!(homes.finish_build(reader, token, &[], Coverage::TO_THE_BEGINNING, &[]).await.expect("a home"));
}
