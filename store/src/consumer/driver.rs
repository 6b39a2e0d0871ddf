//! A member of a group at work: it takes events from the log into a bounded queue a lane, has each lane's job done, and commits
//! what is done. It asks the log for more all the while, so that a lane whose sinks are slow or down is paused and never
//! costs the member its place.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use chassis::{Stop, failpoint};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tracing::{Instrument as _, info, warn};

use super::{
    Consumption,
    job::{APPLY_WITHIN, Fetched, Job, Parked, Then, Worked, Worker},
    retry::End,
};
use crate::{
    Error,
    event_log::{Consumer, Lane, Received, Turn},
};

/// Events that wait in a lane's queue, until it is paused.
const QUEUE_EVENTS_MAX: usize = 1024;
/// It is resumed when so few are left.
const QUEUE_EVENTS_LOW: usize = 256;
/// Events that a handler gets at once.
const BATCH_EVENTS_MAX: usize = 256;
const COMMIT_EVERY: Duration = Duration::from_millis(100);
/// How often dead letters are looked for that somebody wants to be driven again.
const ORDERS_EVERY: Duration = Duration::from_secs(1);
/// How often it is noted, and checked, how far the sets are.
const NOTE_EVERY: Duration = Duration::from_secs(5);
const _: () = assert!(QUEUE_EVENTS_LOW < QUEUE_EVENTS_MAX);

/// A lane that is this member's.
struct LaneState {
    turn: Turn,
    queue: VecDeque<Fetched>,
    paused: bool,
    /// Whether a job has it.
    busy: bool,
    begun: bool,
    /// The keys that have dead letters. While a job has the lane, the job has them.
    parked: Parked,
    /// Up to where all is done; not known until the first event comes.
    done: Option<i64>,
    redrive: bool,
    note_due: bool,
    /// Whether it went back to where the sets are, and they need to know.
    went_back: bool,
}

/// What a job or a look came to.
enum Outcome {
    Worked(Worked),
    Orders(Vec<Lane>),
}

/// A member at work.
pub(super) struct Driver {
    group: &'static str,
    consumer: Box<dyn Consumer>,
    worker: Arc<Worker>,
    lanes: HashMap<Lane, LaneState>,
    jobs: JoinSet<Outcome>,
    stop: Stop,
    uncommitted: bool,
    looking_for_orders: bool,
}

impl Driver {
    pub(super) fn new(consumption: &Consumption, consumer: Box<dyn Consumer>, stop: Stop) -> Self {
        Self {
            group: consumption.group.name,
            consumer,
            worker: Arc::new(Worker::new(consumption, stop.clone())),
            lanes: HashMap::new(),
            jobs: JoinSet::new(),
            stop,
            uncommitted: false,
            looking_for_orders: false,
        }
    }

