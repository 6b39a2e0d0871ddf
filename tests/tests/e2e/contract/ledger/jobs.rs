//! Jobs: each is one pod's at a time, goes on from its checkpoint, and comes in its turn.

use std::time::Duration;

use futures_util::future::join_all;
use store::ledger::JobKind;
use tests::{sql::Sql, wait};

use super::{World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    a_job_comes_with_its_change_and_wakes_this_process,
    a_job_is_ones_at_a_time_and_goes_on_from_its_checkpoint,
    a_lease_that_ran_out_writes_nothing_any_more,
    jobs_come_in_turn,
    a_job_of_a_newer_release_is_left_to_it,
});

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(100);

impl World {
    /// Someone who has just gone away: there is a job to clean up after them.
    async fn someone_gone(&self) -> proto::UserId {
        let gone = self.people(1).await[0];
        self.delete_account(gone).await.expect("a deletion");
        gone
    }
}

async fn a_job_comes_with_its_change_and_wakes_this_process(world: World) {
    let jobs = &world.ledger.jobs;
    let mut made = jobs.made();
    world.people(1).await;
    assert!(!made.has_changed().unwrap(), "a sign-up leaves nothing to be done");
    assert_eq!(jobs.claim("a", LONG).await.unwrap(), None);
    let gone = world.someone_gone().await;
    assert!(made.has_changed().unwrap());
    made.mark_unchanged();
    world.delete_account(gone).await.expect("nothing new");
    assert!(!made.has_changed().unwrap());
    assert_eq!(jobs.waiting().await.unwrap(), 1);
    let job = jobs.claim("a", LONG).await.unwrap().expect("a job");
    assert_eq!((job.kind, job.subject, job.step, job.epoch), (JobKind::CleanUp, gone, 0, 1));
    assert_eq!(job.version, world.events("user.deleted").await[0].version);
}

async fn a_job_is_ones_at_a_time_and_goes_on_from_its_checkpoint(world: World) {
    let jobs = &world.ledger.jobs;
    world.someone_gone().await;
    let owners: Vec<_> = (0..10).map(|number| format!("pod {number}")).collect();
    let claimed = join_all(owners.iter().map(|owner| jobs.claim(owner, LONG))).await;
    let mut claimed: Vec<_> = claimed.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(claimed.len(), 1, "{claimed:?}");
    let first = claimed.remove(0);
    assert!(jobs.advance(&first, 7).await.unwrap());
    let second = jobs.claim("another", LONG).await.unwrap().expect("it was given back");
    assert_eq!((second.id, second.step, second.epoch), (first.id, 7, 2));
    assert!(!jobs.advance(&first, 8).await.unwrap(), "the earlier owner's right is gone");
    assert!(!jobs.finish(&first).await.unwrap());
    assert!(jobs.finish(&second).await.unwrap());
    assert_eq!((jobs.waiting().await.unwrap(), jobs.claim("a", LONG).await.unwrap()), (0, None));
}

async fn a_lease_that_ran_out_writes_nothing_any_more(world: World) {
    let jobs = &world.ledger.jobs;
    world.someone_gone().await;
    let late = jobs.claim("a", SHORT).await.unwrap().expect("a job");
    let next = wait::until("the lease to run out", async || jobs.claim("b", LONG).await.unwrap()).await;
    assert!(!jobs.advance(&late, 5).await.unwrap());
    assert!(!jobs.finish(&late).await.unwrap());
    jobs.postpone(&late, LONG).await.unwrap();
    assert!(jobs.advance(&next, 1).await.unwrap(), "nobody took it away");
}

async fn jobs_come_in_turn(world: World) {
    let jobs = &world.ledger.jobs;
    let mut gone = Vec::new();
    for _ in 0..3 {
        gone.push(world.someone_gone().await);
    }
    for _ in 0..2 {
        for subject in &gone {
            let job = jobs.claim("a", LONG).await.unwrap().expect("a job");
            assert_eq!(job.subject, *subject, "each has its turn");
            assert!(jobs.advance(&job, job.step + 1).await.unwrap());
        }
    }
    let put_off = jobs.claim("a", LONG).await.unwrap().expect("a job");
    jobs.postpone(&put_off, LONG).await.unwrap();
    for _ in 0..4 {
        let job = jobs.claim("a", LONG).await.unwrap().expect("a job");
        assert_ne!(job.subject, put_off.subject, "what is put off holds up nobody");
        assert!(jobs.advance(&job, job.step).await.unwrap());
    }
}

async fn a_job_of_a_newer_release_is_left_to_it(world: World) {
    let jobs = &world.ledger.jobs;
    let gone = world.someone_gone().await;
    let newer = "INSERT INTO jobs (kind, subject, version, turn_us, created_at_ms) \
                 SELECT 'polish', subject, version, 0, created_at_ms FROM jobs";
    Sql::connect(&world.url).await.run(newer).await;
    let job = jobs.claim("a", LONG).await.unwrap().expect("the job that is known");
    assert_eq!((job.kind, job.subject), (JobKind::CleanUp, gone));
    assert!(jobs.finish(&job).await.unwrap());
    assert_eq!(jobs.claim("a", LONG).await.unwrap(), None);
    assert_eq!(jobs.waiting().await.unwrap(), 1, "whoever knows it will do it");
}
