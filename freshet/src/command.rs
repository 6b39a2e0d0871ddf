//! The command line.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use chassis::{
    Clock, Random, clock,
    config::{self, Flag, Layers, Setting},
    random,
    token::{Caller, TTL_MAX},
};
use clap::{Args, Parser, Subcommand};
use proto::UserId;
use store::migrate::{Mode, Step};

use crate::{
    deadletters::{self, DeadlettersCommand},
    dev, rebuild, relay_status,
    role::{self, Role},
    settings::Settings,
    token_key,
};

#[derive(Parser)]
#[command(name = "freshet", version, about = "A news-feed and timeline platform")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs all roles in one process on embedded stores: nothing to install, data in one folder
    Dev {
        #[command(flatten)]
        config: ConfigArgs,
        /// Takes earlier data away first
        #[arg(long)]
        fresh: bool,
    },
    /// Serves people, posts and timelines over gRPC
    Timeline(ConfigArgs),
    /// Moves events from the outbox to the event log, and from there to readers
    Relay {
        #[command(flatten)]
        config: ConfigArgs,
        #[command(subcommand)]
        what: Option<RelayCommand>,
    },
    /// Keeps and serves the hot posts
    Ranking(ConfigArgs),
    /// Serves browsers: HTTP and event streams
    Edge(ConfigArgs),
    /// Prepares the stores for this release: tables, topics, keyspace. Safe to run again, and from several pods at once
    Migrate {
        #[command(flatten)]
        config: ConfigArgs,
        /// Only tells what would be done
        #[arg(long)]
        plan: bool,
    },
    /// Looks at events that could not be published or applied, drives them again, or discards them
    Deadletters {
        #[command(flatten)]
        config: ConfigArgs,
        #[command(subcommand)]
        what: DeadlettersCommand,
    },
    /// Makes again what is made from the ledger
    Rebuild {
        #[command(flatten)]
        config: ConfigArgs,
        #[command(subcommand)]
        what: RebuildCommand,
    },
    /// Prints the settings that count for a role, and where each one comes from
    Config {
        #[command(flatten)]
        config: ConfigArgs,
        /// Whose settings; left out: those of all roles
        #[arg(value_enum)]
        role: Option<Role>,
    },
    /// Prints an internal token for gRPC calls
    Token {
        #[command(flatten)]
        config: ConfigArgs,
        #[command(flatten)]
        caller: CallerArgs,
        /// How long it is valid, such as 10m; a day at the most
        #[arg(long, default_value = "1h", value_parser = ttl)]
        ttl: std::time::Duration,
    },
}

#[derive(Subcommand)]
enum RelayCommand {
    /// Prints who publishes which shard, since when, and what waits in it
    Status,
}

#[derive(Subcommand)]
enum RebuildCommand {
    /// Fills the archive from the ledger, or watches the relay that does; Ctrl-C stops watching only
    Archive {
        /// Begins anew when the archive is complete already
        #[arg(long)]
        again: bool,
    },
}

