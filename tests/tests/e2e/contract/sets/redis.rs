//! What only sets on a server can live through: lost keys, forgotten scripts, a restart, a server that is not there.

mod server;

use bytes::Bytes;
use proto::event::Topic;
use store::{
    Shard,
    event_log::Lane,
    sets::{
        Connection, Coverage, FOLLOWED_KEPT_MS, FollowVersion, HOME_MEMBERS_MAX, PodPosition, Push, Session,
        SessionHash, Sets,
    },
};
use tests::{
    servers::{self, Adapter},
    tools,
};
use tokio::process::Command;

use super::{ALL, build, entry, home, merge, now_ms, soon, to, user};

store_contract!(open: [
    redis = tests::servers::Adapter::Redis,
    redis_tls = tests::servers::Adapter::RedisTls,
    redis_cluster = tests::servers::Adapter::RedisCluster,
] {
    a_home_never_outgrows_the_small_form,
    scripts_are_known_again_after_the_server_forgot_them,
    a_lost_stream_is_told_as_missed,
    a_lost_registry_is_told_as_new,
    half_a_hot_list_is_not_complete_and_can_be_filled_again,
    a_home_without_its_sentinel_is_built_again,
    a_home_without_the_states_of_its_authors_is_built_again,
    old_follows_are_forgotten,
    homes_that_nothing_is_known_of_are_dropped,
    lost_sessions_are_gone_and_a_lost_list_of_them_is_made_again,
});

/// Sets on a server, and the server's own client.
struct Served {
    sets: Sets,
    /// Its arguments, for each node.
    nodes: Vec<Vec<String>>,
    namespace: String,
}

async fn open(adapter: Adapter) -> Option<Served> {
    tools::on_path("redis-cli")?;
    let data = tempfile::tempdir().expect("a folder");
    let settings = servers::settings(&[adapter], data.path()).await?;
    let setting = |key: &str| settings.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone());
    let url = setting("stores.sets").expect("a server");
    let (_, addresses) = url.split_once("://").expect("a URL");
    let node = |address: &str| {
        let (host, port) = address.split_once(':').expect("a host and a port");
        let mut arguments = vec!["-c", "-h", host, "-p", port].into_iter().map(str::to_owned).collect::<Vec<_>>();
        if let Some(authority) = setting("stores.sets_ca") {
            arguments.extend(["--tls".to_owned(), "--cacert".to_owned(), authority]);
        }
        arguments
    };
    Some(Served {
        sets: servers::config(&settings).open_sets(&servers::parts()).await.expect("sets"),
        nodes: addresses.split(',').map(node).collect(),
        namespace: setting("stores.namespace").expect("a namespace"),
    })
}

impl Served {
    /// Tells one node something, and gives its answer's lines.
    async fn tell(&self, node: &[String], command: &[&str]) -> Vec<String> {
        let output = Command::new("redis-cli").args(node).args(command).output().await.expect("redis-cli runs");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
    }

    /// This test's own keys that begin like this.
    async fn keys(&self, beginning: &str) -> Vec<String> {
        let pattern = format!("{}:{beginning}*", self.namespace);
        let mut keys = Vec::new();
        for node in &self.nodes {
            keys.extend(self.tell(node, &["--scan", "--pattern", &pattern]).await);
        }
        keys.retain(|key| !key.is_empty());
        keys
    }

    async fn ask(&self, command: &[&str]) -> String {
        self.tell(&self.nodes[0], command).await.concat()
    }

    /// Takes this test's own keys that begin like this away.
    async fn lose(&self, beginning: &str) {
        let keys = self.keys(beginning).await;
        assert!(!keys.is_empty(), "there is nothing to lose");
        for key in keys {
            assert_eq!(self.ask(&["DEL", &key]).await, "1");
        }
    }
}

async fn a_home_never_outgrows_the_small_form(served: Served) {
    let reader = user(1);
    build(&served.sets, reader, &super::shuffled(200), Coverage::TO_THE_BEGINNING).await;
    for ms in 0..300 {
        served.sets.homes.push(&to(&[reader], entry(1000 + ms, 0)), soon()).await.unwrap();
        served.sets.recents.push(&[entry(ms, 0)]).await.unwrap();
    }
    served.sets.homes.push(&[Push { reader, entries: super::shuffled(300) }], soon()).await.unwrap();
    served.sets.recents.push(&super::shuffled(300)).await.unwrap();
    merge(&served.sets, reader, &super::shuffled(400), Coverage::TO_THE_BEGINNING).await;
    let keys = [served.keys("timeline:home").await, served.keys("recent:").await].concat();
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in keys {
        // A set that was too large for a moment would be a skiplist for good.
        assert_eq!(served.ask(&["OBJECT", "ENCODING", &key]).await, "listpack");
        assert!(served.ask(&["ZCARD", &key]).await.parse::<usize>().unwrap() <= HOME_MEMBERS_MAX);
    }
}

