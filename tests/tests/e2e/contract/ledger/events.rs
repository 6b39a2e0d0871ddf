//! No change forgets its event: every method of the ledger that takes one is made here, and must be. And whatever writes a
//! table of the truth writes an event beside it.

use std::{collections::BTreeSet, fs, future::Future, path::Path, time::Duration};

use prost::Message as _;
use proto::{PostId, UserId, freshet::event::v1::Envelope};
use store::{
    Error, Shard,
    ledger::{OutboxRow, OwnAccount, PostChange, ProfileChange, Tie},
};
use tests::tools::root;

use super::{SHARDS, World, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    postgres = tests::servers::Adapter::Postgres,
] {
    every_change_writes_its_event_and_no_other_call_does,
});

/// Tables that others derive nothing from: what is written there needs no event.
const CARRY_NO_TRUTH: [&str; 13] = [
    "jobs",
    "user_counters",
    "archive_fills",
    "install",
    "outbox",
    "shard_leases",
    "writer_leases",
    "event_log",
    "event_offsets",
    "dead_letters",
    "audit",
    "post_keys",
    "passwords",
];

/// A stranger's id, and that of a post that nobody wrote.
const UNKNOWN: i64 = 1;

/// Names each change as `Trait::method`, and who makes it.
macro_rules! changes {
    ($($method:literal = $made_by:ident,)*) => {
        const MADE: &[&str] = &[$($method),*];

        async fn every_change_writes_its_event_and_no_other_call_does(world: World) {
            $($made_by(&world).await;)*
        }
    };
}

changes! {
    "Accounts::create" = sign_ups,
    "Accounts::update" = profile_changes,
    "Accounts::delete" = deletions,
    "Graph::follow" = follows,
    "Graph::unfollow" = unfollows,
    "Blocks::block" = blocks,
    "Blocks::unblock" = unblocks,
    "Mutes::mute" = mutes,
    "Mutes::unmute" = unmutes,
    "FollowRequests::set_private" = privacy,
    "FollowRequests::accept" = acceptances,
    "FollowRequests::reject" = rejections,
    "RemoteAuthors::upsert" = remote_authors,
    "Posts::create" = posts,
    "Posts::update" = edits,
    "Posts::delete" = deletions_of_posts,
    "Posts::like" = likes,
    "Posts::unlike" = unlikes,
    "Modes::settle" = settled_modes,
    "Departures::end_ties" = ends_of_ties,
    "Departures::end_likes" = ends_of_likes,
    "Departures::delete_posts" = ends_of_posts,
}

async fn sign_ups(world: &World) {
    let (ada, first) = writes(world, ["user.created", "users"], UserId::to_string, world.sign_up("ada")).await;
    let (_, second) = writes(world, ["user.created", "users"], UserId::to_string, world.sign_up("lin")).await;
    assert!(second > first, "{second} after {first}");
    writes_nothing(world, world.sign_up("ada")).await.expect_err("a taken handle");
    assert!(world.ledger.accounts.exists(ada).await.unwrap());
}

async fn profile_changes(world: &World) {
    let ada = world.people(1).await[0];
    let named = |name: &str| ProfileChange { display_name: Some(name.to_owned()), ..ProfileChange::default() };
    let key = |_: &OwnAccount| ada.to_string();
    let (_, first) = writes(world, ["user.changed", "users"], key, world.update(ada, named("Ada"))).await;
    let (_, second) = writes(world, ["user.changed", "users"], key, world.update(ada, named("Ada L."))).await;
    assert!(second > first, "{second} after {first}");
    writes_nothing(world, world.update(ada, named("Ada L."))).await.unwrap();
    writes_nothing(world, world.update(UserId::new(UNKNOWN).unwrap(), named("Ada"))).await.expect_err("a stranger");
}

async fn deletions(world: &World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let (_, first) = writes(world, ["user.deleted", "users"], |_| ada.to_string(), world.delete_account(ada)).await;
    let (_, second) = writes(world, ["user.deleted", "users"], |_| lin.to_string(), world.delete_account(lin)).await;
    assert!(second > first, "{second} after {first}");
    assert!(!writes_nothing(world, world.delete_account(ada)).await.unwrap());
    writes_nothing(world, world.delete_account(UserId::new(UNKNOWN).unwrap())).await.expect_err("a stranger");
}

