//! The operator's commands.

use std::{path::Path, process::Command};

use chassis::{Clock as _, clock, failpoint};
use proto::{
    EventId, PostId, UserId,
    event::Topic,
    freshet::event::v1::{PostCreated, UserCreated, envelope::Payload},
    id::{EPOCH_UNIX_MS, SEQUENCE_BITS, WRITER_BITS},
};
use store::{
    Shard,
    event_log::{Received, Record},
    ledger::{
        Event, Ledger, NewAccount, NewPost,
        dead_letters::{Cause, NewLetter},
    },
    migrate::Mode,
};
use tests::servers::{self, Adapter};

use crate::BINARY;

struct Ran {
    ok: bool,
    out: String,
    err: String,
}

fn run(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let output = Command::new(BINARY)
        .args(arguments)
        .current_dir(folder)
        .envs(environment.iter().copied())
        .output()
        .expect("freshet runs");
    Ran {
        ok: output.status.success(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

#[test]
fn config_shows_what_counts_and_where_it_comes_from() {
    let folder = tempfile::tempdir().expect("a folder");
    let secret = "A".repeat(43);
    std::fs::write(folder.path().join("f.toml"), format!("edge.heartbeat = \"20s\"\nauth.keys = \"k:{secret}\"\n"))
        .unwrap();
    let environment = [("FRESHET_CONFIG", "f.toml"), ("FRESHET_GRPC_DEADLINE_MAX", "3s")];
    let ran = run(folder.path(), &environment, &["config", "edge", "--set", "edge.listen=127.0.0.1:9"]);
    assert!(ran.ok, "{}", ran.err);
    for line in [
        "edge.heartbeat = \"20s\"  # file f.toml",
        "grpc.deadline_max = \"3s\"  # environment FRESHET_GRPC_DEADLINE_MAX",
        "edge.listen = \"127.0.0.1:9\"  # flag --set",
        "edge.cookie_secure = \"true\"  # default",
        "auth.keys = \"(redacted)\"  # file f.toml",
    ] {
        assert!(ran.out.contains(line), "{line:?} is missing in:\n{}", ran.out);
    }
    assert!(!ran.out.contains(&secret));
    assert!(!ran.out.contains("ranking."), "another role's keys:\n{}", ran.out);
}

#[test]
fn what_config_prints_can_be_used_as_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let printed = run(folder.path(), &[], &["config", "--set", "edge.heartbeat=20s"]).out;
    let usable: String =
        printed.lines().filter(|line| !line.starts_with("auth.keys")).map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.path().join("f.toml"), usable).unwrap();
    let again = run(folder.path(), &[], &["config", "--config", "f.toml"]);
    assert!(again.ok, "{}", again.err);
    assert!(again.out.contains("edge.heartbeat = \"20s\"  # file f.toml"), "{}", again.out);
}

#[test]
fn every_problem_of_a_config_is_told_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let environment = [("FRESHET_EDGE_HEARTBAET", "1s"), ("FRESHET_STORES_LEDGER", "mysql://here")];
    let ran = run(folder.path(), &environment, &["dev", "--set", "stores.shards=0", "--set", "edge.listen=here"]);
    assert!(!ran.ok);
    for part in [
        "4 problems",
        "stores.shards = \"0\" (by flag --set): must be a whole number from 1 to 1024",
        "edge.listen = \"here\" (by flag --set): must be an IP address and a port",
        "stores.ledger = \"mysql://here\" (by environment FRESHET_STORES_LEDGER): must be sqlite://",
        "FRESHET_EDGE_HEARTBAET: there is no such key; did you mean edge.heartbeat?",
    ] {
        assert!(ran.err.contains(part), "{part:?} is missing in:\n{}", ran.err);
    }
    assert!(!folder.path().join("freshet-data").exists(), "nothing was made");
}

#[test]
fn a_token_needs_a_caller_and_a_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let without_key = run(folder.path(), &[], &["token", "--service", "me"]);
    assert!(!without_key.ok && without_key.err.contains("there is no token key"), "{}", without_key.err);

    let keys = format!("k:{}", "A".repeat(43));
    let environment = [("FRESHET_AUTH_KEYS", keys.as_str())];
    for caller in [["--service", "me"], ["--user", "42"]] {
        let ran = run(folder.path(), &environment, &["token", caller[0], caller[1]]);
        assert!(ran.ok && ran.out.trim().split('.').count() == 3, "{} {}", ran.out, ran.err);
    }
    for arguments in [&["token"][..], &["token", "--user", "ada"], &["token", "--service", "me", "--ttl", "2d"]] {
        let ran = run(folder.path(), &environment, arguments);
        assert!(!ran.ok && ran.out.is_empty(), "{arguments:?}: {}", ran.out);
    }
}

