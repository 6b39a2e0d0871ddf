//! The layers that values come from, the strongest last.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::Origin;
use crate::failpoint;

const PREFIX: &str = "FRESHET_";
/// The variable that names the config file; not a key.
const FILE_VARIABLE: &str = "FRESHET_CONFIG";

/// A value given on the command line.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The key that it sets.
    pub key: String,
    /// The value as given.
    pub value: String,
    /// What the user typed, such as `--data`.
    pub typed: String,
}

/// The config file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It cannot be opened or read.
    #[error("cannot read the config file {path}: {cause}")]
    Io {
        /// Its path.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// It is no TOML.
    #[error("the config file {path} is not valid TOML: {cause}")]
    Toml {
        /// Its path.
        path: PathBuf,
        /// Where and why.
        cause: Box<toml::de::Error>,
    },
}

/// What was given, before anyone knows which keys there are.
#[derive(Debug, Default)]
pub struct Layers {
    file_name: String,
    file: BTreeMap<String, String>,
    environment: BTreeMap<String, String>,
    flags: Vec<Flag>,
}

impl Layers {
    /// The layers of a process: the file that the flag or `FRESHET_CONFIG` names, the environment, the flags.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: Vec<Flag>,
    ) -> Result<Self, Unreadable> {
        let mut environment: BTreeMap<_, _> =
            environment.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
        let named = environment.remove(FILE_VARIABLE).map(PathBuf::from);
        if cfg!(feature = "failpoints") {
            environment.remove(failpoint::VARIABLE);
        }
        let mut layers = Self { environment, flags, ..Self::default() };
        if let Some(path) = file.map(Path::to_path_buf).or(named) {
            layers.file = read_file(&path)?;
            layers.file_name = path.display().to_string();
        }
        Ok(layers)
    }

    /// The value that counts for a key. Once taken, the key is known to every layer.
    pub(super) fn take(&self, key: &str) -> Option<(String, Origin)> {
        let variable = variable(key);
        if let Some(flag) = self.flags.iter().rfind(|flag| flag.key == key) {
            Some((flag.value.clone(), Origin::Flag(flag.typed.clone())))
        } else if let Some(value) = self.environment.get(&variable) {
            Some((value.clone(), Origin::Environment(variable)))
        } else {
            self.file.get(key).map(|value| (value.clone(), Origin::File(self.file_name.clone())))
        }
    }

    /// What was given for keys that nobody knows.
    pub(super) fn unknown(&self, known: &[&str]) -> Vec<String> {
        let variables: Vec<_> = known.iter().map(|key| variable(key)).collect();
        let nearest = |key: &str| nearest(key, known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let in_file = self.file.iter().filter(|(key, _)| !known.contains(&key.as_str())).map(|(key, value)| {
            format!("{key} = {value:?} (by file {}): there is no such key{}", self.file_name, nearest(key))
        });
        let in_environment = self.environment.iter().filter(|(name, _)| !variables.contains(name)).map(|(name, _)| {
            let key = name.trim_start_matches(PREFIX).to_lowercase().replacen('_', ".", 1);
            format!("environment {name}: there is no such key{}", nearest(&key))
        });
        let in_flags = self.flags.iter().filter(|flag| !known.contains(&flag.key.as_str())).map(|flag| {
            format!(
                "{} = {:?} (by flag {}): there is no such key{}",
                flag.key,
                flag.value,
                flag.typed,
                nearest(&flag.key)
            )
        });
        in_file.chain(in_environment).chain(in_flags).collect()
    }
}

/// `edge.session_ttl` is `FRESHET_EDGE_SESSION_TTL`.
fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.to_uppercase().replace('.', "_"))
}

fn read_file(path: &Path) -> Result<BTreeMap<String, String>, Unreadable> {
    let text = std::fs::read_to_string(path).map_err(|cause| Unreadable::Io { path: path.into(), cause })?;
    let table: toml::Table =
        text.parse().map_err(|cause| Unreadable::Toml { path: path.into(), cause: Box::new(cause) })?;
    let mut flat = BTreeMap::new();
    flatten("", &table, &mut flat);
    Ok(flat)
}

fn flatten(prefix: &str, table: &toml::Table, flat: &mut BTreeMap<String, String>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, flat),
            toml::Value::String(text) => _ = flat.insert(key, text.clone()),
            other => _ = flat.insert(key, other.to_string()),
        }
    }
}

/// The known key that shares the longest beginning with a mistyped one, if they are alike at all.
fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    let shared = |other: &str| key.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    known.iter().copied().max_by_key(|other| shared(other)).filter(|other| shared(other) > key.len() / 2)
}
