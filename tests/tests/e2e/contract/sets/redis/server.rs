//! A server of a test's own, which goes away and comes back; and servers that cannot be used.

use std::{
    net::TcpListener,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use bytes::Bytes;
use proto::event::Topic;
use store::{
    Error, OpenError, Shard,
    event_log::Lane,
    sets::{Build, Coverage, PodPosition, Sets},
};
use tests::{
    Pods, Sandbox,
    servers::{self, Adapter, unique_name},
    tools, wait,
};
use tokio::process::{Child, Command};

use super::super::{ALL, build, entry, home, soon, to, user};

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// It loads what the folder holds of an earlier one.
fn start(port: u16, folder: &Path) -> Child {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
    command.arg("--dir").arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.kill_on_drop(true).spawn().expect("redis-server starts")
}

async fn open(url: &str, authority: &str) -> Result<Sets, OpenError> {
    let settings = [
        ("stores.sets", url.to_owned()),
        ("stores.sets_ca", authority.to_owned()),
        ("stores.namespace", unique_name()),
    ];
    servers::config(&settings).open_sets(&servers::parts()).await
}

fn is_unavailable<T: std::fmt::Debug>(answer: Result<T, Error>) -> bool {
    match answer {
        Ok(_) => false,
        Err(Error::Unavailable { .. }) => true,
        Err(other) => panic!("a server that is away is unavailable, not: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sets_come_back_after_the_server_was_restarted() {
    if tools::on_path("redis-server").is_none() {
        return;
    }
    let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let mut server = start(port, folder.path());
    let sets = wait::until("redis-server", async || open(&format!("redis://127.0.0.1:{port}"), "").await.ok()).await;
    build(&sets, user(1), &[entry(1, 0)], Coverage::TO_THE_BEGINNING).await;
    sets.pod_streams.send("here", &[Bytes::from_static(b"before")]).await.unwrap();
    sets.pod_streams.send("here", &[Bytes::from_static(b"before")]).await.unwrap();
    let heard = sets.pod_streams.receive("here", PodPosition::default()).await.unwrap().position;

    let waiting = sets.pod_streams.receive("here", heard);
    let (told, _) = futures_util::join!(wait::within("the end of the wait", waiting), server.kill());
    assert!(is_unavailable(told));
    let asked = Instant::now();
    assert!(is_unavailable(sets.homes.push(&to(&[user(1)], entry(2, 0)), soon()).await));
    assert!(is_unavailable(sets.homes.page(user(1), None, ALL).await));
    assert!(asked.elapsed() < Duration::from_secs(8), "it took {:?} to say so", asked.elapsed());

    let _server = start(port, folder.path());
    wait::until("the sets", async || sets.homes.page(user(1), None, ALL).await.ok()).await;
    assert!(matches!(sets.homes.begin_build(user(1)).await.unwrap(), Build::Mine(_)), "its memory was lost");
    build(&sets, user(2), &[], Coverage::TO_THE_BEGINNING).await;
    sets.homes.push(&to(&[user(2)], entry(3, 0)), soon()).await.unwrap();
    assert_eq!(home(&sets, user(2)).await, [entry(3, 0)]);
    sets.pod_streams.send("here", &[Bytes::from_static(b"after")]).await.unwrap();
    let told = wait::within("a message", sets.pod_streams.receive("here", heard)).await.unwrap();
    assert_eq!((told.deliveries, told.missed), (vec![Bytes::from_static(b"after")], true));
}

/// A connection that was closed while nobody asked anything is no reason to fail the next call.
#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_restart_is_not_noticed() {
    if tools::on_path("redis-server").is_none() {
        return;
    }
    let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let url = format!("redis://127.0.0.1:{port}");
    let mut server = start(port, folder.path());
    let sets = wait::until("redis-server", async || open(&url, "").await.ok()).await;
    build(&sets, user(1), &[], Coverage::TO_THE_BEGINNING).await;
    server.kill().await.expect("redis-server ends");
    let _server = start(port, folder.path());
    wait::until("redis-server", async || open(&url, "").await.ok()).await;
    build(&sets, user(1), &[], Coverage::TO_THE_BEGINNING).await;
}

async fn signal(server: &Child, name: &str) {
    let id = server.id().expect("a running server").to_string();
    let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await.expect("kill runs");
    assert!(sent.success(), "kill -{name} {id}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_holds_nobody_up_for_long() {
    if tools::on_path("redis-server").is_none() {
        return;
    }
    let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let server = start(port, folder.path());
    let sets = wait::until("redis-server", async || open(&format!("redis://127.0.0.1:{port}"), "").await.ok()).await;
    build(&sets, user(1), &[], Coverage::TO_THE_BEGINNING).await;
    signal(&server, "STOP").await;
    let asked = Instant::now();
    let pushed = async { sets.homes.push(&to(&[user(1)], entry(1, 0)), soon()).await };
    let (pushed, read) = futures_util::join!(pushed, sets.homes.page(user(1), None, ALL));
    assert!(is_unavailable(pushed) && is_unavailable(read));
    assert!(asked.elapsed() < Duration::from_secs(8), "it took {:?} to say so", asked.elapsed());
    signal(&server, "CONT").await;
    wait::until("the sets", async || sets.homes.page(user(1), None, ALL).await.ok()).await;
}

/// What opening says, without waiting for long.
async fn refusal(url: &str, authority: &str) -> String {
    let asked = Instant::now();
    let refused = open(url, authority).await.err().unwrap_or_else(|| panic!("{url} can be used"));
    assert!(asked.elapsed() < Duration::from_secs(10), "{url}: {:?}", asked.elapsed());
    assert!(matches!(refused, OpenError::Unusable { store: "the sets", .. }), "{refused}");
    refused.to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let port = free_port();
    for scheme in ["redis", "redis-cluster"] {
        let told = refusal(&format!("{scheme}://:hunter42@127.0.0.1:{port}"), "").await;
        assert!(told.contains("the sets") && told.contains(&format!("127.0.0.1:{port}")), "{told}");
        assert!(!told.contains("hunter42"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_kind_is_refused() {
    let data = tempfile::tempdir().expect("a folder");
    let Some(single) = servers::settings(&[Adapter::Redis], data.path()).await else { return };
    let Some(tls) = servers::settings(&[Adapter::RedisTls], data.path()).await else { return };
    let Some(cluster) = servers::settings(&[Adapter::RedisCluster], data.path()).await else { return };
    let [single, tls, cluster] = [single, tls, cluster].map(|settings| {
        let url = settings.into_iter().find(|(key, _)| *key == "stores.sets").map(|(_, url)| url).expect("a URL");
        url.split_once("://").and_then(|(_, places)| places.split(',').next()).expect("a place").to_owned()
    });
    let told = refusal(&format!("redis://{cluster}"), "").await;
    assert!(told.contains("redis-cluster://"), "{told}");
    refusal(&format!("redis-cluster://{single}"), "").await;
    refusal(&format!("redis://{tls}"), "").await;
    // Signed by an authority that nobody trusts unless told to.
    let told = refusal(&format!("rediss://{tls}"), "").await;
    assert!(told.to_lowercase().contains("certificate"), "{told}");
    let told = refusal(&format!("rediss://{tls}"), "/nonexistent/ca.pem").await;
    assert!(told.contains("/nonexistent/ca.pem"), "{told}");
}

const LANE: Lane = Lane { topic: Topic::Posts, shard: Shard(3) };

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_with_an_old_copy_tells_what_it_lacks() {
    if tools::on_path("redis-server").is_none() {
        return;
    }
    let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let mut server = start(port, folder.path());
    let sets = wait::until("redis-server", async || open(&format!("redis://127.0.0.1:{port}"), "").await.ok()).await;
    let progress = &sets.progress;
    assert_eq!(progress.note(LANE, None).await.unwrap(), None);
    assert_eq!(progress.note(LANE, Some(5)).await.unwrap(), None);
    let saved = Command::new("redis-cli").args(["-p", &port.to_string(), "SAVE"]).output().await.expect("redis-cli");
    assert_eq!(String::from_utf8_lossy(&saved.stdout).trim(), "OK");
    assert_eq!(progress.note(LANE, Some(9)).await.unwrap(), None);

    server.kill().await.expect("a dead server");
    let _server = start(port, folder.path());
    let back = wait::until("the server", async || progress.note(LANE, Some(9)).await.ok()).await;
    assert_eq!(back, Some(5));
    // Until somebody has gone back, whoever asks is told.
    assert_eq!(progress.note(LANE, None).await.unwrap(), Some(5));
    progress.accept(LANE).await.unwrap();
    assert_eq!(progress.note(LANE, Some(6)).await.unwrap(), None);
    assert_eq!(progress.note(LANE, None).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_forgot_is_applied_again() {
    if tools::on_path("redis-server").is_none() {
        return;
    }
    let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let mut server = start(port, folder.path());
    let url = format!("redis://127.0.0.1:{port}");
    wait::until("redis-server", async || open(&url, "").await.ok()).await;
    let world = Sandbox::with_settings(Pods::ONE, &[("stores.sets", &url)]).await;
    world.expect_error("the sets");
    let [ada, lin] = world.people(["ada", "lin"]).await;
    ada.follow(&lin).await;
    let first = lin.post("first").await;
    ada.home_shows(&[&first]).await;
    let noted = async || {
        let keys =
            Command::new("redis-cli").args(["-p", &port.to_string(), "KEYS", "*applied:*"]).output().await.ok()?;
        (!keys.stdout.trim_ascii().is_empty()).then_some(())
    };
    wait::until("a note of how far it is", noted).await;
    Command::new("redis-cli").args(["-p", &port.to_string(), "SAVE"]).output().await.expect("redis-cli");
    let second = lin.post("second").await;
    ada.home_shows(&[&second, &first]).await;

    server.kill().await.expect("a dead server");
    let _server = start(port, folder.path());
    wait::until("redis-server", async || open(&url, "").await.ok()).await;
    // The home that came back is of before the second post, and says that it is complete.
    ada.home_shows(&[&second, &first]).await;
    let third = lin.post("third").await;
    ada.home_shows(&[&third, &second, &first]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mute_whose_sets_are_away_is_unavailable_and_a_retry_finishes_it() {
    if tools::on_path("redis-server").is_none() {
        return;
    }
    let (folder, port) = (tempfile::tempdir().expect("a folder"), free_port());
    let mut server = start(port, folder.path());
    let url = format!("redis://127.0.0.1:{port}");
    wait::until("redis-server", async || open(&url, "").await.ok()).await;
    // Without a relay: nobody else tells the sets.
    let world = Sandbox::with_settings(Pods { relay: 0, ..Pods::ONE }, &[("stores.sets", &url)]).await;
    world.expect_error("the sets");
    let [ada, lin, max] = world.people(["ada", "lin", "max"]).await;
    for author in [&lin, &max] {
        ada.follow(author).await;
        author.post("hello").await;
    }
    assert_eq!(ada.scrolls_home(200).await.len(), 2);
    Command::new("redis-cli").args(["-p", &port.to_string(), "SAVE"]).output().await.expect("redis-cli");
    server.kill().await.expect("a dead server");

    let [of_lin, of_max] = [&lin, &max].map(|author| author.id.to_string());
    for refused in [ada.tries_to_mute(&of_lin, None).await, ada.tries_to_unfollow(&of_max).await] {
        assert_eq!(refused.expect_err("no sets").reason(), chassis::Reason::Unavailable);
    }
    let _server = start(port, folder.path());
    wait::until("redis-server", async || open(&url, "").await.ok()).await;
    // The home that came back knows nothing of it, and the ledger has nothing to change any more.
    wait::until("the retry", async || ada.tries_to_mute(&of_lin, None).await.ok()).await;
    ada.tries_to_unfollow(&of_max).await.expect("no follow");
    assert_eq!(ada.scrolls_home(200).await, Vec::<String>::new());
    let mut relayed = world;
    relayed.add_relay().await;
}
