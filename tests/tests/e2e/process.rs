//! A real `freshet dev` process: what it keeps when it is killed, and how it refuses to start.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use chassis::token::Caller;
use proto::freshet::{
    post::v1::{CreatePostRequest, Post},
    timeline::v1::GetHomeTimelineRequest,
    user::v1::{FollowRequest, SignUpRequest},
};
use tests::{Dev, Stream, grpc::Client, person::PASSWORD, stream::sign_in, wait};

use crate::BINARY;

/// Far longer than a post takes to the stream when nothing holds it.
const SOON: Duration = Duration::from_secs(2);

async fn client(process: &Dev) -> Client {
    Client::new(process.address("timeline").await, process.keyring(), Caller::Service("tests".into()))
}

async fn sign_up(client: &Client, handle: &str) -> String {
    let request = SignUpRequest { handle: handle.into(), password: PASSWORD.into(), ..SignUpRequest::default() };
    client.sign_up(request).await.expect("an account").user.expect("a user").id
}

async fn follow(client: &Client, follower: &str, followee: &str) {
    let request = FollowRequest { follower_id: follower.into(), followee_id: followee.into() };
    client.follow(request).await.expect("a follow");
}

async fn post(client: &Client, author: &str, text: &str) -> Post {
    let request = CreatePostRequest { author_id: author.into(), text: text.into(), ..CreatePostRequest::default() };
    client.create_post(request).await.expect("a post").post.expect("a post")
}

async fn home(client: &Client, reader: &str) -> Vec<String> {
    let request = GetHomeTimelineRequest { reader_id: reader.into(), limit: Some(200), max_id: None };
    let page = client.get_home_timeline(request).await.expect("a page");
    page.entries.into_iter().map(|entry| entry.id).collect()
}

async fn stream(process: &Dev, handle: &str) -> Stream {
    let edge = process.address("edge").await;
    let cookie = sign_in(edge, handle, PASSWORD).await.expect("a session");
    Stream::open(edge, &cookie).await.expect("a stream")
}

/// A process that is held at a failpoint with one answered post under way, and the ids of ada, who follows lin.
struct Held {
    folder: tempfile::TempDir,
    process: Dev,
    armed: String,
    ada: String,
    lin: String,
    answered: Post,
    /// Posts before that one, newest first.
    earlier: Vec<String>,
    adas_stream: Stream,
}

impl Held {
    async fn at(failpoint: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let gate = folder.path().join("gate");
        let armed = format!("{failpoint}=hold:{}", gate.display());
        let process = Dev::start(BINARY, &folder.path().join("data"), &[], &armed);
        let calls = client(&process).await;
        let (ada, lin) = (sign_up(&calls, "ada").await, sign_up(&calls, "lin").await);
        follow(&calls, &ada, &lin).await;
        assert_eq!(home(&calls, &ada).await, Vec::<String>::new());
        let adas_stream = stream(&process, "ada").await;
        std::fs::write(&gate, "").expect("the gate is shut");
        let answered = post(&calls, &lin, "answered").await;
        process.prints(&format!("failpoint {failpoint} reached")).await;
        Self { folder, process, armed, ada, lin, answered, earlier: Vec::new(), adas_stream }
    }

    /// Held where ada's stream has shown the answered post already. What came to the failpoint first may have been an
    /// earlier event, with the post still behind it: then that one is let through, and another post is tried.
    async fn after_it_was_shown(failpoint: &str) -> Self {
        let mut held = Self::at(failpoint).await;
        let calls = client(&held.process).await;
        while tokio::time::timeout(SOON, held.adas_stream.shows_next(&held.answered)).await.is_err() {
            held.open_gate();
            held.adas_stream.shows_next(&held.answered).await;
            std::fs::write(held.folder.path().join("gate"), "").expect("the gate is shut");
            let next = post(&calls, &held.lin, "answered too").await;
            held.earlier.insert(0, std::mem::replace(&mut held.answered, next).id);
        }
        held
    }

    fn restart(&self) -> Dev {
        Dev::start(BINARY, &self.folder.path().join("data"), &[], &self.armed)
    }