async fn follows(world: &World) {
    let [ada, lin, max] = world.people(3).await[..] else { unreachable!() };
    let key = |_: &bool| ada.to_string();
    let (_, first) = writes(world, ["graph.followed", "graph"], key, world.follow(ada, lin)).await;
    let (_, second) = writes(world, ["graph.followed", "graph"], key, world.follow(ada, max)).await;
    assert!(second > first, "{second} after {first}");
    assert!(!writes_nothing(world, world.follow(ada, lin)).await.unwrap());
    let stranger = UserId::new(UNKNOWN).unwrap();
    writes_nothing(world, world.follow(ada, stranger)).await.expect_err("a stranger");
}

async fn unfollows(world: &World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    writes_nothing(world, world.unfollow(ada, lin)).await.unwrap();
    let (_, first) = writes(world, ["graph.followed", "graph"], |_| ada.to_string(), world.follow(ada, lin)).await;
    let key = |_: &_| ada.to_string();
    let (_, second) = writes(world, ["graph.unfollowed", "graph"], key, world.unfollow(ada, lin)).await;
    assert!(second > first, "{second} after {first}");
    writes_nothing(world, world.unfollow(ada, lin)).await.unwrap();
}

async fn blocks(world: &World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let key = |_: &_| ada.to_string();
    writes(world, ["graph.blocked", "graph"], key, world.block(ada, lin)).await;
    writes_nothing(world, world.block(ada, lin)).await.unwrap();
    writes_nothing(world, world.follow(ada, lin)).await.expect_err("a block");
    writes_nothing(world, world.follow(lin, ada)).await.expect_err("a block");
    world.unblock(ada, lin).await.unwrap();
    world.follow(ada, lin).await.unwrap();
    world.follow(lin, ada).await.unwrap();
    // The follows that it ends have events of their own, each under the key of who followed.
    let (_, new) = made(world, world.block(ada, lin)).await;
    let mut told: Vec<_> = new.iter().map(|(_, row)| (row.kind.as_str(), row.key.clone())).collect();
    told.sort_unstable();
    let expected = [("graph.blocked", ada), ("graph.unfollowed", ada), ("graph.unfollowed", lin)];
    assert_eq!(told, expected.map(|(kind, key)| (kind, key.to_string())));
    assert!(new.iter().all(|(shard, row)| *shard == Shard::of(&row.key, SHARDS)));
}

async fn unblocks(world: &World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    writes_nothing(world, world.unblock(ada, lin)).await.unwrap();
    world.block(ada, lin).await.unwrap();
    let key = |_: &_| ada.to_string();
    writes(world, ["graph.unblocked", "graph"], key, world.unblock(ada, lin)).await;
    writes_nothing(world, world.unblock(ada, lin)).await.unwrap();
}

async fn mutes(world: &World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let key = |_: &_| ada.to_string();
    let (_, first) = writes(world, ["graph.muted", "graph"], key, world.mute(ada, lin, None)).await;
    writes_nothing(world, world.mute(ada, lin, None)).await.unwrap();
    let (_, second) = writes(world, ["graph.muted", "graph"], key, world.mute(ada, lin, Some(i64::MAX / 2))).await;
    assert!(second > first, "{second} after {first}");
    writes_nothing(world, world.mute(ada, lin, Some(i64::MAX / 2))).await.unwrap();
}

async fn unmutes(world: &World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    writes_nothing(world, world.unmute(ada, lin)).await.unwrap();
    world.mute(ada, lin, None).await.unwrap();
    let key = |_: &_| ada.to_string();
    writes(world, ["graph.unmuted", "graph"], key, world.unmute(ada, lin)).await;
    writes_nothing(world, world.unmute(ada, lin)).await.unwrap();
}

async fn privacy(world: &World) {
    let ada = world.people(1).await[0];
    writes_nothing(world, world.set_private(ada, false)).await.unwrap();
    let key = |_: &_| ada.to_string();
    let (_, first) = writes(world, ["user.privacy_changed", "users"], key, world.set_private(ada, true)).await;
    writes_nothing(world, world.set_private(ada, true)).await.unwrap();
    let (_, second) = writes(world, ["user.privacy_changed", "users"], key, world.set_private(ada, false)).await;
    assert!(second > first, "{second} after {first}");
}

/// Someone who asks, and whom.
async fn asked(world: &World) -> [UserId; 2] {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    world.set_private(lin, true).await.unwrap();
    let key = |_: &_| ada.to_string();
    writes(world, ["graph.follow_requested", "graph"], key, world.follow(ada, lin)).await;
    writes_nothing(world, world.follow(ada, lin)).await.unwrap();
    [ada, lin]
}

