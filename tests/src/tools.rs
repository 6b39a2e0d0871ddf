//! Tools that only tests need. Where one cannot be had, its test is skipped loudly; with `CI=true` that is a failure.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

/// The root of the project.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root")
}

/// The tool's path, installed if need be. `None`: the test is skipped.
#[must_use]
pub fn tool(name: &str) -> Option<PathBuf> {
    let installed = Command::new(root().join("tests/tools")).arg(name).output().expect("tests/tools runs");
    if installed.status.success() {
        return Some(PathBuf::from(String::from_utf8_lossy(&installed.stdout).trim()));
    }
    skip(&format!("{name} cannot be had here: {}", String::from_utf8_lossy(&installed.stderr).trim()));
    None
}

/// The path of a tool that the machine has or has not. `None`: the test is skipped.
#[must_use]
pub fn on_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("{name} is not on this machine"));
    }
    found
}

/// Says that a test is skipped. `SKIPPED_TESTS`, where it is set, is a file that counts them.
pub fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "with CI=true nothing may be skipped: {why}");
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    eprintln!("SKIPPED {test}: {why}");
    if let Ok(file) = std::env::var("SKIPPED_TESTS") {
        let mut file = OpenOptions::new().append(true).create(true).open(file).expect("the list of skipped tests");
        writeln!(file, "{test}: {why}").expect("the list of skipped tests");
    }
}
