//! Docs that can be run: a reader types their `sh` blocks into a terminal, each when the last has shown what the `text`
//! blocks after it say. In these, `…` stands for what differs from run to run.

use std::{
    ffi::OsString,
    os::unix::process::CommandExt as _,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader},
    process::{Child, Command},
    time::Instant,
};

use crate::{tools::root, wait};

const PAUSE: Duration = Duration::from_millis(5);

/// What a reader types, and what they see then.
pub struct Step {
    /// What is typed.
    pub commands: String,
    /// What must be shown then.
    pub shows: Vec<String>,
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

/// What a page tells its reader to do.
#[must_use]
pub fn steps(markdown: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (tag, text) in blocks(markdown) {
        match tag {
            "sh" => steps.push(Step { commands: text, shows: Vec::new() }),
            "text" => steps.last_mut().expect("something to run before what it shows").shows.push(text),
            // For reading: what a test must not run.
            "console" => {}
            other => panic!("there is a block of kind {other:?}: neither run nor compared"),
        }
    }
    steps
}

/// Whether the expected lines stand together in what was printed. Empty lines and a stream's heartbeats do not count.
#[must_use]
pub fn shown(printed: &[String], expected: &str) -> bool {
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
pub struct Terminal {
    bash: Child,
    shown: Arc<Mutex<Vec<String>>>,
    complaints: Arc<Mutex<Vec<String>>>,
    closed: bool,
}

impl Terminal {
    /// Opens one in the project's root.
    pub async fn open(environment: &[(String, OsString)]) -> Self {
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
    pub async fn runs(&mut self, step: &Step, within: Duration) {
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
    pub async fn shows(&mut self, before: usize, expected: &str, within: Duration) {
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
                    "the page says\n{expected}\nand what came was ({ended:?})\n{printed}\n{complaints}"
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn printed(&self) -> Vec<String> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where a role listens, by what was printed.
    #[must_use]
    pub fn address(&self, role: &str) -> String {
        let line = self.printed().into_iter().find(|line| line.starts_with(&format!("  {role} "))).expect("its line");
        line.split_whitespace().nth(1).expect("its address").trim_start_matches("http://").to_owned()
    }

    /// Ctrl-C: an interrupt for everything in the terminal.
    pub fn interrupt(&self) {
        assert!(self.signal("-INT"), "the terminal is there");
    }

    /// Closes the terminal when its commands are done. All of them must have succeeded.
    pub async fn close(mut self) {
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
