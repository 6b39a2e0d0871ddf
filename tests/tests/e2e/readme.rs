//! The README's walk-through works as printed, and the docs name only what is there.
//!
//! A reader runs the `sh` blocks: the first in one terminal, the others in a second one, each when the last has shown what
//! the `text` blocks after it say. In these, `…` stands for what differs from run to run.

use std::{
    ffi::OsString,
    fs,
    os::unix::process::CommandExt as _,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tests::{
    tools::{on_path, root, tool},
    wait,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    time::Instant,
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
/// The first `cargo run` may have to build the product.
const START_WITHIN: Duration = Duration::from_secs(900);
/// The later ones may have to wait for another cargo.
const STEP_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// What a reader types, and what they see then.
struct Step {
    commands: String,
    shows: Vec<String>,
}

/// A fenced block: its tag and its lines.
fn blocks(markdown: &str) -> Vec<(&str, String)> {
    let mut blocks = Vec::new();
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(tag) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| !line.starts_with("```"));
            blocks.push((tag, inside.map(|line| format!("{line}\n")).collect()));
        }
    }
    blocks
}

fn steps(markdown: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (tag, text) in blocks(markdown) {
        match tag {
            "sh" => steps.push(Step { commands: text, shows: Vec::new() }),
            "text" => steps.last_mut().expect("something to run before what it shows").shows.push(text),
            // For reading: what a test must not run.
            "console" => {}
            other => panic!("the README has a block of kind {other:?}: neither run nor compared"),
        }
    }
    steps
}

/// Whether the expected lines stand together in what was printed. Empty lines and a stream's heartbeats do not count.
fn shown(printed: &[String], expected: &str) -> bool {
    let counts = |line: &&str| !line.is_empty() && *line != ":";
    let printed: Vec<_> = printed.iter().map(String::as_str).filter(counts).collect();
    let expected: Vec<_> = expected.lines().filter(counts).collect();
    printed.windows(expected.len()).any(|lines| lines.iter().zip(&expected).all(|(line, pattern)| fits(line, pattern)))
}

/// Whether a line fits a pattern in which `…` stands for one character or more.
fn fits(line: &str, pattern: &str) -> bool {
    let Some((before, after)) = pattern.split_once('…') else { return line == pattern };
    let Some(rest) = line.strip_prefix(before) else { return false };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]).skip(1);
    ends.into_iter().any(|end| fits(&rest[end..], after))
}

/// A bash in a process group of its own: dropping it ends all that was started in it.
struct Terminal {
    bash: Child,
    shown: Arc<Mutex<Vec<String>>>,
    complaints: Arc<Mutex<Vec<String>>>,
    closed: bool,
}

impl Terminal {
    async fn open(environment: &[(String, OsString)]) -> Self {
        let mut command = std::process::Command::new("bash");
        // What cargo tells its tests about their crate is not in a reader's terminal.
        let of_cargo =
            |name: &str| name == "CARGO" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIF");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_cargo)) {
            command.env_remove(name);
        }
        command.current_dir(root()).envs(environment.iter().cloned()).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut bash = Command::from(command).spawn().expect("bash starts");
        let (shown, complaints) = (read_lines(bash.stdout.take()), read_lines(bash.stderr.take()));
        let mut terminal = Self { bash, shown, complaints, closed: false };
        terminal.types("set -euo pipefail\n").await;
        terminal
    }

    /// Types commands, and waits until all that is expected has been shown since.
    async fn runs(&mut self, step: &Step, within: Duration) {
        let before = self.printed().len();
        self.types(&step.commands).await;
        for expected in &step.shows {
            self.shows(before, expected, within).await;
        }
    }

    async fn types(&mut self, commands: &str) {
        let stdin = self.bash.stdin.as_mut().expect("an open terminal");
        stdin.write_all(commands.as_bytes()).await.expect("bash reads");
        stdin.flush().await.expect("bash reads");
    }

    /// Waits until the expected lines have been printed after so many others.
    async fn shows(&mut self, before: usize, expected: &str, within: Duration) {
        let deadline = Instant::now() + within;
        while !shown(&self.printed()[before..], expected) {
            let ended = self.bash.try_wait().expect("the state of bash");
            // What was printed last may still be in the pipe: it is looked at once more before the test gives up.
            if ended.is_some() || Instant::now() >= deadline {
                tokio::time::sleep(PAUSE).await;
                let printed = self.printed()[before..].join("\n");
                let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
                assert!(
                    shown(&self.printed()[before..], expected),
                    "the README says\n{expected}\nand what came was ({ended:?})\n{printed}\n{complaints}"
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn printed(&self) -> Vec<String> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a role listens, by what was printed.
    fn address(&self, role: &str) -> String {
        let line = self.printed().into_iter().find(|line| line.starts_with(&format!("  {role} "))).expect("its line");
        line.split_whitespace().nth(1).expect("its address").trim_start_matches("http://").to_owned()
    }

    /// Ctrl-C: an interrupt for everything in the terminal.
    fn interrupt(&self) {
        assert!(self.signal("-INT"), "the terminal is there");
    }

    /// Closes the terminal when its commands are done. All of them must have succeeded.
    async fn close(mut self) {
        self.types("wait\n").await;
        drop(self.bash.stdin.take());
        let ended = wait::within("the terminal to close", self.bash.wait()).await.expect("an exit status");
        self.closed = true;
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        assert!(ended.success(), "{ended}: {complaints}");
    }

    fn signal(&self, signal: &str) -> bool {
        let Some(group) = self.bash.id() else { return false };
        let kill = std::process::Command::new("kill").args([signal, "--", &format!("-{group}")]).status();
        kill.is_ok_and(|status| status.success())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !self.closed {
            self.signal("-KILL");
        }
    }
}

fn read_lines(pipe: Option<impl AsyncRead + Unpin + Send + 'static>) -> Arc<Mutex<Vec<String>>> {
    let (read, mut lines) = (Arc::<Mutex<Vec<String>>>::default(), BufReader::new(pipe.expect("a pipe")).lines());
    let into = read.clone();
    #[expect(clippy::disallowed_methods, reason = "it ends with the pipe")]
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
    read
}

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
    let mut environment = vec![("FRESHET_DATA".to_owned(), data.path().as_os_str().to_owned())];
    for (role, _) in PORTS {
        environment.push((format!("FRESHET_{}_LISTEN", role.to_uppercase()), "127.0.0.1:0".into()));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = grpcurl.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&folders));
    environment.push(("PATH".to_owned(), std::env::join_paths(folders).expect("folders")));

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

#[test]
fn the_comparison_can_fail() {
    let printed = ["", "{", ":", "  \"id\": \"42\"", "}"].map(str::to_owned);
    assert!(shown(&printed, "{\n  \"id\": \"…\"\n}\n"));
    for other in ["{\n}\n", "{\n  \"id\": \"43\"\n", "  \"id\": \"42…\"\n", "  \"id\": \"…\",\n", "}\n{\n"] {
        assert!(!shown(&printed, other), "{other}");
    }
}

const DOCS: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "deploy/helm/README.md"];

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
