//! Pushes, merges, cuts and pages of home timelines.

use proto::UserId;
use store::{
    Error,
    sets::{Coverage, Entry, HOME_MEMBERS_MAX, Page, Push, Sets},
};

use super::{ALL, build, coverage, entry, home, merge, newest_first, now_ms, open, shuffled, soon, to, user};

sets_contract!({
    a_push_reaches_the_homes_that_exist,
    an_entry_comes_twice_and_is_there_once,
    a_full_home_is_cut_and_says_from_where_on_it_is_whole,
    what_comes_together_is_there_as_if_it_came_one_by_one,
    each_reader_gets_what_is_for_that_reader,
    a_merge_adds_what_the_coverage_includes,
    a_merge_of_more_than_fits_keeps_the_newest,
    the_coverage_never_falls,
    a_page_goes_on_exactly_below_an_id,
    a_push_that_comes_too_late_is_refused,
    what_is_taken_out_is_gone_from_every_home_and_nothing_else_is,
});

async fn a_push_reaches_the_homes_that_exist(sets: Sets) {
    let (here, elsewhere, nobody) = (user(1), user(2), user(3));
    build(&sets, here, &[], Coverage::TO_THE_BEGINNING).await;
    build(&sets, elsewhere, &[entry(1, 0)], Coverage::TO_THE_BEGINNING).await;
    let empty = Page { entries: Vec::new(), coverage: Coverage::TO_THE_BEGINNING, authors: Vec::new() };
    assert_eq!(sets.homes.page(here, None, ALL).await.unwrap(), Some(empty));

    let online = sets.homes.push(&to(&[here, elsewhere, nobody], entry(2, 0)), soon()).await.unwrap();
    assert!(online.is_empty(), "nobody is connected: {online:?}");
    assert_eq!(home(&sets, here).await, [entry(2, 0)]);
    assert_eq!(home(&sets, elsewhere).await, [entry(2, 0), entry(1, 0)]);
    assert_eq!(sets.homes.page(nobody, None, ALL).await.unwrap(), None);
    assert_eq!(sets.homes.coverage(nobody).await.unwrap(), None);
    assert!(sets.homes.push(&to(&[], entry(3, 0)), soon()).await.unwrap().is_empty());
}

async fn an_entry_comes_twice_and_is_there_once(sets: Sets) {
    build(&sets, user(1), &[entry(1, 0)], Coverage::TO_THE_BEGINNING).await;
    for _ in 0..2 {
        sets.homes.push(&to(&[user(1)], entry(1, 0)), soon()).await.unwrap();
        sets.homes.push(&to(&[user(1)], entry(2, 0)), soon()).await.unwrap();
        merge(&sets, user(1), &[entry(2, 0)], Coverage::TO_THE_BEGINNING).await;
    }
    assert_eq!(home(&sets, user(1)).await, [entry(2, 0), entry(1, 0)]);
}

async fn a_full_home_is_cut_and_says_from_where_on_it_is_whole(sets: Sets) {
    let (in_order, late) = (user(1), user(2));
    build(&sets, in_order, &[], Coverage::TO_THE_BEGINNING).await;
    build(&sets, late, &[], Coverage::TO_THE_BEGINNING).await;
    let mut before = Coverage::TO_THE_BEGINNING;
    let entries = shuffled(300);
    for (number, entry_late) in entries.iter().enumerate() {
        let entry_in_order = entry(i64::try_from(number).unwrap(), 0);
        sets.homes.push(&to(&[in_order], entry_in_order), soon()).await.unwrap();
        sets.homes.push(&to(&[late], *entry_late), soon()).await.unwrap();
        if number % 10 == 9 {
            let pushed = (0..=number).map(|number| entry(i64::try_from(number).unwrap(), 0));
            is_whole(&sets, in_order, newest_first(pushed)).await;
            is_whole(&sets, late, newest_first(entries[..=number].iter().copied())).await;
        }
        let now = coverage(&sets, late).await;
        assert!(now >= before, "the coverage fell from {before:?} to {now:?}");
        before = now;
    }
    assert!(home(&sets, in_order).await.len() > HOME_MEMBERS_MAX / 2);
    assert_ne!(coverage(&sets, in_order).await, Coverage::TO_THE_BEGINNING);
}

