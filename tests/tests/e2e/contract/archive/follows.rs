//! Who follows whom, from both ends.

use proto::UserId;

use super::{ADA, LIN, Opened, open, user};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    cassandra = tests::servers::Adapter::Cassandra,
] {
    the_followers_of_several_authors_are_one_list_in_chunks,
    followees_come_in_chunks,
    others_follows_are_not_in_the_list,
});

/// Makes people follow an author.
async fn followers_of(opened: &Opened, author: i64, followers: std::ops::Range<i64>) {
    for follower in followers.rev() {
        opened.follow(follower, author).await;
    }
}

async fn the_followers_of_several_authors_are_one_list_in_chunks(opened: Opened) {
    // More authors than are asked at a time: most with few followers, some with none, some with many.
    let authors: Vec<i64> = (100..140).collect();
    for person in (100..140).chain(200..260) {
        opened.sign_up(person).await;
    }
    let mut expected = Vec::new();
    for author in &authors {
        let many = match author % 10 {
            0 => 0,
            7 => 60,
            few => few,
        };
        followers_of(&opened, *author, 200..200 + many).await;
        expected.extend((200..200 + many).map(|follower| (user(*author), user(follower))));
    }
    let asked: Vec<_> = authors.iter().rev().chain(&authors).map(|author| user(*author)).collect();
    for limit in [1, 7, 60, 100, 10_000] {
        let mut found: Vec<(UserId, UserId)> = Vec::new();
        loop {
            let chunk = opened.archive.follows.followers(&asked, found.last().copied(), limit).await.unwrap();
            assert!(chunk.len() <= limit as usize);
            let was_last = chunk.len() < limit as usize;
            found.extend(chunk);
            assert!(found.len() <= expected.len(), "repeats, {limit} at a time");
            if was_last {
                break;
            }
        }
        assert_eq!(found, expected, "{limit} at a time");
    }
    let one = opened.archive.follows.followers(&[user(107)], Some((user(107), user(257))), 10).await.unwrap();
    assert_eq!(one, [(user(107), user(258)), (user(107), user(259))]);
}

async fn followees_come_in_chunks(opened: Opened) {
    for person in 100..107 {
        opened.sign_up(person).await;
        opened.follow(ADA, person).await;
    }
    let follows = &opened.archive.follows;
    let first = follows.followees(user(ADA), None, 4).await.unwrap();
    assert_eq!(first, [100, 101, 102, 103].map(user));
    assert_eq!(follows.followees(user(ADA), first.last().copied(), 4).await.unwrap(), [104, 105, 106].map(user));
}

async fn others_follows_are_not_in_the_list(opened: Opened) {
    opened.sign_up(100).await;
    opened.follow(LIN, 100).await;
    let follows = &opened.archive.follows;
    assert_eq!(follows.followers(&[], None, 10).await.unwrap(), []);
    assert_eq!(follows.followers(&[user(ADA), user(LIN)], None, 10).await.unwrap(), []);
    assert_eq!(follows.followees(user(ADA), None, 10).await.unwrap(), []);
}
