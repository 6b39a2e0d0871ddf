//! The key of an embedded set-up's tokens: made at the first start, kept in the data folder, readable by its owner only.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use chassis::{Clock, Random, token::Keyring};

const FILE: &str = "token-key";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyError {
    #[error("there is no token key in {}: set auth.keys, or start `freshet dev` with this data folder first", .0.display())]
    Missing(PathBuf),
    #[error("cannot use the token key {}: {cause}", path.display())]
    Unusable { path: PathBuf, cause: String },
}

/// The folder's key.
pub(crate) fn read(data: &Path, clock: Arc<dyn Clock>) -> Result<Keyring, KeyError> {
    let path = data.join(FILE);
    let unusable = |cause: String| KeyError::Unusable { path: path.clone(), cause };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == ErrorKind::NotFound => return Err(KeyError::Missing(data.into())),
        Err(cause) => return Err(unusable(cause.to_string())),
    };
    Keyring::parse(text.trim(), clock).ok_or_else(|| unusable("it is damaged; delete it to get a new one".into()))
}

/// The folder's key; a new one when there is none yet.
pub(crate) fn read_or_make(data: &Path, clock: Arc<dyn Clock>, random: &dyn Random) -> Result<Keyring, KeyError> {
    let made = read(data, clock.clone());
    if !matches!(made, Err(KeyError::Missing(_))) {
        return made;
    }
    // Written aside and renamed, so that a process that dies here leaves no half a key.
    let (path, draft) = (data.join(FILE), data.join(format!("{FILE}.new")));
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        writeln!(file, "dev:{}", random.secret())?;
        file.sync_all()?;
        fs::rename(&draft, &path)
    };
    write().map_err(|cause| KeyError::Unusable { path: path.clone(), cause: cause.to_string() })?;
    read(data, clock)
}

/// Takes the folder's key away, if there is one.
pub(crate) fn erase(data: &Path) -> std::io::Result<()> {
    match fs::remove_file(data.join(FILE)) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        erased => erased,
    }
}
