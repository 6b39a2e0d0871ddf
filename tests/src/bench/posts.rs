//! Posts: how many a second a timeline pod writes, beside what pgbench does of the same transaction; and how likes of one post
//! are best counted.

mod create;
mod likes;

use super::{
    Goal, Report,
    timeline::{CLIENTS, Timeline},
};

const CREATE_PART_LEAST: f64 = 0.5;

/// Posts in rounds, then likes of one post in each way.
pub(super) async fn measure() -> Report {
    let timeline = Timeline::open().await;
    let paces = create::measure(&timeline).await;
    let mut figures = vec![
        format!("create: {:.0} calls/s by {CLIENTS} clients", paces.pod),
        format!("pgbench: {:.0} transactions/s by as many", paces.pgbench),
    ];
    figures.extend(likes::measure(&timeline).await);
    Report { goals: vec![Goal { name: "create", ratio: paces.pod / paces.pgbench, least: CREATE_PART_LEAST }], figures }
}
