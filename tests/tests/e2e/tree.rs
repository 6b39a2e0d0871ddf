//! The shape of the workspace: who may depend on whom, and who may name what.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tests::tools::root;

const ROLES: [&str; 4] = ["timeline", "relay", "ranking", "edge"];
const DRIVERS: [&str; 4] = ["redis", "scylla", "sqlx", "rdkafka"];

/// Each of our crates, with all that its Cargo.toml names.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let named = |package: &Value| {
        let list = package["dependencies"].as_array().expect("dependencies");
        list.iter().map(|one| text(&one["name"])).collect()
    };
    packages.iter().map(|package| (text(&package["name"]), named(package))).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let rust = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// Whether a source names a crate, apart from its comments.
fn names(source: &Path, name: &str) -> bool {
    let text = fs::read_to_string(source).expect("a source");
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let path = format!("{name}::");
    code.into_iter().any(|line| {
        line.match_indices(&path)
            .any(|(at, _)| !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
    })
}

#[test]
fn crates_depend_in_one_direction_only() {
    let dependencies = dependencies();
    let ours: BTreeSet<_> = dependencies.keys().cloned().collect();
    let of = |name: &str| -> BTreeSet<String> { dependencies[name].intersection(&ours).cloned().collect() };
    let set = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };

    assert_eq!(of("proto"), set(&[]));
    assert_eq!(of("chassis"), set(&["proto"]));
    assert_eq!(of("store"), set(&["proto", "chassis"]));
    for role in ROLES {
        assert!(of(role).is_subset(&set(&["proto", "chassis", "store"])), "{role} depends on {:?}", of(role));
    }
    assert!(of("freshet").is_subset(&set(&["proto", "chassis", "store", "timeline", "relay", "ranking", "edge"])));
    for (name, used) in &dependencies {
        assert!(name == "tests" || !used.contains("tests"), "{name} depends on tests");
    }
}

#[test]
fn only_store_names_a_database_driver() {
    for (name, used) in dependencies() {
        // Tests look past the stores: at rows that no caller sees, and at how fast the bare driver is.
        if ["store", "tests"].contains(&name.as_str()) {
            continue;
        }
        for driver in DRIVERS {
            assert!(!used.contains(driver), "{name}/Cargo.toml names {driver}");
            for source in sources(&root().join(&name)) {
                assert!(!names(&source, driver), "{} names {driver}", source.display());
            }
        }
    }
}

#[test]
fn only_the_border_names_tonic() {
    for name in dependencies().keys().filter(|name| !["proto", "chassis"].contains(&name.as_str())) {
        for source in sources(&root().join(name)) {
            let is_border = source.file_name().is_some_and(|file| file == "grpc.rs");
            assert!(is_border || !names(&source, "tonic"), "{} names tonic", source.display());
        }
    }
}

#[test]
fn every_crate_shares_the_workspace_lints_and_version() {
    for name in dependencies().keys() {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).expect("a manifest");
        for line in ["[lints]\nworkspace = true", "edition.workspace = true", "rust-version.workspace = true"] {
            assert!(manifest.contains(line), "{name}/Cargo.toml lacks {line:?}");
        }
    }
}