async fn what_comes_together_is_there_as_if_it_came_one_by_one(sets: Sets) {
    let entries = shuffled(300);
    for together in [2, 31, 33, 128, 300] {
        let (one_by_one, many) = (user(2 * together + 1), user(2 * together + 2));
        build(&sets, one_by_one, &[], Coverage::TO_THE_BEGINNING).await;
        build(&sets, many, &[], Coverage::TO_THE_BEGINNING).await;
        for some in entries.chunks(usize::try_from(together).unwrap()) {
            for entry in some {
                sets.homes.push(&to(&[one_by_one], *entry), soon()).await.unwrap();
            }
            sets.homes.push(&[Push { reader: many, entries: some.to_vec() }], soon()).await.unwrap();
        }
        let [expected, found] = [one_by_one, many].map(|reader| sets.homes.page(reader, None, ALL));
        assert_eq!(found.await.unwrap(), expected.await.unwrap(), "{together} at once");
        is_whole(&sets, many, newest_first(entries.iter().copied())).await;
    }
}

async fn each_reader_gets_what_is_for_that_reader(sets: Sets) {
    let readers: Vec<_> = (1..=400).map(user).collect();
    for reader in readers.iter().filter(|reader| reader.get() % 10 != 0) {
        build(&sets, *reader, &[], Coverage::TO_THE_BEGINNING).await;
    }
    // One more for each next one, up to six, and for some none at all.
    let entries = |reader: &UserId| (0..reader.get() % 7).map(|number| entry(reader.get() + number, number)).collect();
    let pushes: Vec<_> = readers.iter().map(|reader| Push { reader: *reader, entries: entries(reader) }).collect();
    assert!(sets.homes.push(&pushes, soon()).await.unwrap().is_empty());
    for Push { reader, entries } in pushes {
        match reader.get() % 10 {
            0 => assert_eq!(sets.homes.coverage(reader).await.unwrap(), None),
            _ => assert_eq!(home(&sets, reader).await, newest_first(entries)),
        }
    }
}

/// All that was pushed and that the coverage includes is there, and nothing else; and a home keeps its limit.
async fn is_whole(sets: &Sets, reader: UserId, pushed: Vec<Entry>) {
    let page = sets.homes.page(reader, None, ALL).await.unwrap().expect("a home");
    let expected: Vec<_> = pushed.into_iter().filter(|entry| page.coverage.includes(entry.id)).collect();
    assert_eq!(page.entries, expected);
    assert!(page.entries.len() < HOME_MEMBERS_MAX, "{} and a sentinel", page.entries.len());
}

async fn a_merge_adds_what_the_coverage_includes(sets: Sets) {
    let reader = user(1);
    merge(&sets, reader, &[entry(1, 0)], Coverage::TO_THE_BEGINNING).await;
    assert_eq!(sets.homes.page(reader, None, ALL).await.unwrap(), None, "a merge makes no home");

    build(&sets, reader, &[entry(9, 0)], Coverage::TO_THE_BEGINNING).await;
    merge(&sets, reader, &[entry(5, 0), entry(7, 0)], Coverage::TO_THE_BEGINNING).await;
    assert_eq!(home(&sets, reader).await, [entry(9, 0), entry(7, 0), entry(5, 0)]);

    merge(&sets, reader, &[entry(6, 0), entry(8, 0)], Coverage::down_to(entry(6, 0).id)).await;
    assert_eq!(coverage(&sets, reader).await, Coverage::down_to(entry(6, 0).id));
    assert_eq!(home(&sets, reader).await, [9, 8, 7, 6].map(|ms| entry(ms, 0)));
    merge(&sets, reader, &[entry(4, 0)], Coverage::TO_THE_BEGINNING).await;
    sets.homes.push(&to(&[reader], entry(3, 0)), soon()).await.unwrap();
    assert_eq!(home(&sets, reader).await, [9, 8, 7, 6].map(|ms| entry(ms, 0)), "below it pages come from the archive");
}

