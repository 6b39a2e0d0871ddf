//! The events that this pod was told of lately. The relay tells at least once: after a kill, or while Kafka was away, it may
//! tell of hundreds of them again, long after the first time.

use std::collections::{HashMap, VecDeque};

use proto::EventId;

use crate::limits::TOLD_EVENTS_MAX;

/// Which delivery of a pod: they are counted.
pub(crate) type Turn = u64;

/// What the pod was told, and when first. One memory serves all its streams.
#[derive(Default)]
pub(crate) struct Told {
    turn: Turn,
    first: HashMap<EventId, Turn>,
    order: VecDeque<EventId>,
}

impl Told {
    /// How many deliveries there were.
    pub(crate) const fn turn(&self) -> Turn {
        self.turn
    }

    /// Notes a delivery of an event. Gives the turn of the first one: whoever was there by then has had it.
    pub(crate) fn again(&mut self, event: EventId) -> Option<Turn> {
        self.turn += 1;
        if let Some(first) = self.first.get(&event) {
            return Some(*first);
        }
        if self.order.len() == TOLD_EVENTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.first.remove(&oldest);
        }
        self.first.insert(event, self.turn);
        self.order.push_back(event);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_known_until_many_others_came() {
        let mut told = Told::default();
        let event = |number: usize| EventId::new(i64::try_from(number).unwrap() + 1).unwrap();
        assert_eq!(told.again(event(0)), None);
        for number in 1..TOLD_EVENTS_MAX {
            assert_eq!(told.again(event(number)), None);
        }
        assert_eq!(told.again(event(0)), Some(1));
        assert_eq!(told.again(event(TOLD_EVENTS_MAX)), None);
        assert_eq!(told.again(event(0)), None, "forgotten, as the oldest");
        assert_eq!((told.first.len(), told.order.len()), (TOLD_EVENTS_MAX, TOLD_EVENTS_MAX));
    }
}