async fn acceptances(world: &World) {
    let [ada, lin] = asked(world).await;
    let (_, new) = made(world, world.accept(ada, lin)).await;
    let told: Vec<_> = new.iter().map(|(_, row)| (row.kind.as_str(), row.key.clone())).collect();
    assert_eq!(told, ["graph.follow_accepted", "graph.followed"].map(|kind| (kind, ada.to_string())));
    writes_nothing(world, world.accept(ada, lin)).await.unwrap();
}

async fn rejections(world: &World) {
    let [ada, lin] = asked(world).await;
    let key = |_: &_| ada.to_string();
    writes(world, ["graph.follow_rejected", "graph"], |_| ada.to_string(), world.reject(ada, lin)).await;
    writes_nothing(world, world.reject(ada, lin)).await.unwrap();
    writes_nothing(world, world.accept(ada, lin)).await.expect_err("no request");
    world.follow(ada, lin).await.unwrap();
    writes(world, ["graph.follow_withdrawn", "graph"], key, world.unfollow(ada, lin)).await;
}

async fn remote_authors(world: &World) {
    let key = |account: &store::ledger::Account| account.id.to_string();
    let kind = ["user.remote_upserted", "users"];
    let (first, version) = writes(world, kind, key, world.upsert_remote("1", "eve@far.example", "Eve")).await;
    let again = writes_nothing(world, world.upsert_remote("1", "eve@far.example", "Eve")).await.unwrap();
    assert_eq!(again, first);
    let (renamed, later) = writes(world, kind, key, world.upsert_remote("1", "eve@far.example", "Eva")).await;
    assert_eq!((renamed.id, renamed.created_at_ms, later > version), (first.id, first.created_at_ms, true));
    writes_nothing(world, world.upsert_remote("2", "eve@far.example", "Eve")).await.expect_err("a taken handle");
}

async fn posts(world: &World) {
    let ada = world.people(1).await[0];
    let key = |post: &store::ledger::Post| post.author.to_string();
    let (_, first) = writes(world, ["post.created", "posts"], key, world.post(ada, "first")).await;
    let (_, second) = writes(world, ["post.created", "posts"], key, world.post(ada, "second")).await;
    assert!(second > first, "{second} after {first}");
    writes_nothing(world, world.post(UserId::new(UNKNOWN).unwrap(), "third")).await.expect_err("a stranger");
}

async fn likes(world: &World) {
    let [ada, lin] = world.people(2).await[..] else { unreachable!() };
    let post = world.post(ada, "hello").await.unwrap().id;
    let key = |_: &store::ledger::Likes| post.to_string();
    let (_, first) = writes(world, ["post.liked", "likes"], key, world.like(ada, post)).await;
    let (_, second) = writes(world, ["post.liked", "likes"], key, world.like(lin, post)).await;
    assert!(second > first, "{second} after {first}");
    assert_eq!(writes_nothing(world, world.like(ada, post)).await.unwrap().count, 2);
    writes_nothing(world, world.like(ada, PostId::new(UNKNOWN).unwrap())).await.expect_err("no such post");
}

async fn edits(world: &World) {
    let ada = world.people(1).await[0];
    let post = world.post(ada, "first").await.unwrap();
    let says = |text: &str| PostChange { text: Some(text.to_owned()), ..PostChange::default() };
    let key = |post: &store::ledger::Post| post.author.to_string();
    let (edited, first) = writes(world, ["post.updated", "posts"], key, world.edit(&post, says("second"))).await;
    assert_eq!((edited.version, first > post.version), (first, true));
    let (_, second) = writes(world, ["post.updated", "posts"], key, world.edit(&edited, says("third"))).await;
    assert!(second > first, "{second} after {first}");
    writes_nothing(world, world.edit(&edited, says("third"))).await.unwrap();
    writes_nothing(world, world.edit(&edited, says("fourth"))).await.expect_err("an old version");
}

async fn deletions_of_posts(world: &World) {
    let ada = world.people(1).await[0];
    let post = world.post(ada, "hello").await.unwrap();
    let key = |deleted: &store::ledger::Deleted| deleted.author.to_string();
    let (_, version) = writes(world, ["post.deleted", "posts"], key, world.delete_post(ada, post.id)).await;
    assert!(version > post.version, "{version} after {}", post.version);
    assert!(!writes_nothing(world, world.delete_post(ada, post.id)).await.unwrap().changed);
    writes_nothing(world, world.delete_post(ada, PostId::new(UNKNOWN).unwrap())).await.expect_err("no such post");
}

