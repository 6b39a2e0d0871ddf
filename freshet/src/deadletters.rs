//! `freshet deadletters`: looks at events that could not be published or applied, drives them again, or discards them.

mod print;

use std::{sync::Arc, time::Duration};

use chassis::{Clock, Pod, Random, config::parse_duration, drain::drain};
use clap::{Args, Subcommand};
use proto::event::Topic;
use store::{
    OpenError, Parts,
    ledger::{
        DeadLetters,
        dead_letters::{Cause, Filter, Ordered},
    },
};

use crate::settings::Settings;

const GRACE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// When nothing moved for so long, nobody is there to drive letters again.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);
const GROUPS_MAX: u32 = 1000;

/// What to do with dead letters.
#[derive(Subcommand)]
pub(crate) enum DeadlettersCommand {
    /// Prints a line a letter, the oldest first
    List {
        #[command(flatten)]
        which: Which,
        /// How many at the most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        /// Only letters with higher numbers than this
        #[arg(long, default_value_t = 0)]
        after: i64,
    },
    /// Prints all that is known of a letter
    Show {
        /// Its number
        id: i64,
    },
    /// Prints how many letters have which reason
    Group {
        #[command(flatten)]
        which: Which,
    },
    /// Has letters applied again, each with all that waits behind it, in the order of the log
    Redrive {
        #[command(flatten)]
        order: Order,
        /// Returns at once instead of showing the progress
        #[arg(long)]
        no_wait: bool,
    },
    /// Takes letters away for good; what only waited behind them is applied
    Discard {
        #[command(flatten)]
        order: Order,
    },
    /// Prints who ordered what, the last first
    Audit {
        /// How many lines at the most
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
}

/// Which letters. Several filters must all fit.
#[derive(Args)]
pub(crate) struct Which {
    /// The numbers of letters
    ids: Vec<i64>,
    /// Of this consumer group (relay, ranking; empty: what the event log refused)
    #[arg(long)]
    group: Option<String>,
    /// Of this topic (users, graph, posts, likes)
    #[arg(long, value_parser = topic)]
    topic: Option<Topic>,
    /// Of this type, such as post.created
    #[arg(long = "type")]
    kind: Option<String>,
    /// Of this key
    #[arg(long)]
    key: Option<String>,
    /// For this kind of reason (undecodable, unknown_type, broken_rule, parked, refused)
    #[arg(long, value_parser = cause)]
    cause: Option<Cause>,
    /// Whose reason contains this text
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,
    /// Put aside longer ago than this, such as 1h
    #[arg(long, value_name = "SPAN", value_parser = span)]
    older_than: Option<Duration>,
    /// Put aside within this time, such as 10m
    #[arg(long, value_name = "SPAN", value_parser = span)]
    newer_than: Option<Duration>,
}

/// An order about letters.
#[derive(Args)]
pub(crate) struct Order {
    #[command(flatten)]
    which: Which,
    /// All letters: needed when nothing else says which
    #[arg(long)]
    all: bool,
    /// Only tells what would be done
    #[arg(long)]
    dry_run: bool,
    /// Who orders it, for the audit; left out: the user of this machine
    #[arg(long = "as", value_name = "NAME")]
    who: Option<String>,
}

/// Why it was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeadlettersError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("there is no dead letter {0}")]
    NoSuchLetter(i64),
    #[error("say which letters: by their numbers, by filters, or --all")]
    WhichLetters,
}