    /// Consumes until the pod drains; then what is under way is finished or left, and what is done committed.
    pub(super) async fn run(mut self) -> Result<(), Error> {
        let [mut commits, mut orders, mut notes] = [COMMIT_EVERY, ORDERS_EVERY, NOTE_EVERY].map(interval);
        for ticks in [&mut commits, &mut orders, &mut notes] {
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        let stop = self.stop.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                events = self.consumer.next() => self.take(events?).await?,
                Some(outcome) = self.jobs.join_next() => self.settle(joined(outcome)?).await?,
                _ = commits.tick(), if self.uncommitted => {
                    self.commit().await;
                }
                _ = orders.tick() => self.look_for_orders(),
                _ = notes.tick() => self.lanes.values_mut().for_each(|lane| lane.note_due = true),
            }
            self.follow_the_assignment();
            self.dispatch().await?;
        }
        while let Some(outcome) = self.jobs.join_next().await {
            self.settle(joined(outcome)?).await?;
        }
        self.commit().await;
        Ok(())
    }

    /// Puts what came into the queues.
    async fn take(&mut self, events: Vec<Received>) -> Result<(), Error> {
        let not_after = Instant::now() + APPLY_WITHIN;
        // The fault that the harness must notice: what is committed before it is done is lost when the process dies.
        let commits_first = failpoint::is_on("consumer.commits_first");
        for event in events {
            let lane = event.lane();
            let Some(turn) = self.consumer.turn(lane) else { continue };
            if commits_first {
                self.consumer.done(lane, turn, event.position);
            }
            let state = self.lanes.entry(lane).or_insert_with(|| LaneState::new(turn));
            if state.turn != turn {
                *state = LaneState::new(turn);
            }
            // What came before the first one was done when the lane was taken.
            state.done.get_or_insert(event.position - 1);
            state.queue.push_back(Fetched { event, not_after });
            if state.queue.len() >= QUEUE_EVENTS_MAX && !state.paused {
                state.paused = true;
                self.consumer.pause(lane)?;
            }
        }
        if commits_first {
            self.consumer.commit().await?;
        }
        Ok(())
    }

    /// Begins with lanes that came, and forgets those that went to others. Their jobs are left to themselves: what they still
    /// do is allowed to happen twice.
    fn follow_the_assignment(&mut self) {
        let held = self.consumer.lanes();
        self.lanes.retain(|lane, state| held.get(lane) == Some(&state.turn));
        for (lane, turn) in held {
            self.lanes.entry(lane).or_insert_with(|| LaneState::new(turn));
        }
    }

    /// Gives every idle lane its next job.
    async fn dispatch(&mut self) -> Result<(), Error> {
        let idle: Vec<_> = self.lanes.iter().filter(|(_, state)| !state.busy).map(|(lane, _)| *lane).collect();
        for lane in idle {
            let Some(state) = self.lanes.get_mut(&lane) else { continue };
            if state.is_stale() {
                self.fetch_again(lane).await?;
                continue;
            }
            let Some(job) = state.next_job() else { continue };
            state.busy = true;
            let (worker, turn, span) = (self.worker.clone(), state.turn, self.worker.pod.span().clone());
            let work = async move { Outcome::Worked(worker.work(lane, turn, job).await) };
            self.jobs.spawn(work.instrument(span));
        }
        Ok(())
    }

    async fn settle(&mut self, outcome: Outcome) -> Result<(), Error> {
        let worked = match outcome {
            Outcome::Worked(worked) => worked,
            Outcome::Orders(lanes) => {
                self.looking_for_orders = false;
                for lane in lanes {
                    if let Some(state) = self.lanes.get_mut(&lane) {
                        state.redrive = true;
                    }
                }
                return Ok(());
            }
        };
        let Worked { lane, turn, done, parked, then } = worked;
        if let Some(position) = done {
            // Also when the lane was lost: the log knows by the turn.
            self.consumer.done(lane, turn, position);
            self.uncommitted = true;
        }
        let Some(state) = self.lanes.get_mut(&lane).filter(|state| state.turn == turn) else { return Ok(()) };
        state.busy = false;
        state.done = done.or(state.done);
        if let Some(parked) = parked {
            (state.begun, state.parked) = (true, parked);
        }
        if state.paused && state.queue.len() <= QUEUE_EVENTS_LOW {
            state.paused = false;
            self.consumer.resume(lane)?;
        }
        match then {
            Then::GoOn | Then::Ended(End::Draining) => Ok(()),
            Then::Ended(End::Stale) => self.fetch_again(lane).await,
            Then::BackTo(position) => {
                info!("{} applies {lane} again after {position}: the sets are of an earlier time", self.group);
                self.rewind(lane, position + 1).await?;
                // Should this fail, the next look at the sets finds the same again.
                let committed = self.commit().await;
                if let Some(state) = self.lanes.get_mut(&lane) {
                    state.went_back = committed;
                }
                Ok(())
            }
        }
    }

    /// Has a lane fetched again from the first event that is not done: what waited was fetched too long ago.
    async fn fetch_again(&mut self, lane: Lane) -> Result<(), Error> {
        match self.lanes.get(&lane).and_then(|state| state.done) {
            Some(done) => self.rewind(lane, done + 1).await,
            None => Ok(()),
        }
    }

    async fn rewind(&mut self, lane: Lane, position: i64) -> Result<(), Error> {
        let Some(state) = self.lanes.get_mut(&lane) else { return Ok(()) };
        state.queue.clear();
        state.done = Some(position - 1);
        if std::mem::take(&mut state.paused) {
            self.consumer.resume(lane)?;
        }
        let turn = state.turn;
        self.consumer.rewind(lane, position).await?;
        // Whoever takes the lane over must not begin further on.
        self.consumer.done(lane, turn, position - 1);
        self.uncommitted = true;
        Ok(())
    }

    /// Commits what is done; false when that cannot be now. Then it goes with the next commit.
    async fn commit(&mut self) -> bool {
        failpoint::reach("consumer.before_commit").await;
        let (health, part) = (&self.worker.pod.health, format!("{} commits", self.group));
        match self.consumer.commit().await {
            Ok(()) => {
                self.uncommitted = false;
                health.recover(&part);
                true
            }
            Err(cause) => {
                if health.degrade(&part, cause.to_string()) {
                    warn!("{} cannot commit what is done, and tries again: {cause}", self.group);
                }
                false
            }
        }
    }

    fn look_for_orders(&mut self) {
        if std::mem::replace(&mut self.looking_for_orders, true) {
            return;
        }
        let (worker, group) = (self.worker.clone(), self.group);
        self.jobs.spawn(async move {
            // While the ledger is away nobody can order anything either.
            Outcome::Orders(worker.letters.lanes_to_redrive(group).await.unwrap_or_default())
        });
    }
}

impl LaneState {
    fn new(turn: Turn) -> Self {
        Self {
            turn,
            queue: VecDeque::new(),
            paused: false,
            busy: false,
            begun: false,
            parked: Parked::new(),
            done: None,
            redrive: false,
            note_due: false,
            went_back: false,
        }
    }

    /// Whether what waits was fetched too long ago to be applied.
    fn is_stale(&self) -> bool {
        self.queue.front().is_some_and(|first| first.not_after <= Instant::now())
    }

    fn next_job(&mut self) -> Option<Job> {
        if !self.begun {
            return Some(Job::Begin);
        }
        if std::mem::take(&mut self.went_back) {
            return Some(Job::Accept);
        }
        if std::mem::take(&mut self.redrive) {
            return Some(Job::Redrive);
        }
        if std::mem::take(&mut self.note_due) {
            return Some(Job::Note(self.done));
        }
        if self.queue.is_empty() {
            return None;
        }
        let events = self.queue.drain(..self.queue.len().min(BATCH_EVENTS_MAX)).collect();
        Some(Job::Apply(events, std::mem::take(&mut self.parked)))
    }
}

fn joined(outcome: Result<Outcome, tokio::task::JoinError>) -> Result<Outcome, Error> {
    outcome.map_err(|cause| Error::Fault { store: "the consumer", cause: cause.to_string() })
}
