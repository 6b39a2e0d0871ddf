//! The oracle: what every reader must see, computed from the ledger's SQL alone, and compared with what they do see.

mod truth;
mod witness;

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
    time::Duration,
};

use proto::{
    UserId,
    freshet::{ranking::v1::ListHotPostsRequest, timeline::v1::GetHomeTimelineRequest},
};
use tokio::time::Instant;
pub use truth::Truth;

use crate::{
    cluster::Cluster,
    crowd::Crowd,
    grpc::Client,
    journal::{Deed, Line, Outcome},
    watcher::Watcher,
};

const PAUSE: Duration = Duration::from_millis(200);
/// As many as a list can be asked for.
const HOT_POSTS: i32 = 200;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How many deeds people tried.
    pub ops: usize,
    /// What is wrong in the end.
    pub faults: Faults,
    /// How often a stream told its reader to read again.
    pub gaps: usize,
    /// How long after the load everything was right; the whole wait when it never was.
    pub healed: Duration,
}

/// What is wrong at a moment, and the first examples of it.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Answered and not there: in the ledger, in a home, on a stream.
    pub lost: usize,
    /// Shown twice, or to whom it is not for.
    pub duplicated: usize,
    /// Not on its way any more: rows in the outbox, wrong counters and hot lists, pages that cannot be read. Rows that were
    /// removed by who had no right to.
    pub stuck: usize,
    /// In the wrong order.
    pub misordered: usize,
    examples: Vec<String>,
}

impl Faults {
    /// Whether all is right.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.lost + self.duplicated + self.stuck + self.misordered == 0
    }

    /// The first few things that are wrong.
    #[must_use]
    pub fn examples(&self) -> &[String] {
        &self.examples
    }

    fn example(&mut self, text: impl FnOnce() -> String) {
        if self.examples.len() < 10 {
            self.examples.push(text());
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ops, faults, gaps, healed } = self;
        let Faults { lost, duplicated, stuck, misordered, .. } = faults;
        write!(f, "ops={ops} lost={lost} duplicated={duplicated} stuck={stuck} misordered={misordered} ")?;
        write!(f, "gaps={gaps} healed={:.1}s", healed.as_secs_f64())
    }
}

impl Verdict {
    /// Panics with what is wrong, unless nothing is.
    pub fn must_be_clean(&self, cluster: &Cluster) {
        let Faults { examples, .. } = &self.faults;
        assert!(self.faults.is_none(), "{self}\n{}\n{}", examples.join("\n"), cluster.complaints());
    }
}

/// Waits until everything is right again, and tells what is not when it never is.
pub async fn judge(cluster: &Cluster, crowd: &Crowd, heal_within: Duration) -> Verdict {
    let truth = Truth::of(cluster.database()).await;
    let began = Instant::now();
    let deadline = began + heal_within;
    let faults = loop {
        let faults = look(cluster, crowd, &truth).await;
        if faults.is_none() || Instant::now() > deadline {
            break faults;
        }
        tokio::time::sleep(PAUSE).await;
    };
    Verdict {
        ops: crowd.journal.lines().len(),
        faults,
        gaps: crowd.watchers.iter().map(|watcher| watcher.seen().gaps).sum(),
        healed: began.elapsed(),
    }
}

/// Compares everything with the truth, once.
async fn look(cluster: &Cluster, crowd: &Crowd, truth: &Truth) -> Faults {
    let mut faults = Faults::default();
    check_witness(&mut faults, truth).await;
    check_journal(&mut faults, &crowd.journal.lines(), truth).await;
    let clients = cluster.clients("timeline");
    for (number, reader) in crowd.people.iter().enumerate() {
        check_home(&mut faults, *reader, &clients[number % clients.len()], truth).await;
    }
    for watcher in &crowd.watchers {
        check_stream(&mut faults, watcher, truth).await;
    }
    let waiting = truth.outbox_rows().await;
    let miscounted = truth.miscounted_posts().await;
    faults.stuck += waiting + miscounted;
    if waiting + miscounted > 0 {
        faults.example(|| format!("{waiting} rows wait in the outbox, {miscounted} posts have a wrong counter"));
    }
    for ranking in cluster.clients("ranking") {
        check_hot_list(&mut faults, &ranking, truth).await;
    }
    faults
}

/// What was answered is in the ledger, once; what was refused is not.
async fn check_journal(faults: &mut Faults, lines: &[Line], truth: &Truth) {
    let (posts, likes, follows) = (truth.posts().await, truth.likes().await, truth.follows().await);
    // Everybody writes each post under a key of its own, with a text of its own.
    let texts: HashSet<_> = posts.values().map(|post| post.text.as_str()).collect();
    let keyed = posts.values().filter(|post| post.has_key).count();
    let beside = (posts.len() - texts.len()).max(posts.len() - keyed);
    faults.duplicated += beside;
    if beside > 0 {
        faults.example(|| format!("{} posts with {} texts and {keyed} keys", posts.len(), texts.len()));
    }
    for line in lines {
        let there = match &line.deed {
            Deed::Post { text, id: Some(id) } => posts.get(id).is_some_and(|post| post.text == *text),
            Deed::Post { text, id: None } => texts.contains(text.as_str()),
            Deed::Like { post } => likes.contains(&(post.clone(), line.person)),
            Deed::Follow { followee } => follows.contains(&(line.person, *followee)),
        };
        match line.outcome {
            Outcome::Acknowledged if !there => {
                faults.lost += 1;
                faults.example(|| format!("answered and not in the ledger: {line:?}"));
            }
            Outcome::Refused if there => {
                faults.duplicated += 1;
                faults.example(|| format!("refused and in the ledger: {line:?}"));
            }
            _ => {}
        }
    }
}

