//! Speed, measured on real servers. A goal is a ratio of two figures of one run, so that it holds on any machine; the figures
//! themselves are kept in docs/benchmarks.md.

mod outbox;
mod people;
mod posts;
mod relay;
mod timeline;

use std::{fmt, fs, process::ExitCode};

use tokio_postgres::{Client, NoTls};

use crate::tools::root;

const PAGE: &str = "docs/benchmarks.md";

/// What the run of an area, or of a part of it, came to.
struct Report {
    goals: Vec<Goal>,
    /// What was measured, a line each.
    figures: Vec<String>,
}

/// What must hold.
struct Goal {
    name: &'static str,
    ratio: f64,
    /// The least ratio that is good enough.
    least: f64,
}

impl Goal {
    fn is_met(&self) -> bool {
        self.ratio >= self.least
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = if self.is_met() { "met" } else { "short" };
        write!(f, "{} ratio {:.2} goal {:.2} {met}", self.name, self.ratio, self.least)
    }
}

/// Measures what the command line names. Fails when a goal is missed.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let mut named: Vec<_> = arguments.iter().map(String::as_str).collect();
    let write = named.pop_if(|last| *last == "--write").is_some();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let reports = runtime.block_on(measure(&named));
    let area = named.first().copied().unwrap_or_default();
    for (section, report) in &reports {
        report.figures.iter().for_each(|figure| println!("{area} {figure}"));
        report.goals.iter().for_each(|goal| println!("{area} {goal}"));
        if write {
            write_down(section, report);
        }
    }
    let are_met = reports.iter().flat_map(|(_, report)| &report.goals).all(Goal::is_met);
    if are_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What each part came to, under the name of its section on the page.
async fn measure(named: &[&str]) -> Vec<(&'static str, Report)> {
    const RELAY: [&str; 2] = ["relay", "relay consume"];
    match named {
        ["outbox"] => vec![("outbox", outbox::measure().await)],
        ["people"] => vec![("people", people::measure().await)],
        ["posts"] => vec![("posts", posts::measure().await)],
        ["relay"] => vec![(RELAY[0], relay::measure().await), (RELAY[1], relay::consume::measure().await)],
        ["relay", "publish"] => vec![(RELAY[0], relay::measure().await)],
        ["relay", "consume"] => vec![(RELAY[1], relay::consume::measure().await)],
        other => {
            panic!("there is nothing called {other:?}: outbox, people, posts, relay, relay publish, relay consume")
        }
    }
}

/// A connection beside the ledger's own.
async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("PostgreSQL");
    #[expect(clippy::disallowed_methods, reason = "it ends with the client")]
    tokio::spawn(connection);
    client
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Replaces what stands between the section's marks on the page.
fn write_down(section: &str, report: &Report) {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path).expect("the page");
    let (begin, end) = (format!("<!-- figures of {section} -->\n"), "<!-- end -->");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin:?} in {PAGE}"));
    let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} in {PAGE}"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lines = report.figures.iter().cloned().chain(report.goals.iter().map(Goal::to_string));
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    let figures = format!("`tests/bench {section} --write`, on {cores} cores:\n\n```text\n{lines}```\n");
    fs::write(&path, format!("{before}{begin}{figures}{end}{after}")).expect("the page");
}