    fn open_gate(&self) {
        std::fs::remove_file(self.folder.path().join("gate")).expect("the gate is open");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_commit_and_publish_loses_nothing_and_repeats_nothing() {
    let mut held = Held::at("relay.before_publish").await;
    held.process.kill_now().await;

    // Still held, so that the stream is open before the post is on its way.
    let mut process = held.restart();
    let calls = client(&process).await;
    let mut stream = stream(&process, "ada").await;
    held.open_gate();

    stream.shows_next(&held.answered).await;
    let marker = post(&calls, &held.lin, "what comes next").await;
    stream.shows_next(&marker).await;
    assert_eq!(home(&calls, &held.ada).await, [marker.id, held.answered.id]);
    assert_eq!(process.terminate().await, Some(0));
}

/// Published already, so ada's stream has shown it; it is published or applied again after the restart.
async fn killed_after_it_was_shown(failpoint: &str) {
    let mut held = Held::after_it_was_shown(failpoint).await;
    held.process.kill_now().await;

    let mut process = held.restart();
    held.open_gate();
    let calls = client(&process).await;
    let mut stream = stream(&process, "ada").await;
    let marker = post(&calls, &held.lin, "what comes next").await;
    wait::until("the marker at home", async || {
        let expected = [&[marker.id.clone(), held.answered.id.clone()], held.earlier.as_slice()].concat();
        (home(&calls, &held.ada).await == expected).then_some(())
    })
    .await;
    // What was not committed may come to the new stream, which has not shown it yet; nothing may come twice.
    let (mut shown, mut seen) = (stream.next().await.expect("an event"), Vec::new());
    while shown.data["id"] != marker.id {
        seen.push(shown);
        shown = stream.next().await.expect("an event");
    }
    let shown: Vec<_> = seen.iter().map(|event| event.data["id"].as_str().unwrap_or_default()).collect();
    let repeated = shown.iter().enumerate().any(|(place, id)| shown[..place].contains(id));
    let known = |id: &&str| *id == held.answered.id || held.earlier.iter().any(|earlier| earlier == id);
    assert!(!repeated && shown.iter().all(known), "{seen:?}");
    assert_eq!(process.terminate().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_publish_and_outbox_repeats_nothing() {
    killed_after_it_was_shown("relay.before_remove").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_between_effect_and_offset_repeats_nothing() {
    killed_after_it_was_shown("consumer.before_commit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_accounts_posts_and_timelines_and_is_quick() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Dev::start(BINARY, folder.path(), &[], "");
    let calls = client(&process).await;
    let (ada, lin) = (sign_up(&calls, "ada").await, sign_up(&calls, "lin").await);
    follow(&calls, &ada, &lin).await;
    let before = post(&calls, &lin, "before").await;
    wait::until("the home", async || (home(&calls, &ada).await == [before.id.clone()]).then_some(())).await;
    assert_eq!(process.terminate().await, Some(0));

    let began = Instant::now();
    let mut process = Dev::start(BINARY, folder.path(), &[], "");
    let calls = client(&process).await;
    let took = began.elapsed();
    assert_eq!(home(&calls, &ada).await, std::slice::from_ref(&before.id));
    assert!(took.as_secs_f64() < 1.0, "a warm start took {took:?}");
    let after = post(&calls, &lin, "after").await;
    assert!(after.id.parse::<i64>().unwrap() > before.id.parse::<i64>().unwrap());
    wait::until("the home", async || (home(&calls, &ada).await == [after.id.clone(), before.id.clone()]).then_some(()))
        .await;
    assert_eq!(process.terminate().await, Some(0));

    let process = Dev::start(BINARY, folder.path(), &["--fresh"], "");
    let calls = client(&process).await;
    assert_ne!(sign_up(&calls, "ada").await, ada, "a fresh folder knows nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_on_the_same_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Dev::start(BINARY, folder.path(), &[], "");
    first.prints("is up after").await;
    for arguments in [&[][..], &["--fresh"]] {
        let mut second = Dev::start(BINARY, folder.path(), arguments, "");
        assert_eq!(second.ends().await, Some(1));
        let told = second.prints("is in use by another freshet process").await;
        assert!(told.contains(&folder.path().display().to_string()), "{told}");
    }
    sign_up(&client(&first).await, "ada").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named_before_any_data_is_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address");
    let data = folder.path().join("data");
    let mut process = Dev::start(BINARY, &data, &["--set", &format!("ranking.listen={address}")], "");
    assert_eq!(process.ends().await, Some(1));
    let told = process.prints("cannot listen on").await;
    assert!(told.contains(&address.to_string()) && told.contains("ranking.listen"), "{told}");
    assert!(!data.exists());
}
