//! How the ledger's tables are brought up to date, and which are refused.

use futures_util::future::join_all;
use store::{Config, migrate::Mode};
use tests::servers::{self, Adapter};

use super::{World, configure, open, postgres::connect};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    to_migrate_again_does_nothing,
    other_shards_than_it_was_made_with_are_refused,
});

async fn refusal(config: &Config) -> String {
    config.open_ledger(&servers::parts()).await.err().expect("a refusal").to_string()
}

async fn to_migrate_again_does_nothing(world: World) {
    let ada = world.people(1).await[0];
    for mode in [Mode::Plan, Mode::Apply, Mode::Plan] {
        assert_eq!(world.config.migrate_ledger(mode).await.unwrap(), []);
    }
    assert!(world.ledger.accounts.exists(ada).await.unwrap());
}

async fn other_shards_than_it_was_made_with_are_refused(world: World) {
    let World { ledger, archive, url, _data, .. } = world;
    drop((ledger, archive));
    let mut settings = vec![("stores.ledger", url), ("stores.shards", "5".to_owned())];
    settings.push(("stores.events", "kafka://127.0.0.1:1".to_owned()));
    let told = refusal(&servers::config(&settings)).await;
    assert!(told.contains("made with 4 shards, and stores.shards is 5"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_touches_nothing_and_an_empty_database_is_refused() {
    let data = tempfile::tempdir().expect("a folder");
    let Some((config, url)) = configure(Adapter::Postgres, data.path(), &[]).await else { return };
    let told = refusal(&config).await;
    assert!(told.contains("the ledger") && told.contains("run freshet migrate"), "{told}");
    let planned = config.migrate_ledger(Mode::Plan).await.unwrap();
    assert_eq!((planned.is_empty(), planned.iter().all(|step| step.store == "the ledger")), (false, true));
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    let count: i64 = connect(&url).await.query_one(tables, &[]).await.unwrap().get(0);
    assert_eq!(count, 0);
    assert_eq!(config.migrate_ledger(Mode::Apply).await.unwrap(), planned);
    config.open_ledger(&servers::parts()).await.expect("a ledger");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_that_migrate_at_once_one_does_it() {
    let data = tempfile::tempdir().expect("a folder");
    let Some((config, _)) = configure(Adapter::Postgres, data.path(), &[]).await else { return };
    let planned = config.migrate_ledger(Mode::Plan).await.unwrap();
    let all = join_all((0..8).map(|_| config.migrate_ledger(Mode::Apply))).await;
    let mut done: Vec<_> = all.into_iter().map(Result::unwrap).filter(|steps| !steps.is_empty()).collect();
    assert_eq!(done.pop(), Some(planned));
    assert_eq!(done, Vec::<Vec<_>>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_database_is_refused() {
    let Some(world) = open(Adapter::Postgres).await else { return };
    let raw = connect(&world.url).await;
    raw.batch_execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9999, 'of tomorrow', TRUE, '', 0)",
    )
    .await
    .unwrap();
    for told in [
        refusal(&world.config).await,
        world.config.migrate_ledger(Mode::Apply).await.unwrap_err().to_string(),
        world.config.migrate_ledger(Mode::Plan).await.unwrap_err().to_string(),
    ] {
        assert!(told.contains("newer release (version 9999) than this binary"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_named_without_its_password() {
    let settings = [
        ("stores.ledger", "postgres://ada:secret@127.0.0.1:1/freshet".to_owned()),
        ("stores.events", "kafka://127.0.0.1:1".to_owned()),
    ];
    let config = servers::config(&settings);
    for told in [refusal(&config).await, config.migrate_ledger(Mode::Plan).await.unwrap_err().to_string()] {
        assert!(told.starts_with("cannot use the ledger at postgres://ada:"), "{told}");
        assert!(told.contains("127.0.0.1:1/freshet") && told.contains("refused") && !told.contains("secret"), "{told}");
    }
}
