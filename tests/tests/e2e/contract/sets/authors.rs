//! What readers' authors are to them: states beside a home, of which the newest version counts.

use proto::{EntryId, UserId};
use store::{
    Error,
    sets::{AuthorState, Build, Coverage, Entry, FollowVersion, Sets, Special},
};

use super::{ALL, build, entry, home, now_ms, open, soon, user};

sets_contract!({
    a_state_is_told_with_the_page_and_the_newest_version_counts,
    a_reader_without_a_home_has_no_states,
    a_build_never_overwrites_a_newer_state,
    what_was_learnt_too_long_ago_is_refused,
    a_follow_ends_unfollowed_and_brings_the_posts_in_one_step,
    a_scrub_runs_only_while_its_version_stands,
    who_is_pushed_again_brings_the_posts_in_one_step,
    a_home_is_removed_with_its_states_and_its_build,
    states_at_once_end_with_the_newest,
});

const READER: i64 = 1;

fn state(author: i64, special: Special, holds: bool, version: i64) -> AuthorState {
    AuthorState::new(user(author), special, holds, version)
}

fn of(author: i64, ms: i64) -> Entry {
    Entry { author: user(author), id: EntryId::new(entry(ms, author).id.get()).expect("an id") }
}

fn follow(author: i64, version: i64) -> FollowVersion {
    FollowVersion { reader: user(READER), author: user(author), version }
}

async fn set(sets: &Sets, states: &[AuthorState]) {
    sets.authors.set(user(READER), states, soon()).await.unwrap();
}

async fn states(sets: &Sets, reader: UserId) -> Vec<AuthorState> {
    let mut states = sets.homes.page(reader, None, 1).await.unwrap().expect("a home").authors;
    states.sort_unstable();
    states
}

async fn a_state_is_told_with_the_page_and_the_newest_version_counts(sets: Sets) {
    build(&sets, user(READER), &[], Coverage::TO_THE_BEGINNING).await;
    let all = [Special::Pull, Special::Unfollowed, Special::Blocked, Special::BlockedBy, Special::Muted];
    let all = all.map(|special| state(7, special, true, 5));
    set(&sets, &all).await;
    assert_eq!(states(&sets, user(READER)).await, all, "each in its own way");

    let until = AuthorState { until_ms: 1_234_567, ..state(7, Special::Muted, true, 1 << 52) };
    set(&sets, &[until, state(8, Special::Blocked, true, 3)]).await;
    // Late, twice, and higher by the last bit only.
    set(&sets, &[state(7, Special::Muted, true, 5), state(7, Special::Muted, false, (1 << 52) - 1)]).await;
    let now = states(&sets, user(READER)).await;
    assert!(now.contains(&until) && now.contains(&state(8, Special::Blocked, true, 3)), "{now:?}");
    set(&sets, &[state(7, Special::Muted, false, (1 << 52) + 1), state(8, Special::Blocked, false, 4)]).await;
    assert_eq!(states(&sets, user(READER)).await, all[..4], "what is over is not told");
    set(&sets, &[until, state(8, Special::Blocked, true, 3)]).await;
    assert_eq!(states(&sets, user(READER)).await, all[..4], "and does not come back");
}

async fn a_reader_without_a_home_has_no_states(sets: Sets) {
    set(&sets, &[state(7, Special::Blocked, true, 5)]).await;
    assert_eq!(sets.homes.page(user(READER), None, ALL).await.unwrap(), None);
    build(&sets, user(READER), &[], Coverage::TO_THE_BEGINNING).await;
    assert_eq!(states(&sets, user(READER)).await, [], "whoever builds reads them from the ledger");
}

async fn a_build_never_overwrites_a_newer_state(sets: Sets) {
    let Build::Mine(token) = sets.homes.begin_build(user(READER)).await.unwrap() else { panic!("a build") };
    // Written while the builder reads: an unmute and a block that the builder has missed.
    set(&sets, &[state(7, Special::Muted, false, 9), state(8, Special::Blocked, true, 9)]).await;
    let read = [state(7, Special::Muted, true, 5), state(9, Special::Muted, true, 5)];
    let ended = sets.homes.finish_build(user(READER), token, &[], Coverage::TO_THE_BEGINNING, &read);
    assert!(ended.await.unwrap());
    assert_eq!(states(&sets, user(READER)).await, [state(8, Special::Blocked, true, 9), read[1]]);
}

async fn what_was_learnt_too_long_ago_is_refused(sets: Sets) {
    build(&sets, user(READER), &[], Coverage::TO_THE_BEGINNING).await;
    let late = now_ms() - 1000;
    let refused = sets.authors.set(user(READER), &[state(7, Special::Blocked, true, 5)], late).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    let refused = sets.homes.merge(follow(7, 5), &[of(7, 1)], Coverage::TO_THE_BEGINNING, late).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    assert_eq!((states(&sets, user(READER)).await, home(&sets, user(READER)).await), (vec![], vec![]));
}

