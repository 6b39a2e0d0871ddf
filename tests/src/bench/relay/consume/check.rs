//! Whether all that was measured was also done: by both sides, to the last post.

use std::collections::HashSet;

use proto::UserId;
use store::sets::Entry;

use super::{Bench, People, backlog::Posts, peer::Peer};

/// Every how many people are looked at.
const LOOK_EVERY: usize = 50;
/// Less than a cut leaves, so that the page lies above the coverage.
const PAGE: usize = 90;

/// Compares archive, recents and homes of some people with what was made.
pub(super) async fn all_is_there(bench: &Bench, peer: &Peer, people: &People, posts: &Posts) {
    for person in people.all.iter().step_by(LOOK_EVERY) {
        let own = newest_of(posts, |author| author == *person);
        let ids: Vec<_> = own.iter().map(|entry| entry.id.get()).collect();
        assert_eq!(peer.archive.ids_of(*person).await, ids, "the posts of {person} in the archive");
        let recents = bench.stores.sets.recents.newest(*person, PAGE).await.expect("recents");
        assert_eq!(recents, own[..own.len().min(PAGE)], "the recents of {person}");

        let followees: HashSet<_> =
            people.followers.iter().filter(|(_, all)| all.contains(person)).map(|(one, _)| *one).collect();
        let due = newest_of(posts, |author| followees.contains(&author));
        let home = bench.stores.sets.homes.page(*person, None, PAGE).await.expect("an answer").expect("a home");
        assert_eq!(home.entries, due[..due.len().min(PAGE)], "the home of {person}");
    }
}

fn newest_of(posts: &Posts, is_wanted: impl Fn(UserId) -> bool) -> Vec<Entry> {
    posts.made.iter().rev().filter(|entry| is_wanted(entry.author)).copied().collect()
}
