//! How far a database is behind a binary, or ahead of it.

use sqlx::migrate::{AppliedMigration, Migration, Migrator};

/// Where the driver keeps what was applied.
pub(super) const TABLE: &str = "_sqlx_migrations";

/// What is left to apply. An error says why this binary must not touch the database.
pub(super) fn pending<'a>(known: &'a Migrator, applied: &[AppliedMigration]) -> Result<Vec<&'a Migration>, String> {
    let newest_known = known.iter().map(|migration| migration.version).max().unwrap_or_default();
    let newest_applied = applied.iter().map(|migration| migration.version).max().unwrap_or_default();
    if newest_applied > newest_known {
        return Err(format!(
            "its tables are of a newer release (version {newest_applied}) than this binary, which knows versions up to \
             {newest_known}: use that release"
        ));
    }
    for migration in applied {
        let same = known.iter().any(|one| one.version == migration.version && one.checksum == migration.checksum);
        if !same {
            return Err(format!("its tables were made by another build: migration {} differs", migration.version));
        }
    }
    let is_applied = |one: &&Migration| applied.iter().any(|migration| migration.version == one.version);
    Ok(known.iter().filter(|one| !is_applied(one)).collect())
}