/// A post has one event, and no row of the outbox was removed by who did not hold its shard.
async fn check_witness(faults: &mut Faults, truth: &Truth) {
    // In this order: whoever posts meanwhile makes more posts than events, and is looked at again.
    let events = truth.events_of_posts().await;
    let posts = truth.posts().await.len();
    faults.lost += posts.saturating_sub(events);
    faults.duplicated += events.saturating_sub(posts);
    if events != posts {
        faults.example(|| format!("{posts} posts have {events} events"));
    }
    let removals = truth.removals_without_lease().await;
    faults.stuck += removals.len();
    if let Some(first) = removals.first() {
        faults.example(|| format!("{} rows were removed without a lease, such as {first}", removals.len()));
    }
}

async fn check_home(faults: &mut Faults, reader: UserId, client: &Client, truth: &Truth) {
    let Some(entries) = scroll(client, reader).await else {
        faults.stuck += 1;
        faults.example(|| format!("{reader}'s home cannot be read"));
        return;
    };
    // Read after the page: whatever is on the page must be in it.
    let expected = truth.home(reader).await;
    let shown: Vec<_> = entries.iter().map(|(id, _)| *id).collect();
    let likes: BTreeMap<_, _> = expected.iter().copied().collect();
    let miscounted = entries.iter().filter(|(id, count)| likes.get(id).is_some_and(|likes| likes != count)).count();
    faults.stuck += miscounted;
    if miscounted > 0 {
        faults.example(|| format!("{reader}'s home shows a wrong number of likes for {miscounted} posts"));
    }
    let once: BTreeSet<_> = shown.iter().copied().collect();
    let eligible: BTreeSet<_> = likes.into_keys().collect();
    let missing: Vec<_> = eligible.difference(&once).collect();
    faults.lost += missing.len();
    faults.duplicated += shown.len() - once.len() + once.difference(&eligible).count();
    let inverted: Vec<_> = shown.windows(2).filter(|pair| pair[0] < pair[1]).collect();
    faults.misordered += inverted.len();
    if let Some(pair) = inverted.first() {
        faults.example(|| format!("{reader}'s home shows {pair:?} in this order"));
    }
    if let Some(first) = missing.first() {
        faults.example(|| format!("{} posts are missing in {reader}'s home, such as {first}", missing.len()));
    }
}

/// A reader's whole home, by pages: ids, each with its number of likes. `None` when a page cannot be read.
pub async fn scroll(client: &Client, reader: UserId) -> Option<Vec<(i64, i64)>> {
    let (mut shown, mut max_id) = (Vec::new(), None);
    loop {
        let request = GetHomeTimelineRequest { reader_id: reader.to_string(), limit: Some(200), max_id };
        let page = client.get_home_timeline(request).await.ok()?;
        for entry in page.entries {
            shown.push((entry.id.parse().ok()?, entry.post?.like_count));
        }
        max_id = page.next_max_id;
        if max_id.is_none() {
            return Some(shown);
        }
    }
}

/// Every post since the stream was opened was shown on it, or was at home when the stream told its reader to look. It tells of
/// none twice, and what comes to the reader's screen by it comes in order.
async fn check_stream(faults: &mut Faults, watcher: &Watcher, truth: &Truth) {
    let due: HashSet<_> = truth.written_for(watcher.reader, watcher.since_unix_ms).await.into_iter().collect();
    let seen = watcher.seen();
    let shown: HashSet<_> = seen.posts.iter().map(|told| told.id).chain(seen.read_at_gaps.iter().copied()).collect();
    let missed: Vec<_> = due.difference(&shown).collect();
    faults.lost += missed.len();
    faults.duplicated += seen.repeated();
    // What was written before its author was followed is not due: told again after a kill, it may surface at any time.
    let late = seen.late(|post| due.contains(&post));
    faults.misordered += late.len();
    if let Some((late, before)) = late.first() {
        faults.example(|| format!("{}'s stream showed {late} after {before} of the same author", watcher.reader));
    }
    if seen.repeated() > 0 {
        faults.example(|| format!("{}'s stream showed {} posts again", watcher.reader, seen.repeated()));
    }
    if let Some(first) = missed.first() {
        let reader = watcher.reader;
        faults.example(|| format!("{} posts were not on {reader}'s stream, such as {first}", missed.len()));
    }
}

async fn check_hot_list(faults: &mut Faults, ranking: &Client, truth: &Truth) {
    let shown = ranking.list_hot_posts(ListHotPostsRequest { day: None, limit: Some(HOT_POSTS) }).await;
    let shown: Option<Vec<_>> =
        shown.ok().map(|list| list.posts.into_iter().map(|hot| (hot.post_id, hot.score)).collect());
    let expected = truth.hot_posts(HOT_POSTS).await;
    if shown.as_ref() != Some(&expected) {
        faults.stuck += 1;
        faults.example(|| format!("the hot list is {shown:?}, and should be {expected:?}"));
    }
}