async fn unlikes(world: &World) {
    let ada = world.people(1).await[0];
    let post = world.post(ada, "hello").await.unwrap().id;
    writes_nothing(world, world.unlike(ada, post)).await.unwrap();
    let liked = world.like(ada, post).await.unwrap();
    let key = |_: &store::ledger::Likes| post.to_string();
    let (likes, version) = writes(world, ["post.unliked", "likes"], key, world.unlike(ada, post)).await;
    assert_eq!((likes.count, version > liked.version), (0, true));
    writes_nothing(world, world.unlike(ada, post)).await.unwrap();
}

async fn settled_modes(world: &World) {
    let (star, _) = world.celebrity().await;
    let job = loop {
        let job = world.ledger.jobs.claim("a", Duration::from_secs(60)).await.unwrap().expect("a job");
        if job.subject == star {
            break job;
        }
    };
    let kind = ["graph.mode_changed", "graph"];
    let (settled, version) = writes(world, kind, |_| star.to_string(), world.settle(&job)).await;
    assert!(settled && version > job.version);
    assert!(!writes_nothing(world, world.settle(&job)).await.unwrap());
}

async fn ends_of_ties(world: &World) {
    let [gone, lin] = world.people(2).await[..] else { unreachable!() };
    world.follow(gone, lin).await.unwrap();
    writes_nothing(world, world.end_ties(gone, Tie::Following, 2)).await.expect_err("someone who is there");
    world.delete_account(gone).await.unwrap();
    let key = |_: &_| gone.to_string();
    writes(world, ["graph.unfollowed", "graph"], key, world.end_ties(gone, Tie::Following, 2)).await;
    assert_eq!(writes_nothing(world, world.end_ties(gone, Tie::Following, 2)).await.unwrap(), 0);
}

async fn ends_of_posts(world: &World) {
    let gone = world.people(1).await[0];
    world.post(gone, "hello").await.unwrap();
    writes_nothing(world, world.delete_posts(gone, 2)).await.expect_err("someone who is there");
    world.delete_account(gone).await.unwrap();
    writes(world, ["post.deleted", "posts"], |_| gone.to_string(), world.delete_posts(gone, 2)).await;
    assert_eq!(writes_nothing(world, world.delete_posts(gone, 2)).await.unwrap(), 0);
}

async fn ends_of_likes(world: &World) {
    let [gone, lin] = world.people(2).await[..] else { unreachable!() };
    let post = world.post(lin, "hello").await.unwrap().id;
    let (_, first) = writes(world, ["post.liked", "likes"], |_| post.to_string(), world.like(gone, post)).await;
    world.delete_account(gone).await.unwrap();
    let ended = world.end_likes(gone, 2);
    let (_, second) = writes(world, ["post.unliked", "likes"], |_| post.to_string(), ended).await;
    assert!(second > first, "{second} after {first}");
    assert_eq!(writes_nothing(world, world.end_likes(gone, 2)).await.unwrap(), 0);
}

