//! What is decided once, when the ledger is made.

use super::SqlLedger;

/// Writes the shard count into a new ledger; one that has it keeps its own.
pub(super) const KEEP_SHARDS: &str =
    "INSERT INTO install (name, value) VALUES ('shards', $1) ON CONFLICT (name) DO NOTHING";

impl SqlLedger {
    /// The shard count is part of the data: with another one, a key's events would change their lane and their order.
    pub(super) async fn check_install(&self) -> Result<(), String> {
        let made: String = sqlx::query_scalar("SELECT value FROM install WHERE name = 'shards'")
            .fetch_one(self.writer())
            .await
            .map_err(|cause| cause.to_string())?;
        if made == self.shards.to_string() {
            return Ok(());
        }
        Err(format!("it was made with {made} shards, and stores.shards is {}: set it back to {made}", self.shards))
    }
}
