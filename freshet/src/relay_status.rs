//! `freshet relay status`: who publishes which shard, since when, and what waits in it; and how far all of it has arrived.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use chassis::{Clock, Pod, Random, config::duration_text, drain::drain};
use store::{OpenError, Parts, ledger::ShardStatus};

use crate::settings::Settings;

const GRACE: Duration = Duration::from_secs(5);

/// Why there is nothing to print.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StatusError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Read(#[from] store::Error),
}

/// A line a shard, as the ledger has it at this moment.
pub(crate) async fn table(
    settings: Settings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
) -> Result<String, StatusError> {
    let pod = Pod::new("relay status");
    let parts = Parts { pod: pod.clone(), clock: clock.clone(), random };
    let ledger = settings.stores.open_ledger(&parts).await?;
    let shards = ledger.shard_leases.overview().await;
    let settled = match &shards {
        Ok(shards) => settled_of(&settings, &parts, shards.len()).await,
        Err(_) => Ok(Vec::new()),
    };
    drain(&pod, GRACE).await;
    Ok(lines(&shards?) + &settled_line(settled, clock.unix_ms()))
}

/// How far each shard is settled. The table is told also while the sets are away.
async fn settled_of(settings: &Settings, parts: &Parts, shards: usize) -> Result<Vec<Option<i64>>, StatusError> {
    let sets = settings.stores.open_sets(parts).await?;
    Ok(sets.settled.all(u16::try_from(shards).unwrap_or(u16::MAX)).await?)
}

fn lines(shards: &[ShardStatus]) -> String {
    let mut text =
        format!("{:>5}  {:<24}  {:>5}  {:>8}  {:>8}  oldest\n", "shard", "owner", "epoch", "held", "backlog");
    for status in shards {
        let owner = status.owner.as_deref().unwrap_or("-");
        let held = status.owner.as_ref().map_or_else(|| "-".to_owned(), |_| seconds(status.held_ms));
        let oldest = status.oldest_ms.map_or_else(|| "-".to_owned(), seconds);
        let (shard, epoch, backlog) = (status.shard, status.epoch, status.backlog);
        // Writing to a String cannot fail.
        _ = writeln!(text, "{shard:>5}  {owner:<24}  {epoch:>5}  {held:>8}  {backlog:>8}  {oldest}");
    }
    text
}

/// Every event up to that time has arrived: the least of all shards. A shard without a mark may be far behind.
fn settled_line(settled: Result<Vec<Option<i64>>, StatusError>, now_ms: i64) -> String {
    let shards = match settled {
        Ok(shards) => shards,
        Err(cause) => return format!("settled: unknown, {cause}\n"),
    };
    match (shards.iter().position(Option::is_none), shards.iter().flatten().min()) {
        (None, Some(least)) => format!("settled: {} s ago\n", (now_ms - least).max(0) / 1000),
        (shard, _) => format!("settled: unknown, no mark passed for shard {}\n", shard.unwrap_or(0)),
    }
}

fn seconds(ms: i64) -> String {
    duration_text(Duration::from_secs(ms.max(0).unsigned_abs() / 1000))
}

#[cfg(test)]
mod tests {
    use store::Shard;

    use super::*;

    #[test]
    fn a_shard_is_a_line() {
        let held = ShardStatus {
            shard: Shard(3),
            owner: Some("relay-1".into()),
            epoch: 7,
            held_ms: 61_500,
            backlog: 12,
            oldest_ms: Some(2_900),
        };
        let free = ShardStatus { shard: Shard(4), owner: None, backlog: 0, oldest_ms: None, ..held.clone() };
        let text = lines(&[held, free]);
        let words: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["shard", "owner", "epoch", "held", "backlog", "oldest"]);
        assert_eq!(words[1], ["3", "relay-1", "7", "61s", "12", "2s"]);
        assert_eq!(words[2], ["4", "-", "7", "-", "0", "-"]);
    }

    #[test]
    fn the_last_line_tells_the_least() {
        assert_eq!(settled_line(Ok(vec![Some(9_000), Some(8_900)]), 20_000), "settled: 11 s ago\n");
        assert_eq!(settled_line(Ok(vec![Some(9_000), None]), 20_000), "settled: unknown, no mark passed for shard 1\n");
        let away = store::Error::Unavailable { store: "the sets", cause: "refused".into() };
        assert_eq!(settled_line(Err(away.into()), 0), "settled: unknown, the sets is not available: refused\n");
    }
}