#[test]
fn a_role_that_cannot_run_alone_says_what_it_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = format!("k:{}", "A".repeat(43));
    let nobody_listens = [
        ("FRESHET_STORES_LEDGER", "postgres://ada:hunter42@127.0.0.1:1/freshet"),
        ("FRESHET_STORES_SETS", "redis://127.0.0.1:1"),
        ("FRESHET_STORES_EVENTS", "kafka://127.0.0.1:1"),
        ("FRESHET_STORES_ARCHIVE", "scylla://127.0.0.1:1"),
        ("FRESHET_AUTH_KEYS", &keys),
    ];
    let without_keys = &nobody_listens[..4];
    for (role, environment, told) in [
        ("relay", &[][..], "set stores.ledger, stores.sets, stores.events"),
        ("edge", &[], "set stores.sets"),
        ("ranking", without_keys, "set auth.keys"),
        ("timeline", &nobody_listens, "cannot use the ledger at postgres://ada:(redacted)@127.0.0.1:1/freshet"),
        ("edge", &nobody_listens, "cannot use the sets at redis://127.0.0.1:1"),
        ("migrate", &nobody_listens, "cannot use the ledger"),
    ] {
        let listen = format!("{role}.listen=127.0.0.1:0");
        let arguments = if role == "migrate" { vec![role] } else { vec![role, "--set", &listen] };
        let ran = run(folder.path(), environment, &arguments);
        assert!(!ran.ok && ran.err.contains(told), "{role}: {told:?} is missing in:\n{}", ran.err);
        assert!(!ran.err.contains("hunter42"), "{}", ran.err);
    }
    assert!(!folder.path().join("freshet-data").exists(), "nothing was made");
}

