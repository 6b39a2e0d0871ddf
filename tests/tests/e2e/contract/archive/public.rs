//! All public posts.

use proto::PostId;
use store::archive::Scope;

use super::{ADA, LIN, Opened, id, open};

store_contract!(open: [
    sqlite = tests::servers::Adapter::Sqlite,
    cassandra = tests::servers::Adapter::Cassandra,
] {
    all_authors_posts_are_paged_to_the_oldest,
    what_lies_far_apart_is_found,
});

const HOUR_MS: i64 = 60 * 60 * 1000;

impl Opened {
    /// Every public post of a scope, page by page.
    async fn scroll(&self, scope: Scope, limit: u32) -> Vec<PostId> {
        let (mut found, mut below) = (Vec::new(), None);
        loop {
            let page = self.archive.public_posts.page(scope, below, limit).await.unwrap();
            assert!(page.posts.len() <= limit as usize);
            found.extend(page.posts.iter().map(|post| post.id));
            assert!(page.next < below || below.is_none(), "{page:?} goes on below {below:?}");
            below = page.next;
            if below.is_none() {
                return found;
            }
        }
    }
}

async fn all_authors_posts_are_paged_to_the_oldest(opened: Opened) {
    for number in 1..=25 {
        opened.write(if number % 2 == 0 { ADA } else { LIN }, number).await;
    }
    let expected: Vec<_> = (1..=25).rev().map(id).collect();
    for scope in Scope::ALL {
        for limit in [1, 7, 25, 100] {
            assert_eq!(opened.scroll(scope, limit).await, expected, "{scope:?}, {limit} a page");
        }
    }
    let page = opened.archive.public_posts.page(Scope::Global, Some(id(2)), 10).await.unwrap();
    assert_eq!((page.posts[0].id, page.posts[0].text.as_str(), page.next), (id(1), "post 1", None));
}

async fn what_lies_far_apart_is_found(opened: Opened) {
    // More hours than one page looks through, with empty ones between them, and the edges of one hour.
    let mut numbers: Vec<_> = (0..40).map(|step| step * step * HOUR_MS + 1).collect();
    numbers.extend([5 * HOUR_MS - 1, 5 * HOUR_MS, 6 * HOUR_MS - 1]);
    for number in &numbers {
        opened.write(ADA, *number).await;
    }
    numbers.sort_unstable();
    let expected: Vec<_> = numbers.into_iter().rev().map(id).collect();
    for limit in [1, 5, 100] {
        assert_eq!(opened.scroll(Scope::Local, limit).await, expected, "{limit} a page");
    }
}