async fn scripts_are_known_again_after_the_server_forgot_them(served: Served) {
    build(&served.sets, user(1), &[], Coverage::TO_THE_BEGINNING).await;
    for ms in 0..3 {
        for node in &served.nodes {
            served.tell(node, &["SCRIPT", "FLUSH"]).await;
        }
        served.sets.homes.push(&to(&[user(1)], entry(ms, 0)), soon()).await.unwrap();
    }
    assert_eq!(home(&served.sets, user(1)).await, [2, 1, 0].map(|ms| entry(ms, 0)));
}

async fn a_lost_stream_is_told_as_missed(served: Served) {
    let streams = &served.sets.pod_streams;
    for _ in 0..3 {
        streams.send("here", &[Bytes::from_static(b"before")]).await.unwrap();
    }
    let before = streams.receive("here", PodPosition::default()).await.unwrap().position;
    served.lose("pod:").await;
    for _ in 0..4 {
        streams.send("here", &[Bytes::from_static(b"after")]).await.unwrap();
    }
    let told = streams.receive("here", before).await.unwrap();
    assert_eq!((told.deliveries.len(), told.missed, told.position.number), (4, true, 4));
    streams.send("here", &[Bytes::from_static(b"later")]).await.unwrap();
    let told = streams.receive("here", told.position).await.unwrap();
    assert_eq!((told.deliveries.len(), told.missed, told.position.number), (1, false, 5));
}

async fn a_lost_registry_is_told_as_new(served: Served) {
    let connections: Vec<_> =
        (1..=5).map(|reader| Connection { id: format!("c{reader}"), pod: "here".into(), user: user(reader) }).collect();
    served.sets.connections.register(&connections, 60_000, 1).await.unwrap();
    served.lose("online:").await;
    let mut new = served.sets.connections.register(&connections, 60_000, 2).await.unwrap();
    new.sort_by_key(|connection| connection.user);
    assert_eq!(new, connections);
}

async fn half_a_hot_list_is_not_complete_and_can_be_filled_again(served: Served) {
    let lists = &served.sets.hot_lists;
    let (day, post) = ("20240229", proto::PostId::new(1).unwrap());
    let likes = store::ledger::Likes { count: 1, version: 5 };
    let list = format!("{}:hot:{{{day}}}", served.namespace);
    for lost in [list.clone(), format!("{list}:versions")] {
        let fill = lists.begin_fill(day).await.unwrap();
        lists.record(day, post, likes, 3).await.unwrap();
        assert!(lists.set_complete(day, fill).await.unwrap());
        let lost_meanwhile = lists.begin_fill(day).await.unwrap();
        assert_eq!(served.ask(&["DEL", &lost]).await, "1");
        assert!(!lists.is_complete(day).await.unwrap(), "without {lost}");
        lists.record(day, post, likes, 3).await.unwrap();
        assert!(!lists.set_complete(day, lost_meanwhile).await.unwrap(), "what it had filled is gone with {lost}");
        assert!(!lists.is_complete(day).await.unwrap(), "without {lost}");
        let fill = lists.begin_fill(day).await.unwrap();
        assert!(lists.set_complete(day, fill).await.unwrap());
        assert_eq!(lists.top(day, 10).await.unwrap().len(), 1);
    }
}

async fn a_home_without_its_sentinel_is_built_again(served: Served) {
    build(&served.sets, user(1), &[entry(1, 0), entry(2, 0)], Coverage::TO_THE_BEGINNING).await;
    let [key] = served.keys("timeline:home").await.try_into().expect("one home");
    served.ask(&["ZREMRANGEBYSCORE", &key, "+inf", "+inf"]).await;
    assert_eq!(served.sets.homes.page(user(1), None, ALL).await.unwrap(), None);
    assert_eq!(served.sets.homes.coverage(user(1)).await.unwrap(), None);
    build(&served.sets, user(1), &[entry(3, 0)], Coverage::TO_THE_BEGINNING).await;
    assert_eq!(home(&served.sets, user(1)).await, [entry(3, 0)]);
}