async fn a_merge_of_more_than_fits_keeps_the_newest(sets: Sets) {
    let (merged, built) = (user(1), user(2));
    let entries = shuffled(400);
    build(&sets, merged, &entries[..100], Coverage::TO_THE_BEGINNING).await;
    merge(&sets, merged, &entries[100..], Coverage::TO_THE_BEGINNING).await;
    is_whole(&sets, merged, newest_first(entries.clone())).await;
    build(&sets, built, &entries, Coverage::TO_THE_BEGINNING).await;
    is_whole(&sets, built, newest_first(entries)).await;
}

async fn the_coverage_never_falls(sets: Sets) {
    let (reader, high) = (user(1), Coverage::down_to(entry(50, 3).id));
    build(&sets, reader, &[entry(50, 3)], high).await;
    for lower in [Coverage::TO_THE_BEGINNING, Coverage::down_to(entry(50, 2).id), Coverage::down_to(entry(1, 9).id)] {
        merge(&sets, reader, &[], lower).await;
        assert_eq!(coverage(&sets, reader).await, high);
    }
    // Higher by the last bits of the id only.
    merge(&sets, reader, &[], Coverage::down_to(entry(50, 4).id)).await;
    assert_eq!(coverage(&sets, reader).await, Coverage::down_to(entry(50, 4).id));
    assert!(home(&sets, reader).await.is_empty());
}

async fn a_page_goes_on_exactly_below_an_id(sets: Sets) {
    let reader = user(1);
    let entries: Vec<_> = [(1, 0), (2, 1), (2, 2), (2, 3), (2, 4000), (3, 0), (4, 1), (4, 2)]
        .map(|(ms, sequence)| entry(ms, sequence))
        .into();
    build(&sets, reader, &entries, Coverage::TO_THE_BEGINNING).await;
    let all = newest_first(entries);
    assert_eq!(home(&sets, reader).await, all);
    let places = [(0, 0), (2, 0), (2, 5), (4, 3), (9, 0)].map(|(ms, sequence)| entry(ms, sequence));
    for below in all.iter().chain(&places) {
        for limit in [0, 1, 2, 3, ALL] {
            let page = sets.homes.page(reader, Some(below.id), limit).await.unwrap().expect("a home");
            let expected: Vec<_> = all.iter().filter(|entry| entry.id < below.id).take(limit).copied().collect();
            assert_eq!(page.entries, expected, "{limit} below {below:?}");
        }
    }
    for limit in [0, 1, 7, 8, 9, usize::MAX] {
        let page = sets.homes.page(reader, None, limit).await.unwrap().expect("a home");
        assert_eq!(page.entries, all[..limit.min(all.len())]);
    }
}

async fn a_push_that_comes_too_late_is_refused(sets: Sets) {
    build(&sets, user(1), &[], Coverage::TO_THE_BEGINNING).await;
    let refused = sets.homes.push(&to(&[user(1)], entry(1, 0)), now_ms() - 1000).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
    assert!(home(&sets, user(1)).await.is_empty());
}

async fn what_is_taken_out_is_gone_from_every_home_and_nothing_else_is(sets: Sets) {
    let readers: Vec<_> = (1..=300).map(user).collect();
    for reader in &readers[..299] {
        build(&sets, *reader, &[entry(1, 0), entry(2, 0)], Coverage::down_to(entry(1, 0).id)).await;
    }
    for _ in 0..2 {
        sets.homes.take_out(&readers, entry(1, 0)).await.unwrap();
    }
    sets.homes.take_out(&[], entry(2, 0)).await.unwrap();
    for reader in &readers[..299] {
        assert_eq!(home(&sets, *reader).await, [entry(2, 0)]);
        assert_eq!(coverage(&sets, *reader).await, Coverage::down_to(entry(1, 0).id));
    }
    assert_eq!(sets.homes.page(readers[299], None, ALL).await.unwrap(), None, "it makes no home");
    // The last entry goes, and the home stays one.
    sets.homes.take_out(&readers[..1], entry(2, 0)).await.unwrap();
    assert!(home(&sets, readers[0]).await.is_empty());

    sets.recents.push(&[entry(1, 0), entry(2, 0)]).await.unwrap();
    sets.recents.take_out(entry(1, 0)).await.unwrap();
    sets.recents.take_out(entry(3, 0)).await.unwrap();
    assert_eq!(sets.recents.newest(user(7), ALL).await.unwrap(), [entry(2, 0)]);
}