async fn a_follow_ends_unfollowed_and_brings_the_posts_in_one_step(sets: Sets) {
    let all = Coverage::TO_THE_BEGINNING;
    build(&sets, user(READER), &[of(8, 1)], all).await;
    set(&sets, &[state(7, Special::Unfollowed, true, 5)]).await;
    // A follow from before it was ended, told late.
    sets.homes.merge(follow(7, 4), &[of(7, 2)], all, soon()).await.unwrap();
    assert_eq!(home(&sets, user(READER)).await, [of(8, 1)]);
    assert_eq!(states(&sets, user(READER)).await, [state(7, Special::Unfollowed, true, 5)]);

    for _ in 0..2 {
        sets.homes.merge(follow(7, 6), &[of(7, 2), of(7, 3)], all, soon()).await.unwrap();
        assert_eq!(home(&sets, user(READER)).await, [of(7, 3), of(7, 2), of(8, 1)]);
        assert_eq!(states(&sets, user(READER)).await, []);
    }
    // The end of the follow before, told late by a pod that was slow.
    set(&sets, &[state(7, Special::Unfollowed, true, 5)]).await;
    assert_eq!(states(&sets, user(READER)).await, []);
}

async fn a_scrub_runs_only_while_its_version_stands(sets: Sets) {
    let entries = [of(7, 1), of(8, 2), of(7, 3)];
    build(&sets, user(READER), &entries, Coverage::TO_THE_BEGINNING).await;
    sets.authors.scrub(follow(7, 5)).await.unwrap();
    set(&sets, &[state(7, Special::Unfollowed, true, 6)]).await;
    for version in [5, 7] {
        sets.authors.scrub(follow(7, version)).await.unwrap();
    }
    assert_eq!(home(&sets, user(READER)).await.len(), 3, "it was never unfollowed with that version");
    for _ in 0..2 {
        sets.authors.scrub(follow(7, 6)).await.unwrap();
        assert_eq!(home(&sets, user(READER)).await, [of(8, 2)]);
    }
    sets.homes.merge(follow(7, 8), &[of(7, 3)], Coverage::TO_THE_BEGINNING, soon()).await.unwrap();
    sets.authors.scrub(follow(7, 6)).await.unwrap();
    sets.authors.scrub(follow(7, 8)).await.unwrap();
    assert_eq!(home(&sets, user(READER)).await, [of(7, 3), of(8, 2)], "followed again");
    sets.authors.scrub(FollowVersion { reader: user(99), author: user(7), version: 6 }).await.unwrap();
}

async fn who_is_pushed_again_brings_the_posts_in_one_step(sets: Sets) {
    let (reader, all) = (user(READER), Coverage::TO_THE_BEGINNING);
    build(&sets, reader, &[], all).await;
    set(&sets, &[state(7, Special::Pull, true, 5)]).await;
    let pushed = |version| [state(7, Special::Pull, false, version)];
    sets.homes.merge_with(reader, &pushed(4), &[of(7, 1)], all, soon()).await.unwrap();
    assert_eq!(home(&sets, reader).await, [], "the author crossed again since");
    for _ in 0..2 {
        sets.homes.merge_with(reader, &pushed(6), &[of(7, 1), of(7, 2)], all, soon()).await.unwrap();
        assert_eq!((home(&sets, reader).await, states(&sets, reader).await), (vec![of(7, 2), of(7, 1)], vec![]));
    }
    // A follow of someone who is merged at read says both in one step.
    let followed = [state(8, Special::Unfollowed, false, 3), state(8, Special::Pull, true, 2)];
    sets.homes.merge_with(reader, &followed, &[], all, soon()).await.unwrap();
    assert_eq!(states(&sets, reader).await, [state(8, Special::Pull, true, 2)]);
    let late = sets.homes.merge_with(reader, &pushed(7), &[], all, now_ms() - 1).await.unwrap_err();
    assert!(matches!(late, Error::Unavailable { .. }), "{late}");
}

async fn a_home_is_removed_with_its_states_and_its_build(sets: Sets) {
    let reader = user(READER);
    build(&sets, reader, &[of(7, 1)], Coverage::TO_THE_BEGINNING).await;
    set(&sets, &[state(7, Special::Muted, true, 5)]).await;
    sets.homes.remove(reader).await.unwrap();
    assert_eq!(sets.homes.page(reader, None, ALL).await.unwrap(), None);
    let Build::Mine(token) = sets.homes.begin_build(reader).await.unwrap() else { panic!("there is a home") };
    sets.homes.remove(reader).await.unwrap();
    assert!(!sets.homes.finish_build(reader, token, &[], Coverage::TO_THE_BEGINNING, &[]).await.unwrap());
    build(&sets, reader, &[], Coverage::TO_THE_BEGINNING).await;
    assert_eq!(states(&sets, reader).await, [], "nothing is left of the earlier ones");
    sets.homes.remove(user(2)).await.unwrap();
}

async fn states_at_once_end_with_the_newest(sets: Sets) {
    build(&sets, user(READER), &[], Coverage::TO_THE_BEGINNING).await;
    let mut tasks = tokio::task::JoinSet::new();
    for version in 1..=50 {
        let sets = sets.clone();
        tasks.spawn(async move { set(&sets, &[state(7, Special::Muted, version % 2 == 0, version)]).await });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(states(&sets, user(READER)).await, [state(7, Special::Muted, true, 50)]);
}