async fn a_home_without_the_states_of_its_authors_is_built_again(served: Served) {
    let (homes, reader) = (&served.sets.homes, user(1));
    build(&served.sets, reader, &[entry(1, 0)], Coverage::TO_THE_BEGINNING).await;
    served.lose("authors:").await;
    assert_eq!(homes.page(reader, None, ALL).await.unwrap(), None, "nobody knows who is hidden");
    build(&served.sets, reader, &[entry(2, 0)], Coverage::TO_THE_BEGINNING).await;
    assert_eq!(home(&served.sets, reader).await, [entry(2, 0)]);

    // Lost in the middle of a build: it does not count.
    served.lose("timeline:home").await;
    let store::sets::Build::Mine(token) = homes.begin_build(reader).await.unwrap() else { panic!("a build") };
    served.lose("authors:").await;
    assert!(!homes.finish_build(reader, token, &[], Coverage::TO_THE_BEGINNING, &[]).await.unwrap());

    // Those of another build.
    build(&served.sets, reader, &[], Coverage::TO_THE_BEGINNING).await;
    let [key] = served.keys("authors:").await.try_into().expect("one reader");
    served.ask(&["HSET", &key, "token", "another."]).await;
    assert_eq!(homes.page(reader, None, ALL).await.unwrap(), None);
}

/// Else a reader who follows many would carry all of them in every page.
async fn old_follows_are_forgotten(served: Served) {
    let reader = user(1);
    build(&served.sets, reader, &[], Coverage::TO_THE_BEGINNING).await;
    let follow = async |author: i64, version: i64| {
        let follow = FollowVersion { reader, author: user(author), version };
        served.sets.homes.merge(follow, &[], Coverage::TO_THE_BEGINNING, soon()).await.unwrap();
    };
    let [old, new] = [FOLLOWED_KEPT_MS + 1000, 0].map(|age_ms| (super::now_ms() - age_ms) * 1000);
    for author in 100..200 {
        follow(author, if author % 2 == 0 { old } else { new }).await;
    }
    follow(200, new).await;
    let [key] = served.keys("authors:").await.try_into().expect("one reader");
    let remembered: usize = served.ask(&["HLEN", &key]).await.parse().unwrap();
    assert!((52..80).contains(&remembered), "{remembered}: the newer 51, the token, and few old ones");
}

async fn homes_that_nothing_is_known_of_are_dropped(served: Served) {
    let (progress, lane) = (&served.sets.progress, Lane { topic: Topic::Posts, shard: Shard(0) });
    assert_eq!(progress.note(lane, Some(1)).await.unwrap(), None);
    for reader in 1..100 {
        build(&served.sets, user(reader), &[entry(1, 0)], Coverage::TO_THE_BEGINNING).await;
    }
    // Another lane is new: that says nothing about the homes.
    let other = Lane { shard: Shard(1), ..lane };
    assert_eq!(progress.note(other, Some(1)).await.unwrap(), None);
    assert_eq!(progress.note(lane, Some(2)).await.unwrap(), None);
    assert_eq!(served.keys("timeline:home").await.len(), 99);

    let kept = served.keys("applied:").await.len();
    served.lose("applied:").await;
    assert_eq!(progress.note(lane, None).await.unwrap(), None);
    assert_eq!(progress.note(lane, Some(3)).await.unwrap(), None);
    assert_eq!(served.keys("timeline:home").await, Vec::<String>::new());
    assert_eq!(served.keys("authors:").await, Vec::<String>::new());
    assert_eq!(served.keys("applied:").await.len(), kept);
}

async fn lost_sessions_are_gone_and_a_lost_list_of_them_is_made_again(served: Served) {
    let (sessions, now) = (&served.sets.sessions, now_ms());
    let (phone, desk) = (SessionHash::of("phone"), SessionHash::of("desk"));
    let (device, ends_at_ms) = (String::new(), now + 7_200_000);
    // Signed in a while ago: what is listed and not there is then not taken for a session that is just being opened.
    let earlier = now - 600_000;
    let session = Session {
        user: user(7),
        device,
        created_at_ms: earlier,
        last_seen_at_ms: earlier,
        idle_ms: 3_600_000,
        ends_at_ms,
    };
    for hash in [phone, desk] {
        sessions.open(hash, session.clone()).await.unwrap();
    }
    // The list alone is lost: what is used is on it again, and can be ended.
    served.lose("sessions:").await;
    assert_eq!(sessions.of_user(user(7)).await.unwrap(), []);
    sessions.renew(phone, now).await.unwrap();
    assert_eq!(
        sessions.of_user(user(7)).await.unwrap(),
        [(phone.id(), Session { last_seen_at_ms: now, ..session.clone() })]
    );
    assert_eq!(sessions.end_all(user(7), None).await.unwrap(), 1);
    assert_eq!(sessions.find(phone).await.unwrap(), None);

    // The sessions are lost: nothing is left of them but a line that is swept up, and people sign in again.
    sessions.renew(desk, now).await.unwrap();
    served.lose("session:").await;
    assert_eq!(sessions.find(desk).await.unwrap(), None);
    assert_eq!(sessions.of_user(user(7)).await.unwrap(), []);
    assert!(served.keys("sessions:").await.is_empty(), "an empty list is none");
    sessions.open(phone, session).await.unwrap();
    assert!(sessions.find(phone).await.unwrap().is_some());
}
