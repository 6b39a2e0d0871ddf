//! People: how many follows a second a timeline pod makes, beside what pgbench does of the same transaction; and what a page of
//! followers costs, whatever their number.

mod follow;
mod list;

use super::{
    Goal, Report,
    timeline::{CLIENTS, Timeline},
};

const FOLLOW_PART_LEAST: f64 = 0.6;
/// A page of a million may take so much of the time of a page of a hundred.
const LIST_GROWTH_MOST: f64 = 1.5;

/// Follows in rounds, then lists.
pub(super) async fn measure() -> Report {
    let timeline = Timeline::open().await;
    let paces = follow::measure(&timeline).await;
    let pages = list::measure(&timeline).await;
    let growth = pages.of_many.as_secs_f64() / pages.of_few.as_secs_f64();
    Report {
        goals: vec![
            Goal { name: "follow", ratio: paces.pod / paces.pgbench, least: FOLLOW_PART_LEAST },
            Goal { name: "list", ratio: LIST_GROWTH_MOST / growth, least: 1.0 },
        ],
        figures: vec![
            format!("follow: {:.0} calls/s by {CLIENTS} clients", paces.pod),
            format!("pgbench: {:.0} transactions/s by as many", paces.pgbench),
            format!("list: {:.2?} a page of 50, of {} followers", pages.of_few, list::FEW),
            format!("list: {:.2?} a page of 50, of {} followers, {growth:.2} times as long", pages.of_many, list::MANY),
        ],
    }
}
