//! A batch of a lane's events: runs of one type go to its handler together; what can never be applied is put aside, and what
//! comes after it with the same key is parked behind it.

use std::sync::Arc;

use tracing::{error, warn};

use super::{
    APPLY_WITHIN, Cause, End, Event, Fetched, Handler, Instant, Lane, NewLetter, PARKED_KEYS_MAX, Parked, Patience,
    Received, Verdict, Worked, Worker,
};

/// A batch under way.
pub(super) struct Batch<'a> {
    worker: &'a Worker,
    lane: Lane,
    parked: Parked,
    done: Option<i64>,
    run: Run,
    patience: Patience<'a>,
}

/// Events that one handler gets together.
#[derive(Default)]
struct Run {
    handler: Option<Arc<dyn Handler>>,
    received: Vec<Received>,
    events: Vec<Event>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(worker: &'a Worker, lane: Lane, parked: Parked) -> Self {
        let patience = worker.patience(lane, Instant::now() + APPLY_WITHIN);
        Self { worker, lane, parked, done: None, run: Run::default(), patience }
    }

    /// Applies the events as far as it gets.
    pub(super) async fn apply(mut self, events: Vec<Fetched>, worked: &mut Worked) -> Result<(), End> {
        // The first was fetched first.
        if let Some(first) = events.first() {
            self.patience = self.worker.patience(self.lane, first.not_after);
        }
        let outcome = self.apply_all(events).await;
        (worked.done, worked.parked) = (self.done, Some(self.parked));
        outcome
    }

    async fn apply_all(&mut self, events: Vec<Fetched>) -> Result<(), End> {
        for Fetched { event, .. } in events {
            let verdict = self.worker.group.handlers.judge(&self.worker.pod, self.worker.group.name, &event);
            match verdict {
                Verdict::Apply(handler, decoded) => {
                    if self.parked.contains(&event.record.key) || !self.run.takes(&handler) {
                        self.flush().await?;
                    }
                    if !self.park(&event).await? {
                        self.run.add(handler, event, *decoded);
                    }
                }
                Verdict::Skip => {
                    self.flush().await?;
                    self.done = Some(event.position);
                }
                Verdict::Never(cause, error) => {
                    self.flush().await?;
                    if !self.park(&event).await? {
                        self.bury(&event, cause, error).await?;
                    }
                }
            }
        }
        self.flush().await
    }

    /// Applies the run; where one of its events breaks a rule, one by one.
    async fn flush(&mut self) -> Result<(), End> {
        let Run { handler: Some(handler), received, events } = std::mem::take(&mut self.run) else { return Ok(()) };
        let refusal = self.worker.settle(&*handler, &events, &mut self.patience).await?;
        match refusal {
            None => self.done = received.last().map(|last| last.position),
            Some(error) if events.len() == 1 => self.bury(&received[0], Cause::BrokenRule, error).await?,
            Some(_) => {
                for (event, received) in events.iter().zip(&received) {
                    self.apply_one(&*handler, event, received).await?;
                }
            }
        }
        Ok(())
    }

    async fn apply_one(&mut self, handler: &dyn Handler, event: &Event, received: &Received) -> Result<(), End> {
        if self.park(received).await? {
            return Ok(());
        }
        match self.worker.settle(handler, std::slice::from_ref(event), &mut self.patience).await? {
            None => self.done = Some(received.position),
            Some(error) => self.bury(received, Cause::BrokenRule, error).await?,
        }
        Ok(())
    }

    /// Puts an event aside that can never be applied. Its key waits from now on.
    async fn bury(&mut self, event: &Received, cause: Cause, error: String) -> Result<(), End> {
        while self.parked.len() >= PARKED_KEYS_MAX && !self.parked.contains(&event.record.key) {
            let many =
                format!("{PARKED_KEYS_MAX} keys of it have dead letters: redrive or discard them, then it goes on");
            self.patience.wait(many).await?;
            self.parked = self.worker.parked(self.lane).await?;
        }
        let (kind, position) = (&event.record.kind, event.position);
        error!(position, "a {kind} event of {} is a dead letter: {error}", self.lane);
        let letter = self.letter(event, cause, error);
        let worker = self.worker;
        // The copy first: it may be there twice, but is never missing.
        worker.asked(self.lane, || worker.log.bury(&letter)).await?;
        worker.asked(self.lane, || worker.letters.bury(&letter)).await?;
        // Without a key there is no order to keep.
        if !event.record.key.is_empty() {
            self.parked.insert(event.record.key.clone());
        }
        self.done = Some(position);
        Ok(())
    }

    /// Puts an event aside whose key waits. False when it does not wait.
    async fn park(&mut self, event: &Received) -> Result<bool, End> {
        if !self.parked.contains(&event.record.key) {
            return Ok(false);
        }
        let letter = self.letter(event, Cause::Parked, "an earlier event of its key is a dead letter".to_owned());
        let worker = self.worker;
        if !worker.asked(self.lane, || worker.letters.park(&letter)).await? {
            // Somebody discarded what it would wait for.
            self.parked.remove(&event.record.key);
            return Ok(false);
        }
        warn!(
            position = event.position,
            "a {} event of {} is parked behind a dead letter", event.record.kind, self.lane
        );
        worker.asked(self.lane, || worker.log.bury(&letter)).await?;
        self.done = Some(event.position);
        Ok(true)
    }

    fn letter<'b>(&self, event: &'b Received, cause: Cause, error: String) -> NewLetter<'b>
    where
        'a: 'b,
    {
        let (worker, attempts) = (self.worker, self.patience.attempts + 1);
        NewLetter { group: worker.group.name, event, cause, error, attempts, pod: worker.pod.name() }
    }
}

impl Run {
    /// Whether an event for this handler can go with the rest.
    fn takes(&self, handler: &Arc<dyn Handler>) -> bool {
        self.handler.as_ref().is_none_or(|own| Arc::ptr_eq(own, handler))
    }

    fn add(&mut self, handler: Arc<dyn Handler>, received: Received, event: Event) {
        self.handler = Some(handler);
        self.received.push(received);
        self.events.push(event);
    }
}
