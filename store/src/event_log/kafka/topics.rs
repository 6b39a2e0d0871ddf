//! The topics: made by a migration, checked when the log is opened.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use proto::event::Topic;
use rdkafka::{
    ClientContext,
    admin::{AdminClient, AdminOptions, NewTopic, TopicReplication},
    client::Client,
    error::{KafkaError, RDKafkaErrorCode as Code},
    metadata::{MetadataPartition, MetadataTopic},
    producer::Producer as _,
    util::Timeout,
};
use tokio::time::Instant;

use super::{STORE, Told, client, dead_letters, producer, unusable};
use crate::{
    OpenError,
    config::Config,
    migrate::{Mode, Step},
};

/// How long an event is kept.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long brokers may take to say which topics there are.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long they may take to make topics, and to know of them everywhere.
const MAKING_MAX: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The topics there are, by name.
pub(super) type Found = BTreeMap<String, Partitions>;

/// The partitions of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partitions {
    count: i32,
    /// Whether each has a leader, and so takes records.
    led: bool,
}

/// Makes the topics that are missing, and tells which.
pub(crate) async fn migrate(brokers: &str, config: &Config, mode: Mode) -> Result<Vec<Step>, OpenError> {
    let made = client(brokers, "freshet-migrate").create_with_context(Told);
    let admin: Arc<AdminClient<Told>> = Arc::new(made.map_err(|cause| unusable(brokers, cause))?);
    let outcome = make_missing(&admin, brokers, config, mode).await;
    // Its end waits for a thread.
    tokio::task::spawn_blocking(move || drop(admin)).await.map_err(|cause| unusable(brokers, cause))?;
    outcome
}

async fn make_missing(
    admin: &Arc<AdminClient<Told>>,
    brokers: &str,
    config: &Config,
    mode: Mode,
) -> Result<Vec<Step>, OpenError> {
    let look = || {
        let admin = admin.clone();
        found(brokers, move |timeout| topics_of(admin.inner(), timeout))
    };
    let before = look().await?;
    check_counts(brokers, config, &before)?;
    let missing: Vec<_> = wanted(config).into_iter().filter(|(name, _)| !before.contains_key(name)).collect();
    if mode == Mode::Plan {
        return Ok(missing.iter().map(|(name, partitions)| step(name, *partitions, config)).collect());
    }
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let made = make(admin, &missing, config).await.map_err(|cause| unusable(brokers, cause))?;
    let deadline = Instant::now() + MAKING_MAX;
    loop {
        let after = look().await?;
        let ready = |name: &String| after.get(name).is_some_and(|partitions| partitions.led);
        if missing.iter().all(|(name, _)| ready(name)) {
            check(brokers, config, &after)?;
            return Ok(made);
        }
        if Instant::now() >= deadline {
            let unready: Vec<_> =
                missing.iter().map(|(name, _)| name.as_str()).filter(|name| !ready(&(*name).to_owned())).collect();
            return Err(unusable(
                brokers,
                format_args!("{} made, but not ready after {MAKING_MAX:?}", unready.join(", ")),
            ));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Asks for the topics, and tells which of them were not made by somebody else at the same time.
async fn make(admin: &AdminClient<Told>, missing: &[(String, i32)], config: &Config) -> Result<Vec<Step>, KafkaError> {
    let retention = RETENTION.as_millis().to_string();
    // What is acknowledged is on most of the copies, so that it outlives the loss of any one.
    let in_step = (config.replication / 2 + 1).to_string();
    let topics: Vec<_> = missing
        .iter()
        .map(|(name, partitions)| {
            NewTopic::new(name, *partitions, TopicReplication::Fixed(i32::from(config.replication)))
                .set("retention.ms", &retention)
                .set("min.insync.replicas", &in_step)
        })
        .collect();
    let options =
        AdminOptions::new().request_timeout(Some(MAKING_MAX)).operation_timeout(Some(MAKING_MAX - ANSWER_MAX));
    let mut made = Vec::new();
    for (outcome, (name, partitions)) in admin.create_topics(&topics, &options).await?.into_iter().zip(missing) {
        match outcome {
            Ok(_) => made.push(step(name, *partitions, config)),
            Err((_, Code::TopicAlreadyExists)) => {}
            Err((_, code)) => return Err(KafkaError::AdminOp(code)),
        }
    }
    Ok(made)
}

fn step(name: &str, partitions: i32, config: &Config) -> Step {
    let copies = config.replication;
    Step { store: STORE, what: format!("topic {name}: {partitions} partition(s), {copies} copies") }
}

/// Every topic of ours, with its number of partitions.
fn wanted(config: &Config) -> Vec<(String, i32)> {
    let namespace = &config.namespace;
    let events = Topic::ALL.iter().map(|topic| (namespace.topic(topic.name()), i32::from(config.shards)));
    let buried = Topic::ALL.iter().map(|topic| (dead_letters::name(namespace, *topic), 1));
    events.chain(buried).collect()
}

/// Asks for the topics on a thread where waiting harms nobody.
pub(super) async fn found(
    brokers: &str,
    ask: impl FnOnce(Duration) -> Result<Found, KafkaError> + Send + 'static,
) -> Result<Found, OpenError> {
    let answer = tokio::task::spawn_blocking(move || ask(ANSWER_MAX)).await;
    let answer = answer.map_err(|cause| unusable(brokers, cause))?;
    answer.map_err(|cause| unusable(brokers, format_args!("no broker answers within {ANSWER_MAX:?} ({cause})")))
}

/// The topics that a producer sees.
pub(super) fn partitions(client: &producer::Client, timeout: Duration) -> Result<Found, KafkaError> {
    topics_of(client.client(), timeout)
}

/// All topics are asked for, because asking for one by name could make it.
fn topics_of<C: ClientContext>(client: &Client<C>, timeout: Duration) -> Result<Found, KafkaError> {
    let metadata = client.fetch_metadata(None, Timeout::After(timeout))?;
    let count = |partitions: &[MetadataPartition]| i32::try_from(partitions.len()).unwrap_or(i32::MAX);
    let one = |topic: &MetadataTopic| {
        let led = topic.partitions().iter().all(|partition| partition.leader() >= 0);
        (topic.name().to_owned(), Partitions { count: count(topic.partitions()), led })
    };
    Ok(metadata.topics().iter().map(one).collect())
}

/// That every topic is there, with the partitions that it should have.
pub(super) fn check(brokers: &str, config: &Config, found: &Found) -> Result<(), OpenError> {
    let missing: Vec<_> =
        wanted(config).into_iter().map(|(name, _)| name).filter(|name| !found.contains_key(name)).collect();
    if !missing.is_empty() {
        let cause = format!("there is no topic {}: run `freshet migrate` first", missing.join(", "));
        return Err(unusable(brokers, cause));
    }
    check_counts(brokers, config, found)
}

/// A partition is an outbox shard: with another count, what is sent would go nowhere or never be read.
fn check_counts(brokers: &str, config: &Config, found: &Found) -> Result<(), OpenError> {
    for (name, wanted) in wanted(config) {
        let Some(Partitions { count, .. }) = found.get(&name) else { continue };
        if *count != wanted {
            let reason = if wanted == 1 { "must have 1".to_owned() } else { format!("stores.shards is {wanted}") };
            return Err(unusable(brokers, format_args!("topic {name} has {count} partitions, but {reason}")));
        }
    }
    Ok(())
}
