//! Reads that the ledger answers while the archive does not: so many at a time and no more, because the ledger has its own work,
//! and all readers of an archive at once would take it down too.

use std::time::Duration;

use tokio::{sync::Semaphore, time::timeout};

use crate::Error;

/// How long a read may wait for its turn: a caller would rather be told than wait.
const TURN_WAIT_MAX: Duration = Duration::from_millis(500);

/// The turns of reads.
pub(super) struct Fallback {
    turns: Semaphore,
    reads_max: usize,
}

impl Fallback {
    pub(super) fn new(reads_max: usize) -> Self {
        Self { turns: Semaphore::new(reads_max), reads_max }
    }

    /// The ledger's answer, in turn. [`Error::Unavailable`] when that does not come soon.
    pub(super) async fn read<T>(&self, ledger: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Error> {
        match timeout(TURN_WAIT_MAX, self.turns.acquire()).await {
            Ok(Ok(_turn)) => ledger.await,
            _ => {
                let cause = format!("the ledger answers {} reads in its place, and more wait", self.reads_max);
                Err(Error::Unavailable { store: "the archive", cause })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::join_all;
    use tokio::{sync::Notify, time::sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn so_many_read_at_a_time_and_the_others_wait_a_little() {
        let fallback = Fallback::new(2);
        let read = async |span: Duration| {
            let slow = async {
                sleep(span).await;
                Ok(())
            };
            fallback.read(slow).await
        };
        let short = join_all((0..4).map(|_| read(TURN_WAIT_MAX / 2))).await;
        assert!(short.iter().all(Result::is_ok), "{short:?}");
        let long = join_all((0..4).map(|_| read(TURN_WAIT_MAX * 2))).await;
        let refused: Vec<_> = long.iter().filter_map(|read| read.as_ref().err()).collect();
        assert_eq!(refused.len(), 2, "{long:?}");
        let told = refused[0].to_string();
        assert!(told.contains("the archive") && told.contains("2 reads"), "{told}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_given_up_gives_its_turn_back() {
        let (fallback, never) = (Fallback::new(1), Arc::new(Notify::new()));
        let stuck = fallback.read(async {
            never.notified().await;
            Ok(())
        });
        assert!(timeout(Duration::from_secs(1), stuck).await.is_err());
        fallback.read(async { Ok(()) }).await.unwrap();
    }
}