/// The call succeeds and writes one event, with this type and topic and with the key that its answer tells. Gives the
/// answer, and the event's version.
async fn writes<T>(
    world: &World,
    [kind, topic]: [&str; 2],
    key: impl Fn(&T) -> String,
    call: impl Future<Output = Result<T, Error>>,
) -> (T, i64) {
    let (answer, new) = made(world, call).await;
    let answer = answer.unwrap_or_else(|cause| panic!("{kind}: {cause}"));
    let [(shard, row)] = &new[..] else { panic!("{kind}: one event, not {new:?}") };
    let key = key(&answer);
    assert_eq!((row.kind.as_str(), row.topic.name(), &row.key), (kind, topic, &key));
    assert_eq!(*shard, Shard::of(&key, SHARDS), "{kind}");
    let envelope = Envelope::decode(row.payload.clone()).expect("an envelope");
    assert_eq!((envelope.r#type.as_str(), &envelope.key), (kind, &key));
    assert!(envelope.version > 0, "{kind}: {envelope:?}");
    (answer, envelope.version)
}

/// The call writes no event, whatever it answers.
async fn writes_nothing<T>(world: &World, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let (answer, new) = made(world, call).await;
    assert!(new.is_empty(), "{new:?}");
    answer
}

/// Makes a call; gives its answer and the rows that the outbox has more.
async fn made<T>(
    world: &World,
    call: impl Future<Output = Result<T, Error>>,
) -> (Result<T, Error>, Vec<(Shard, OutboxRow)>) {
    let before: BTreeSet<_> = world.rows().await.into_iter().map(|row| row.id).collect();
    let answer = call.await;
    let new = world.rows().await.into_iter().filter(|row| !before.contains(&row.id));
    let new = new.map(|row| (row.shard, row)).collect();
    (answer, new)
}

#[test]
fn every_method_that_takes_an_event_is_made_here() {
    let source: String = files(&root().join("store/src/ledger"), "rs").iter().map(|file| read(file)).collect();
    let source = read(&root().join("store/src/ledger.rs")) + &source;
    let mut promised = BTreeSet::new();
    for part in source.split("pub trait ").skip(1) {
        let name = part.split(':').next().unwrap_or_default();
        let body = part.split("\n}").next().unwrap_or_default();
        for method in body.split("async fn ").skip(1) {
            let (method, rest) = method.split_once('(').expect("a method");
            if rest.split(';').next().is_some_and(|signature| signature.contains("Event<")) {
                promised.insert(format!("{name}::{method}"));
            }
        }
    }
    let made: BTreeSet<_> = MADE.iter().map(|method| (*method).to_owned()).collect();
    let missing: Vec<_> = promised.difference(&made).collect();
    assert!(missing.is_empty(), "nobody makes {missing:?} here");
    assert_eq!(promised, made, "what is made here and takes no event");
}

#[test]
fn whatever_writes_the_truth_writes_an_event() {
    let tables = tables_of_the_truth();
    assert!(["accounts", "follows", "posts", "likes"].iter().all(|table| tables.contains(*table)), "{tables:?}");
    let mut writers = 0;
    for file in files(&root().join("store/src/ledger"), "rs") {
        let source = read(&file);
        let product = source.split("#[cfg(test)]").next().unwrap_or_default();
        for (name, body) in functions(product) {
            let Some(table) = written(body).into_iter().find(|table| tables.contains(*table)) else { continue };
            writers += 1;
            assert!(body.contains("write_event("), "{name} in {} writes {table} and no event", file.display());
        }
    }
    assert!(writers >= 4, "only {writers} functions write the truth: has their form changed?");
}

/// The functions of a source, by name, each with what stands before the next one.
fn functions(source: &str) -> Vec<(&str, &str)> {
    let starts: Vec<_> = source.match_indices("fn ").map(|(at, _)| at).filter(|at| is_start(source, *at)).collect();
    let ends = starts.iter().copied().skip(1).chain([source.len()]);
    let of = |(start, end): (&usize, usize)| {
        let body = &source[*start..end];
        let name = body["fn ".len()..].split(['(', '<']).next().unwrap_or_default();
        (name, body)
    };
    starts.iter().zip(ends).map(of).collect()
}

/// Whether a function begins there: only `pub`, `async` and the like stand before it on its line.
fn is_start(source: &str, at: usize) -> bool {
    let line = source[..at].rsplit('\n').next().unwrap_or_default();
    line.split_whitespace().all(|word| word.starts_with("pub") || ["async", "const"].contains(&word))
}

/// The tables that a function's statements write.
fn written(body: &str) -> Vec<&str> {
    let words: Vec<_> = body.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).collect();
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let of = |place: usize| match (words[place], words.get(place + 1), words.get(place + 2)) {
        ("INSERT", Some(&"INTO"), Some(table)) | ("DELETE", Some(&"FROM"), Some(table)) => Some(*table),
        ("UPDATE", Some(table), _) => Some(*table),
        _ => None,
    };
    (0..words.len()).filter_map(of).collect()
}

/// Every table that a migration makes, but for those that carry no truth.
fn tables_of_the_truth() -> BTreeSet<String> {
    let migrations = files(&root().join("store/migrations"), "sql");
    let mut tables = BTreeSet::new();
    for statement in migrations.iter().map(|file| read(file)).collect::<String>().split("CREATE TABLE ").skip(1) {
        let mut words = statement.split_whitespace();
        let (name, next) = (words.next().unwrap_or_default(), words.next());
        // A part of a table that has been named already.
        if next != Some("PARTITION") {
            tables.insert(name.to_owned());
        }
    }
    // A statement for several tables names none.
    tables.insert("table".to_owned());
    for known in CARRY_NO_TRUTH {
        assert!(tables.remove(known), "there is no table {known}");
    }
    tables
}

fn files(folder: &Path, extension: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let wanted = files.into_iter().filter(|path| path.extension().is_some_and(|found| found == extension));
    wanted.chain(folders.iter().flat_map(|folder| self::files(folder, extension))).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
}
