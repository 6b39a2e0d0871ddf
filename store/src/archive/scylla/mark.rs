//! The archive's mark: a random number in a row of its own. An archive that was lost and made again has another one, so that
//! nobody takes it for the old one.

use std::sync::Arc;

use chassis::Random;
use scylla::{
    errors::PrepareError,
    statement::{Consistency, SerialConsistency, prepared::PreparedStatement},
};

use super::Link;
use crate::{Error, archive::Generation};

/// Reads and makes the mark.
pub(in crate::archive) struct Mark {
    link: Arc<Link>,
    read: PreparedStatement,
    make: PreparedStatement,
}

impl Mark {
    pub(super) async fn open(link: Arc<Link>) -> Result<Self, PrepareError> {
        let read = link.prepare("SELECT id FROM KEYSPACE.generations WHERE part = 'archive'").await?;
        // Whoever is second changes nothing. All datacentres know of it before it is answered, because each pod reads the
        // mark in its own.
        let mut make =
            link.prepare("INSERT INTO KEYSPACE.generations (part, id) VALUES ('archive', ?) IF NOT EXISTS").await?;
        make.set_serial_consistency(Some(SerialConsistency::Serial));
        make.set_consistency(Consistency::EachQuorum);
        Ok(Self { link, read, make })
    }

    /// The generation that the archive is in now; `None` while nobody has marked it.
    pub(in crate::archive) async fn read(&self) -> Result<Option<Generation>, Error> {
        let rows = self.link.rows::<(i64,)>(&self.read, ()).await?;
        Ok(rows.first().map(|(id,)| Generation::new(*id)))
    }

    /// The same; an archive without a mark gets one. Of several at once, one makes it.
    pub(in crate::archive) async fn read_or_make(&self, random: &dyn Random) -> Result<Option<Generation>, Error> {
        if let Some(generation) = self.read().await? {
            return Ok(Some(generation));
        }
        self.link.write(&self.make, (random.number().cast_signed(),)).await?;
        self.read().await
    }
}
