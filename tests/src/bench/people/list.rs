//! What a page of followers costs, as somebody scrolls: of a list of a hundred, and of one of a million.

use std::time::Duration;

use proto::freshet::user::v1::ListFollowersRequest;
use tokio::time::Instant;

use super::super::timeline::{Timeline, user};
use crate::grpc::Client;

pub(super) const FEW: i64 = 100;
pub(super) const MANY: i64 = 1_000_000;
const PAGE: i32 = 50;
/// Pages of each list, in turn.
const PAGES: usize = 400;
/// Before them, and not counted.
const WARM_UP_PAGES: usize = 50;
/// Far from those of other parts.
const FOLLOWERS_FIRST: i64 = 10_000_000;
const OF_FEW: i64 = 20_000_000;
const OF_MANY: i64 = OF_FEW + 1;
const VIEWER: i64 = OF_FEW + 2;

/// The median of each list's pages.
pub(super) struct Pages {
    pub(super) of_few: Duration,
    pub(super) of_many: Duration,
}

/// A scroll through someone's followers, from the newest down, over and over.
struct Scroll {
    owner: i64,
    cursor: Option<String>,
    took: Vec<Duration>,
}

pub(super) async fn measure(timeline: &Timeline) -> Pages {
    timeline.sign_up(FOLLOWERS_FIRST..FOLLOWERS_FIRST + MANY).await;
    timeline.sign_up(OF_FEW..VIEWER + 1).await;
    for (owner, followers) in [(OF_FEW, FEW), (OF_MANY, MANY)] {
        follow_all(timeline, owner, followers).await;
    }
    timeline.tidy_up().await;
    let client = timeline.client();
    let [mut few, mut many] = [OF_FEW, OF_MANY].map(|owner| Scroll { owner, cursor: None, took: Vec::new() });
    for _ in 0..WARM_UP_PAGES + PAGES {
        few.next(&client).await;
        many.next(&client).await;
    }
    Pages { of_few: few.median(), of_many: many.median() }
}

async fn follow_all(timeline: &Timeline, owner: i64, followers: i64) {
    let follows = "INSERT INTO follows (follower, followee, active, version) \
                   SELECT $1 + place, $2, TRUE, place + 1 FROM generate_series(0, $3::BIGINT - 1) AS place";
    timeline.raw.execute(follows, &[&FOLLOWERS_FIRST, &owner, &followers]).await.expect("follows");
    let count = "UPDATE user_counters SET followers = $2 WHERE user_id = $1";
    timeline.raw.execute(count, &[&owner, &followers]).await.expect("a counter");
}

impl Scroll {
    async fn next(&mut self, client: &Client) {
        let (viewer_id, user_id, cursor) = (user(VIEWER), user(self.owner), self.cursor.take());
        let begun = Instant::now();
        let request = ListFollowersRequest { viewer_id, user_id, limit: Some(PAGE), cursor };
        let page = client.list_followers(request).await.expect("a page");
        self.took.push(begun.elapsed());
        assert_eq!(page.user_ids.len(), PAGE as usize, "a full page");
        self.cursor = page.next_cursor;
    }

    fn median(mut self) -> Duration {
        let mut took = self.took.split_off(WARM_UP_PAGES);
        took.sort_unstable();
        took[took.len() / 2]
    }
}
