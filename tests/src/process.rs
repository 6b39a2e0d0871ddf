//! Real freshet processes, which a test can kill, freeze and start again.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use chassis::{clock, token::Keyring};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, BufReader},
    process::{Child, Command},
};

use crate::wait;

const PORTS: [&str; 4] = ["edge", "timeline", "relay", "ranking"];

/// A running process and what it has printed. It is killed when dropped.
pub struct Process {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

/// A `freshet dev` process on a data folder.
pub struct Dev {
    process: Process,
    data: PathBuf,
}

impl Process {
    /// Starts a command.
    #[must_use]
    pub fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the process starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        read_lines(child.stdout.take(), lines.clone());
        read_lines(child.stderr.take(), lines.clone());
        Self { child, lines }
    }

    /// Waits until the process has printed a line with this text, and gives the line.
    pub async fn prints(&self, text: &str) -> String {
        let found = wait::try_until(async || self.printed().into_iter().find(|line| line.contains(text))).await;
        found.unwrap_or_else(|| panic!("no {text:?} in what the process prints: {:#?}", self.printed()))
    }

    /// All lines so far.
    #[must_use]
    pub fn printed(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// kill -9, now.
    pub async fn kill_now(&mut self) {
        self.child.kill().await.expect("the process dies");
    }

    /// SIGTERM; gives the exit code when the process has ended.
    pub async fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM").await;
        self.ends().await
    }

    /// SIGSTOP: it stands still, and its connections stay open.
    pub async fn freeze(&self) {
        self.signal("STOP").await;
    }

    /// SIGCONT: it goes on where it stood.
    pub async fn thaw(&self) {
        self.signal("CONT").await;
    }

    /// Whether it stands still.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        let id = self.child.id().expect("a running process");
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("its status");
        // After the name, which is in parentheses and may hold anything: "123 (freshet) T 1 …".
        status.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    }

    /// Waits until the process has ended; gives the exit code.
    pub async fn ends(&mut self) -> Option<i32> {
        wait::within("the process to end", self.child.wait()).await.expect("an exit status").code()
    }

    async fn signal(&self, name: &str) {
        let id = self.child.id().expect("a running process").to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await.expect("kill runs");
        assert!(sent.success(), "kill -{name} {id}");
    }
}

impl Dev {
    /// Starts `freshet dev` on a data folder, all ports free ones, with failpoints armed.
    #[must_use]
    pub fn start(binary: &str, data: &Path, arguments: &[&str], failpoints: &str) -> Self {
        let mut command = Command::new(binary);
        command.arg("dev").arg("--data").arg(data);
        for port in PORTS {
            command.args(["--set", &format!("{port}.listen=127.0.0.1:0")]);
        }
        command.args(["--set", "people.argon2_memory_kib=64"]).args(arguments);
        if !failpoints.is_empty() {
            command.env(chassis::failpoint::VARIABLE, failpoints);
        }
        Self { process: Process::spawn(command), data: data.into() }
    }

    /// Where a role listens, by what the process printed.
    pub async fn address(&self, role: &str) -> SocketAddr {
        self.prints("is up after").await;
        let line = self.prints(&format!("  {role} ")).await;
        let address = line.split_whitespace().nth(1).unwrap_or_default().trim_start_matches("http://");
        address.parse().unwrap_or_else(|_| panic!("no address in {line:?}"))
    }

    /// The keys that the process signs tokens with.
    #[must_use]
    pub fn keyring(&self) -> Keyring {
        let text = std::fs::read_to_string(self.data.join("token-key")).expect("the key of the data folder");
        Keyring::parse(text.trim(), Arc::new(clock::System)).expect("a key")
    }
}

impl std::ops::Deref for Dev {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl std::ops::DerefMut for Dev {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

fn read_lines(pipe: Option<impl AsyncRead + Unpin + Send + 'static>, into: Arc<Mutex<Vec<String>>>) {
    let mut lines = BufReader::new(pipe.expect("a pipe")).lines();
    #[expect(clippy::disallowed_methods, reason = "it ends with the pipe")]
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}