/// A ledger in this folder with a dead letter, and one that waits behind it.
async fn with_dead_letters(folder: &Path) {
    let ledger = format!("sqlite://{}", folder.join("freshet.db").display());
    let config = servers::config(&[("stores.ledger", ledger)]);
    let parts = servers::parts();
    let ledger = config.open_ledger(&parts).await.expect("a ledger");
    for (position, cause) in [(1, Cause::BrokenRule), (2, Cause::Parked)] {
        let record = Record {
            topic: Topic::Posts,
            partition: Shard(0),
            key: "4242".to_owned(),
            kind: "post.created".to_owned(),
            payload: vec![255].into(),
            traceparent: String::new(),
            epoch: 1,
        };
        let event = Received { record, position, logged_at_ms: 0 };
        let (error, pod) = (format!("error {position} \u{1b}[2J"), "relay-1");
        let letter = NewLetter { group: "relay", event: &event, cause, error, attempts: 1, pod };
        ledger.dead_letters.bury(&letter).await.expect("a letter");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_looked_at_counted_discarded_and_accounted_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    with_dead_letters(&data).await;
    let told = |arguments: &[&str]| {
        let ran = run(folder.path(), &[], &[&["deadletters", "--data", "data"], arguments].concat());
        assert!(ran.ok, "{arguments:?}: {}", ran.err);
        ran.out
    };
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();

    let list = told(&["list"]);
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(words(lines[0]), ["id", "age", "group", "topic", "type", "key", "cause", "tries", "error"]);
    assert_eq!(
        words(lines[1])[2..],
        ["relay", "posts", "post.created", "4242", "broken_rule", "1", "error", "1", "\\u{1b}[2J"]
    );
    assert_eq!((words(lines[2])[6].as_str(), lines[3]), ("parked", "2 of 2 letters"));
    assert!(told(&["list", "--cause", "parked", "--topic", "posts", "--older-than", "1h"]).contains("0 of 0 letters"));
    assert!(told(&["list", "--error", "error 2", "--newer-than", "1h"]).contains("1 of 1 letters"));
    let letter = told(&["show", "1"]);
    assert!(letter.contains("cause       broken_rule") && letter.contains("payload     ff"), "{letter}");
    assert_eq!(
        words(told(&["group"]).lines().nth(1).expect("a line"))[..5],
        ["1", "relay", "posts", "post.created", "broken_rule"]
    );

    assert!(told(&["redrive", "--all", "--dry-run"]).contains("would drive 2 letters again"));
    assert!(
        told(&["redrive", "1", "--no-wait", "--as", "ada"]).contains("1 letters are driven again, and 1 that wait")
    );
    assert!(told(&["discard", "--cause", "broken_rule", "--dry-run"]).contains("would discard 1 letters"));
    assert!(told(&["discard", "--cause", "broken_rule", "--as", "lin"]).contains("discarded 1 letters"));
    let audit = told(&["audit"]);
    assert!(audit.contains("lin  discard --cause broken_rule: 1 letters"), "{audit}");
    assert!(audit.contains("ada  redrive 1: 1 letters"), "{audit}");

    for (arguments, cause) in [
        (&["redrive"][..], "say which letters"),
        (&["discard"], "say which letters"),
        (&["show", "99"], "there is no dead letter 99"),
        (&["list", "--topic", "gossip"], "must be one of users, graph, posts, likes"),
        (&["list", "--cause", "boredom"], "must be one of undecodable"),
    ] {
        let ran = run(folder.path(), &[], &[&["deadletters", "--data", "data"], arguments].concat());
        assert!(!ran.ok && ran.err.contains(cause), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn an_archive_in_the_ledger_has_nothing_to_rebuild() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = run(folder.path(), &[], &["rebuild", "archive"]);
    assert!(ran.ok && ran.out.contains("there is nothing to rebuild"), "{} {}", ran.out, ran.err);
    assert!(!folder.path().join("freshet-data").exists(), "nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_of_the_archive_goes_on_where_it_was_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(settings) = servers::settings(&[Adapter::Cassandra], folder.path()).await else { return };
    let config = servers::config(&settings);
    config.migrate(Mode::Apply).await.expect("a migration");
    let ledger = config.open_ledger(&servers::parts()).await.expect("a ledger");
    write_posts(&ledger, 600).await;
    // The data folder is one process's at a time.
    drop(ledger);

    let named =
        |(key, value): &(&str, String)| (format!("FRESHET_{}", key.to_uppercase().replace('.', "_")), value.clone());
    let environment: Vec<_> = settings.iter().map(named).collect();
    let environment = |failpoints: &'static str| {
        let named = environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        named.chain((!failpoints.is_empty()).then_some((failpoint::VARIABLE, failpoints))).collect::<Vec<_>>()
    };
    // Two chunks of posts and one of follows: each process dies after one, and the fourth finds all of it done.
    for begins_at in ["", "posts, 500 of about 600 rows", "follows, 600 of about 600 rows"] {
        let killed = run(folder.path(), &environment("fill.after_chunk=kill"), &["rebuild", "archive"]);
        assert!(!killed.ok && killed.out.contains(begins_at), "{begins_at:?}: {} {}", killed.out, killed.err);
    }
    let last = run(folder.path(), &environment("fill.after_chunk=kill"), &["rebuild", "archive"]);
    assert!(last.ok && last.out.contains("is complete: 600 rows"), "{} {}", last.out, last.err);

    let again = run(folder.path(), &environment(""), &["rebuild", "archive", "--again"]);
    assert!(again.ok && again.out.contains("is filled again"), "{} {}", again.out, again.err);
    assert!(again.out.contains("posts, 0 of about 600 rows"), "{}", again.out);
    assert!(again.out.contains("is complete: 600 rows"), "{}", again.out);
}

async fn write_posts(ledger: &Ledger, posts: i64) {
    let author = UserId::new(1).expect("an id");
    // Minted now: the ledger takes no other.
    let event_id = |number| {
        let now = (clock::System.unix_ms() - EPOCH_UNIX_MS) << (WRITER_BITS + SEQUENCE_BITS);
        EventId::new(now + number).expect("an id")
    };
    let account = NewAccount {
        id: author,
        handle: "ada".to_owned(),
        display_name: "Ada".to_owned(),
        email: None,
        password_hash: "none".to_owned(),
    };
    let compose = |_: &_| Payload::UserCreated(UserCreated { user_id: "1".to_owned(), ..UserCreated::default() });
    ledger.accounts.create(account, Event { id: event_id(1), compose: &compose }).await.expect("an account");
    let compose = |_: &_| Payload::PostCreated(PostCreated { author_id: "1".to_owned(), ..PostCreated::default() });
    for number in 1..=posts {
        let (id, text) = (PostId::new(number << 22).expect("an id"), "short".to_owned());
        let post = NewPost::of_text(id, author, &text);
        ledger.posts.create(post, Event { id: event_id(1 + number), compose: &compose }).await.expect("a post");
    }
}
