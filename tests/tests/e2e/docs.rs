//! The docs work as printed, and name only what is there.

use std::{ffi::OsString, fs, net::TcpListener, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use chassis::{Random, random::System};
use tests::{
    servers,
    tools::{on_path, root, tool},
    walkthrough::{Step, Terminal, shown, steps},
};

const START: &str = "cargo run -- dev\n";
const DATA: &str = "freshet-data";
/// Each role, and where the README says that it is.
const PORTS: [(&str, &str); 4] = [
    ("edge", "127.0.0.1:7700"),
    ("timeline", "127.0.0.1:7701"),
    ("relay", "127.0.0.1:7702"),
    ("ranking", "127.0.0.1:7703"),
];
/// Where docs/running.md says that the pods are.
const CLUSTER_PORTS: [u16; 8] = [7711, 7712, 7721, 7722, 7731, 7732, 7741, 7742];
/// The first `cargo run` may have to build the product.
const START_WITHIN: Duration = Duration::from_secs(900);
/// The later ones may have to wait for another cargo.
const STEP_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn the_walk_through_works_as_printed() {
    let (Some(grpcurl), Some(_curl)) = (tool("grpcurl"), on_path("curl")) else { return };
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let steps = steps(&readme);
    let (start, walk) = steps.split_first().expect("a walk-through");
    assert_eq!(start.commands, START, "the walk-through begins by starting the product");
    let promised: String = walk.iter().flat_map(|step| &step.shows).map(String::as_str).collect();
    for essential in ["event: hello", "event: new_post", "\"entries\"", "\"likeCount\": \"1\"", "\"score\": \"3\""] {
        assert!(promised.contains(essential), "the README no longer shows {essential}");
    }

    let data = tempfile::tempdir().expect("a folder for the data");
    let mut environment = vec![("FRESHET_DATA".to_owned(), data.path().as_os_str().to_owned()), path_with(&grpcurl)];
    for (role, _) in PORTS {
        environment.push((format!("FRESHET_{}_LISTEN", role.to_uppercase()), "127.0.0.1:0".into()));
    }

    let mut first = Terminal::open(&environment).await;
    let up = Step { commands: start.commands.clone(), shows: vec!["Try it:\n".to_owned()] };
    first.runs(&up, START_WITHIN).await;
    let addresses = PORTS.map(|(role, default)| (default, first.address(role)));
    let here = |text: &String| {
        let text = text.replace(DATA, &data.path().display().to_string());
        addresses.iter().fold(text, |text, (default, address)| text.replace(default, address))
    };
    for banner in &start.shows {
        first.shows(0, &here(banner), STEP_WITHIN).await;
    }

    let mut second = Terminal::open(&environment).await;
    for step in walk {
        let step = Step { commands: here(&step.commands), shows: step.shows.iter().map(here).collect() };
        second.runs(&step, STEP_WITHIN).await;
    }
    first.interrupt();
    first.close().await;
    // Its stream has been closed by the edge: nothing is left to wait for.
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_by_hand_works_as_printed() {
    let (Some(grpcurl), Some(_curl)) = (tool("grpcurl"), on_path("curl")) else { return };
    if !servers::can_be_had() {
        return;
    }
    let page = doc("docs/running.md");
    let data = tempfile::tempdir().expect("a folder for the data");
    // PostgreSQL does not run as root: its user must be able to reach its data.
    fs::set_permissions(data.path(), fs::Permissions::from_mode(0o755)).expect("a folder that others can reach");
    // Held together until all are known, so that no two are the same.
    let free = CLUSTER_PORTS.map(|_| free_port()).map(|held| held.local_addr().expect("its address").to_string());
    let here = |text: &String| {
        let text = text.replace(DATA, &data.path().display().to_string());
        CLUSTER_PORTS
            .iter()
            .zip(&free)
            .fold(text, |text, (port, free)| text.replace(&format!("127.0.0.1:{port}"), free))
    };
    let mut terminal = Terminal::open(&[path_with(&grpcurl)]).await;
    for step in steps(&page) {
        let step = Step { commands: here(&step.commands), shows: step.shows.iter().map(here).collect() };
        terminal.runs(&step, START_WITHIN).await;
    }
    terminal.close().await;
}

/// A free port below those that outgoing connections take, so that it is still free when a pod wants it.
fn free_port() -> TcpListener {
    let range = 30_000..32_768_u16;
    let number = || (&System as &dyn Random).number() % u64::from(range.end - range.start);
    let mut tries = (0..1000).map(|_| range.start + u16::try_from(number()).unwrap_or_default());
    tries.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).expect("a free port")
}

/// The search path with a tool's folder first.
fn path_with(tool: &Path) -> (String, OsString) {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = tool.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&folders));
    ("PATH".to_owned(), std::env::join_paths(folders).expect("folders"))
}

#[test]
fn the_comparison_can_fail() {
    let printed = ["", "{", ":", "  \"id\": \"42\"", "}"].map(str::to_owned);
    assert!(shown(&printed, "{\n  \"id\": \"…\"\n}\n"));
    for other in ["{\n}\n", "{\n  \"id\": \"43\"\n", "  \"id\": \"42…\"\n", "  \"id\": \"…\",\n", "}\n{\n"] {
        assert!(!shown(&printed, other), "{other}");
    }
}

const DOCS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/benchmarks.md",
    "docs/people.md",
    "docs/running.md",
    "deploy/helm/README.md",
];

fn doc(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|one| one.is_alphanumeric() || *one == '-').collect()
}

#[test]
fn every_link_of_the_docs_leads_somewhere() {
    for name in DOCS {
        let text = doc(name);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.starts_with("http")) {
            let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { Path::new(name).to_owned() } else { Path::new(name).with_file_name(file) };
            assert!(root().join(&file).exists(), "{name} links to {target}");
            if !fragment.is_empty() {
                let linked = doc(&file.display().to_string());
                let headings = linked.lines().filter(|line| line.starts_with('#')).map(anchor);
                assert!(headings.into_iter().any(|heading| heading == fragment), "{name} links to {target}");
            }
        }
    }
}

/// In the docs, `store/src/shard.rs: Shard` is something in a file.
#[test]
fn what_the_docs_name_is_in_the_sources() {
    let mut found = 0;
    for name in DOCS {
        let text = doc(name);
        for code in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            let (path, items) = code.split_once(": ").unwrap_or((code, ""));
            let is_source = path.contains('/') && [".rs", ".proto", ".sql"].iter().any(|end| path.ends_with(end));
            if !is_source || path.contains(char::is_uppercase) {
                continue;
            }
            let source = fs::read_to_string(root().join(path)).unwrap_or_else(|_| panic!("{name} names {path}"));
            for item in items.split(", ").filter(|item| !item.is_empty()) {
                let defines = |kind: &str| {
                    source.match_indices(&format!("{kind} {item}")).any(|(at, whole)| {
                        !source[at + whole.len()..].starts_with(|next: char| next.is_alphanumeric() || next == '_')
                    })
                };
                let kinds = ["fn", "struct", "enum", "trait", "const", "type", "message", "rpc"];
                assert!(kinds.into_iter().any(defines), "{name} names {item} in {path}");
                found += 1;
            }
        }
    }
    assert!(found > 20, "the docs name only {found} things in the sources: has their form changed?");
}