/// Runs the command on the ledger that the settings name.
pub(crate) async fn run(
    command: DeadlettersCommand,
    settings: Settings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> Result<(), DeadlettersError> {
    let pod = Pod::new("deadletters");
    let parts = Parts { pod: pod.clone(), clock: clock.clone(), random };
    let ledger = settings.stores.open_ledger(&parts).await?;
    let outcome = obey(command, &*ledger.dead_letters, &*clock).await;
    drain(&pod, GRACE).await;
    outcome
}

async fn obey(
    command: DeadlettersCommand,
    letters: &dyn DeadLetters,
    clock: &dyn Clock,
) -> Result<(), DeadlettersError> {
    let now = clock.unix_ms();
    match command {
        DeadlettersCommand::List { which, limit, after } => {
            let filter = which.filter(now);
            let page = letters.page(&filter, after, limit).await?;
            let (all, _) = letters.count(&filter).await?;
            print!("{}", print::list(&page, all, now));
        }
        DeadlettersCommand::Show { id } => {
            let filter = Filter { ids: Some(vec![id]), ..Filter::default() };
            let found = letters.page(&filter, 0, 1).await?;
            print!("{}", print::letter(found.first().ok_or(DeadlettersError::NoSuchLetter(id))?));
        }
        DeadlettersCommand::Group { which } => {
            print!("{}", print::groups(&letters.alike(&which.filter(now), GROUPS_MAX).await?, now));
        }
        DeadlettersCommand::Redrive { order, no_wait } => redrive(letters, &order, no_wait, now).await?,
        DeadlettersCommand::Discard { order } => discard(letters, &order, now).await?,
        DeadlettersCommand::Audit { limit } => print!("{}", print::audit(&letters.audit(limit).await?)),
    }
    Ok(())
}

async fn redrive(letters: &dyn DeadLetters, order: &Order, no_wait: bool, now: i64) -> Result<(), DeadlettersError> {
    let filter = order.filter(now)?;
    if order.dry_run {
        let (matched, _) = letters.count(&filter).await?;
        println!("would drive {matched} letters again, each with all that waits behind it");
        return Ok(());
    }
    let Ordered { matched, followers } = letters.redrive(&filter, &order.who()).await?;
    println!("ordered: {matched} letters are driven again, and {followers} that wait behind them");
    if no_wait || matched == 0 {
        return Ok(());
    }
    let everything = Filter::default();
    let (_, all) = letters.count(&everything).await?;
    let (mut left, mut moved) = (all, tokio::time::Instant::now());
    while left > 0 {
        eprint!("\r{}", print::bar(all - left, all));
        tokio::time::sleep(LOOK_EVERY).await;
        let now_left = letters.count(&everything).await?.1.min(all);
        if now_left != left {
            (left, moved) = (now_left, tokio::time::Instant::now());
        } else if moved.elapsed() > GIVE_UP_AFTER {
            eprintln!();
            println!("{left} letters wait: nobody takes them up now; they are driven as soon as their consumers run");
            return Ok(());
        }
    }
    eprintln!("\r{}", print::bar(all, all));
    let (kept, _) = letters.count(&filter).await?;
    println!("done: {kept} of the letters that were named are dead letters still");
    Ok(())
}

async fn discard(letters: &dyn DeadLetters, order: &Order, now: i64) -> Result<(), DeadlettersError> {
    let filter = order.filter(now)?;
    if order.dry_run {
        println!("would discard {} letters", letters.count(&filter).await?.0);
        return Ok(());
    }
    let Ordered { matched, followers } = letters.discard(&filter, &order.who()).await?;
    println!("discarded {matched} letters; {followers} that waited behind them are driven again");
    Ok(())
}

impl Which {
    fn filter(&self, now: i64) -> Filter {
        let ago = |span: Duration| now - i64::try_from(span.as_millis()).unwrap_or(i64::MAX / 2);
        Filter {
            ids: (!self.ids.is_empty()).then(|| self.ids.clone()),
            group: self.group.clone(),
            topic: self.topic,
            kind: self.kind.clone(),
            key: self.key.clone(),
            cause: self.cause,
            error: self.error.clone(),
            buried_before_ms: self.older_than.map(ago),
            buried_from_ms: self.newer_than.map(ago),
        }
    }
}

impl Order {
    /// The letters; an order about all of them must say so.
    fn filter(&self, now: i64) -> Result<Filter, DeadlettersError> {
        let filter = self.which.filter(now);
        if filter == Filter::default() && !self.all { Err(DeadlettersError::WhichLetters) } else { Ok(filter) }
    }

    fn who(&self) -> String {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        self.who.clone().unwrap_or_else(|| {
            let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "somebody".to_owned());
            variable("HOSTNAME").map_or(user.clone(), |host| format!("{user}@{host}"))
        })
    }
}

fn topic(text: &str) -> Result<Topic, String> {
    let names = Topic::ALL.map(Topic::name).join(", ");
    Topic::named(text).ok_or_else(|| format!("must be one of {names}"))
}

fn cause(text: &str) -> Result<Cause, String> {
    let names = Cause::ALL.map(Cause::name).join(", ");
    Cause::named(text).ok_or_else(|| format!("must be one of {names}"))
}

fn span(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "must be a time span such as 10m".to_owned())
}
