//! What only Kafka has: topics that are made beforehand, brokers that may be away, limits.

use rdkafka::{
    ClientConfig,
    admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier},
    client::DefaultClientContext,
};

use super::*;

/// The config of a new namespace on Kafka, whose topics are not made yet.
async fn unmade(shards: &str) -> Option<(Config, Vec<(&'static str, String)>, TempDir)> {
    let data = tempfile::tempdir().expect("a folder");
    let mut settings = servers::settings(&[Adapter::Kafka], data.path()).await?;
    settings.retain(|(key, _)| *key != "stores.shards");
    settings.push(("stores.shards", shards.to_owned()));
    Some((servers::config(&settings), settings, data))
}

async fn refusal(config: &Config) -> String {
    let parts = servers::parts();
    let ledger = config.open_ledger(&parts).await.expect("a ledger");
    config.open_event_log(&parts, &ledger).await.err().expect("a refusal").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_topics_it_says_how_to_make_them() {
    let Some((config, _, _data)) = unmade("4").await else { return };
    let told = refusal(&config).await;
    assert!(told.contains("users.dlt") && told.contains("`freshet migrate`"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_tells_what_it_does_and_can_be_done_by_many_and_again() {
    let Some((config, _, _data)) = unmade("4").await else { return };
    let planned = config.migrate(Mode::Plan).await.unwrap();
    assert_eq!(planned.len(), 2 * Topic::ALL.len(), "{planned:?}");
    assert_eq!(config.migrate(Mode::Plan).await.unwrap(), planned);

    let (a, b, c, d) = tokio::join!(
        config.migrate(Mode::Apply),
        config.migrate(Mode::Apply),
        config.migrate(Mode::Apply),
        config.migrate(Mode::Apply),
    );
    let done: Vec<_> = [a, b, c, d].into_iter().flat_map(|steps| steps.unwrap()).map(|step| step.what).collect();
    assert_eq!(done.len(), planned.len(), "each topic is made by one of them: {done:?}");
    assert_eq!(config.migrate(Mode::Apply).await.unwrap(), []);
    assert_eq!(config.migrate(Mode::Plan).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_partitions_is_refused_by_name() {
    let Some((config, settings, _data)) = unmade("2").await else { return };
    config.migrate(Mode::Apply).await.unwrap();
    let settings: Vec<_> = settings
        .into_iter()
        .map(|(key, value)| (key, if key == "stores.shards" { "3".to_owned() } else { value }))
        .collect();
    let other = servers::config(&settings);
    let told = refusal(&other).await;
    assert!(told.contains("users has 2 partitions, but stores.shards is 3"), "{told}");
    for mode in [Mode::Plan, Mode::Apply] {
        let told = other.migrate(mode).await.unwrap_err().to_string();
        assert!(told.contains("users has 2 partitions"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_do_not_answer_are_named() {
    let Some((_, mut settings, _data)) = unmade("4").await else { return };
    settings.retain(|(key, _)| *key != "stores.events");
    settings.push(("stores.events", "kafka://127.0.0.1:1".to_owned()));
    let told = within("a refusal", refusal(&servers::config(&settings))).await;
    assert!(told.contains("the event log at kafka://127.0.0.1:1: no broker answers"), "{told}");
}

/// Lowers what a topic takes, as an operator may.
async fn limit_topic(namespace: &str, topic: Topic, bytes: u32) {
    let brokers = std::env::var("TEST_KAFKA").expect("Kafka");
    let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
        .set("bootstrap.servers", brokers.trim_start_matches("kafka://"))
        .create()
        .expect("a client");
    let (name, bytes) = (format!("{namespace}.{}", topic.name()), bytes.to_string());
    let limit = AlterConfig::new(ResourceSpecifier::Topic(&name)).set("max.message.bytes", &bytes);
    let altered = admin.alter_configs([&limit], &AdminOptions::new()).await.expect("an answer");
    altered.into_iter().for_each(|topic| drop(topic.expect("a topic that is limited")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_handed_over_ends_the_batch_there() {
    let Some(Opened { log, .. }) = open(Adapter::Kafka).await else { return };
    let small = |partition, key| record(Topic::Posts, partition, key);
    let failed = log.append(vec![small(0, "first"), small(SHARDS, "nowhere"), small(0, "behind")]).await.unwrap_err();
    assert!(failed.acknowledged == 1 && !matches!(failed.cause, Error::Refused { .. }), "{failed:?}");
    log.append(vec![small(0, "next")]).await.unwrap();
    let mut member = log.join(GROUP, &[Topic::Posts]).await.unwrap();
    assert_eq!(in_order(&read(&mut *member, 2).await), ["first", "next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_the_broker_refuses_is_told_from_those_it_came_with() {
    let Some((config, settings, _data)) = unmade("4").await else { return };
    config.migrate(Mode::Apply).await.unwrap();
    let namespace = &settings.iter().find(|(key, _)| *key == "stores.namespace").expect("a namespace").1;
    limit_topic(namespace, Topic::Posts, 2_000).await;
    let parts = servers::parts();
    let ledger = config.open_ledger(&parts).await.unwrap();
    let log = config.open_event_log(&parts, &ledger).await.unwrap();
    // Together they are more than the topic takes; alone only one of them is.
    let batch: Vec<_> = [600, 700, 800, 5_000, 600].into_iter().zip("abcde".chars()).collect();
    let batch = batch.into_iter().map(|(bytes, key)| sized(bytes, &key.to_string())).collect();
    let failed = within("the limit to be known", async {
        loop {
            match log.append(Vec::clone(&batch)).await {
                Ok(()) => tokio::task::yield_now().await,
                Err(failed) => return failed,
            }
        }
    })
    .await;
    assert!(matches!((failed.acknowledged, &failed.cause), (3, Error::Refused { .. })), "{failed:?}");
}
