//! A sorted set as Redis has it: members by score, then by their bytes.

use std::collections::BTreeSet;

/// Members in order.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedSet {
    members: BTreeSet<Place>,
}

#[derive(Clone, Debug)]
struct Place {
    score: f64,
    member: Box<[u8]>,
}

impl SortedSet {
    /// Adds a member; one that is there already stays. A member never changes its score here.
    pub(super) fn add(&mut self, score: f64, member: &[u8]) {
        self.members.insert(Place { score, member: member.into() });
    }

    pub(super) fn remove(&mut self, score: f64, member: &[u8]) {
        self.members.remove(&Place { score, member: member.into() });
    }

    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    pub(super) fn pop_last(&mut self) -> Option<Box<[u8]>> {
        self.members.pop_last().map(|place| place.member)
    }

    pub(super) fn last(&self) -> Option<&[u8]> {
        self.members.last().map(|place| &*place.member)
    }

    /// In order, the lowest score first.
    pub(super) fn members(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(|place| &*place.member)
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.score.total_cmp(&other.score).then_with(|| self.member.cmp(&other.member))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}
