//! Cleans up after a person who is gone: all that they have to do with others ends, each end with its event, so that the others'
//! numbers, homes and lists follow. What is ended is not found again: a chunk that is done twice finds the next ones.

use std::sync::Arc;

use chassis::{Error, id::Minter};
use proto::{
    UserId,
    freshet::event::v1::{PostDeleted, envelope::Payload},
};
use store::{
    Stores,
    ledger::{Deleted, Departures, Event, FollowLimits, GraphChange, Job, Tie, Unliked},
    sets::HomeTimelines,
};

use super::Next;

/// Ends a transaction: few enough to be quick, because the numbers of as many people are locked meanwhile.
const CHUNK_ENDS: usize = 100;

/// What is done one after the other. Where a step is stands in the job's row: what comes later must come behind.
#[derive(Clone, Copy)]
enum Step {
    Ties(Tie),
    Likes,
    Posts,
    Home,
}

pub(super) struct CleanUp {
    departures: Arc<dyn Departures>,
    homes: Arc<dyn HomeTimelines>,
    ids: Arc<Minter>,
    limits: FollowLimits,
}

impl CleanUp {
    pub(super) fn new(stores: &Stores, ids: Arc<Minter>, limits: FollowLimits) -> Self {
        Self { departures: stores.ledger.departures.clone(), homes: stores.sets.homes.clone(), ids, limits }
    }

    pub(super) async fn chunk(&self, job: &Job) -> Result<Next, Error> {
        let place = usize::try_from(job.step).map_err(Error::internal)?;
        let Some(step) = steps().nth(place) else { return Ok(Next::Through) };
        let more = self.step(job.subject, step).await?;
        Ok(Next::Step(if more { job.step } else { job.step + 1 }))
    }

    /// Does a chunk of a step. Whether there is more of it.
    async fn step(&self, person: UserId, step: Step) -> Result<bool, Error> {
        let ended = match step {
            Step::Ties(tie) => {
                let [ends, crossings] = [self.events(&GraphChange::payload)?, self.events(&GraphChange::payload)?];
                let events: Vec<_> = ends.into_iter().zip(crossings).map(<[_; 2]>::from).collect();
                self.departures.end_ties(person, tie, self.limits, &events).await?
            }
            Step::Likes => {
                let events = self.events(&Unliked::payload)?;
                self.departures.end_likes(person, &events).await?
            }
            Step::Posts => {
                let events = self.events(&deleted)?;
                self.departures.delete_posts(person, &events).await?
            }
            Step::Home => {
                // Once more: the pod that deleted the account may have died before it did.
                self.homes.remove(person).await?;
                0
            }
        };
        Ok(ended == CHUNK_ENDS)
    }

    /// As many events as a chunk may need, minted just before it.
    fn events<Row>(
        &self,
        compose: &'static (dyn Fn(&Row) -> Payload + Send + Sync),
    ) -> Result<Vec<Event<'static, Row>>, Error> {
        (0..CHUNK_ENDS).map(|_| Ok(Event { id: self.ids.mint()?, compose })).collect()
    }
}

fn steps() -> impl Iterator<Item = Step> {
    [Step::Home].into_iter().chain(Tie::ALL.map(Step::Ties)).chain([Step::Likes, Step::Posts])
}

fn deleted(row: &Deleted) -> Payload {
    Payload::PostDeleted(PostDeleted { post_id: row.id.to_string(), author_id: row.author.to_string() })
}
