//! How authors' posts reach their followers: a crossing is part of the follow that makes it, and ends with its job.

use std::time::Duration;

use proto::{
    UserId,
    freshet::event::v1::{Envelope, FanOut, envelope::Payload},
};
use store::ledger::{Job, JobKind, Mode};

use super::{CELEBRITY_FOLLOWERS, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    an_author_rises_and_falls_with_the_number_of_followers,
    who_crosses_again_has_another_job_and_the_old_one_settles_nothing,
    who_goes_away_makes_others_fall,
});

const LONG: Duration = Duration::from_secs(60);

impl World {
    async fn mode(&self, author: UserId) -> Option<Mode> {
        self.ledger.modes.modes(&[author]).await.unwrap().first().map(|found| found.mode)
    }

    async fn job(&self) -> Job {
        self.ledger.jobs.claim("a", LONG).await.unwrap().expect("a job")
    }

    pub(super) async fn settle(&self, job: &Job) -> Result<bool, store::Error> {
        let [event] = self.events_of();
        self.ledger.modes.settle(job, event).await
    }

    /// How each post of an author reaches the homes, by its event.
    async fn fan_outs(&self) -> Vec<FanOut> {
        let of = |event: &Envelope| match &event.payload {
            Some(Payload::PostCreated(created)) => created.fan_out(),
            other => panic!("{other:?}"),
        };
        self.events("post.created").await.iter().map(of).collect()
    }

    /// A celebrity, with as few followers as one can have, and the followers.
    pub(super) async fn celebrity(&self) -> (UserId, Vec<UserId>) {
        let (star, followers) = (self.people(1).await[0], self.people(CELEBRITY_FOLLOWERS as usize).await);
        for follower in &followers {
            self.follow(*follower, star).await.unwrap();
        }
        (star, followers)
    }
}

async fn an_author_rises_and_falls_with_the_number_of_followers(world: World) {
    let (star, followers) = (world.people(1).await[0], world.people(CELEBRITY_FOLLOWERS as usize).await);
    let reader = followers[0];
    let merged = async || {
        let found = world.ledger.modes.merged_followees(reader).await.unwrap();
        found.iter().map(|found| (found.author, found.mode)).collect::<Vec<_>>()
    };
    for follower in &followers[1..] {
        world.follow(*follower, star).await.unwrap();
    }
    world.post(star, "pushed").await.unwrap();
    assert_eq!((world.mode(star).await, world.ledger.jobs.waiting().await.unwrap()), (None, 0));

    world.follow(reader, star).await.unwrap();
    assert_eq!((world.mode(star).await, merged().await), (Some(Mode::Rising), vec![(star, Mode::Rising)]));
    world.post(star, "pushed and merged").await.unwrap();
    let job = world.job().await;
    assert_eq!((job.kind, job.subject), (JobKind::MarkPull, star));
    assert!(world.settle(&job).await.unwrap());
    assert_eq!((world.mode(star).await, merged().await), (Some(Mode::Pull), vec![(star, Mode::Pull)]));
    world.post(star, "merged").await.unwrap();
    assert!(!world.settle(&job).await.unwrap(), "the job has ended");

    // One fewer is no reason yet; below nine tenths is.
    world.unfollow(followers[1], star).await.unwrap();
    assert_eq!(world.mode(star).await, Some(Mode::Pull));
    world.block(followers[2], star).await.unwrap();
    assert_eq!((world.mode(star).await, merged().await), (Some(Mode::Falling), vec![]));
    world.post(star, "pushed and merged").await.unwrap();
    let job = world.job().await;
    assert_eq!((job.kind, job.subject), (JobKind::MergePulled, star));
    assert!(world.settle(&job).await.unwrap());
    world.post(star, "pushed").await.unwrap();

    assert_eq!(world.mode(star).await, Some(Mode::Push));
    let expected = [FanOut::Push, FanOut::Both, FanOut::Pull, FanOut::Both, FanOut::Push];
    assert_eq!(world.fan_outs().await, expected);
    let told = world.events("graph.mode_changed").await;
    assert!(told.is_sorted_by_key(|event| event.version) && told.len() == 4, "{told:?}");
}

async fn who_crosses_again_has_another_job_and_the_old_one_settles_nothing(world: World) {
    let (star, followers) = world.celebrity().await;
    let old = world.job().await;
    for follower in &followers[..2] {
        world.unfollow(*follower, star).await.unwrap();
    }
    assert_eq!(world.mode(star).await, Some(Mode::Falling));
    assert!(world.settle(&old).await.unwrap(), "the job ends");
    assert_eq!(world.mode(star).await, Some(Mode::Falling), "and settles nothing");
    let new = world.job().await;
    assert!(new.version > old.version && new.kind == JobKind::MergePulled, "{new:?} after {old:?}");
    assert!(world.settle(&new).await.unwrap());
    assert_eq!(world.mode(star).await, Some(Mode::Push));
}

async fn who_goes_away_makes_others_fall(world: World) {
    let (star, followers) = world.celebrity().await;
    let rising = world.job().await;
    assert!(world.settle(&rising).await.unwrap());
    for gone in &followers[..2] {
        world.delete_account(*gone).await.unwrap();
        assert_eq!(world.end_ties(*gone, store::ledger::Tie::Following, 9).await.unwrap(), 1);
    }
    assert_eq!(world.mode(star).await, Some(Mode::Falling));
}