/// Where settings come from, weakest first: defaults, the file, FRESHET_… variables, flags.
#[derive(Args)]
struct ConfigArgs {
    /// The data folder
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<String>,
    /// A TOML file (also: FRESHET_CONFIG)
    #[arg(long = "config", value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    /// Any key of the config
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, global = true)]
    set: Vec<(String, String)>,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct CallerArgs {
    /// Calls as this service, which may act for anyone
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Calls as this person, who acts for themselves only
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
}

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("freshet: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Box<dyn std::error::Error>> {
    let clock: Arc<dyn Clock> = Arc::new(clock::System);
    let random: Arc<dyn Random> = Arc::new(random::System);
    match command {
        Command::Dev { config, fresh } => {
            let (settings, _) = Settings::read(config.layers()?, &clock)?;
            runtime()?.block_on(dev::run(settings, fresh, clock, random))?;
        }
        Command::Timeline(config) => run_role(Role::Timeline, config, clock, random)?,
        Command::Relay { config, what: None } => run_role(Role::Relay, config, clock, random)?,
        Command::Relay { config, what: Some(RelayCommand::Status) } => {
            let (settings, _) = Settings::read(config.layers()?, &clock)?;
            print!("{}", runtime()?.block_on(relay_status::table(settings, clock, random))?);
        }
        Command::Ranking(config) => run_role(Role::Ranking, config, clock, random)?,
        Command::Edge(config) => run_role(Role::Edge, config, clock, random)?,
        Command::Migrate { config, plan } => {
            let (settings, _) = Settings::read(config.layers()?, &clock)?;
            let mode = if plan { Mode::Plan } else { Mode::Apply };
            let steps = runtime()?.block_on(settings.stores.migrate(mode))?;
            print!("{}", migration(&steps, mode));
        }
        Command::Deadletters { config, what } => {
            let (settings, _) = Settings::read(config.layers()?, &clock)?;
            runtime()?.block_on(deadletters::run(what, settings, clock, random))?;
        }
        Command::Rebuild { config, what: RebuildCommand::Archive { again } } => {
            let (settings, _) = Settings::read(config.layers()?, &clock)?;
            runtime()?.block_on(rebuild::archive(settings, again, clock, random))?;
        }
        Command::Config { config, role } => {
            let (_, settings) = Settings::read(config.layers()?, &clock)?;
            print!("{}", listing(&settings, role));
        }
        Command::Token { config, caller, ttl } => {
            let (settings, _) = Settings::read(config.layers()?, &clock)?;
            let keyring = match settings.keyring {
                Some(keyring) => keyring,
                None => token_key::read(&settings.data, clock)?,
            };
            println!("{}", keyring.sign(&caller.caller(), ttl)?);
        }
    }
    Ok(())
}

fn run_role(
    role: Role,
    config: ConfigArgs,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (settings, _) = Settings::read(config.layers()?, &clock)?;
    Ok(runtime()?.block_on(role::run(role, settings, clock, random))?)
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn migration(steps: &[Step], mode: Mode) -> String {
    let (verb, nothing) = match mode {
        Mode::Plan => ("would", "nothing to do: every store is up to date\n"),
        Mode::Apply => ("did", "every store was up to date\n"),
    };
    if steps.is_empty() {
        return nothing.to_owned();
    }
    steps.iter().map(|step| format!("{verb}: {}: {}\n", step.store, step.what)).collect()
}

impl ConfigArgs {
    fn layers(self) -> Result<Layers, config::Unreadable> {
        let flag = |key: String, value, typed: &str| Flag { key, value, typed: typed.to_owned() };
        let set = self.set.into_iter().map(|(key, value)| flag(key, value, "--set"));
        let data = self.data.into_iter().map(|value| flag("data".into(), value, "--data"));
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Layers::load(self.file.as_deref(), environment, set.chain(data).collect())
    }
}

impl CallerArgs {
    fn caller(self) -> Caller {
        match self.user {
            Some(user) => Caller::User(user),
            None => Caller::Service(self.service.unwrap_or_default()),
        }
    }
}

/// The settings as TOML that can be used as a file, each with its purpose and its origin.
fn listing(settings: &[Setting], role: Option<Role>) -> String {
    const SHARED: [&str; 7] = ["data", "stores", "auth", "drain", "log", "trace", "grpc"];
    let reads = |key: &str| {
        let group = key.split('.').next().unwrap_or_default();
        role.is_none_or(|role| SHARED.contains(&group) || role.groups().contains(&group))
    };
    let line = |setting: &Setting| {
        let Setting { key, about, shown, origin } = setting;
        format!("# {about}\n{key} = {shown:?}  # {origin}\n")
    };
    settings.iter().filter(|setting| reads(setting.key)).map(line).collect()
}

fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn ttl(text: &str) -> Result<std::time::Duration, String> {
    let most = config::duration_text(TTL_MAX);
    config::parse_duration(text)
        .filter(|ttl| !ttl.is_zero() && *ttl <= TTL_MAX)
        .ok_or_else(|| format!("must be a time span such as 10m, {most} at the most"))
}
