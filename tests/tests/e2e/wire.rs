//! The language itself: linted by buf, with its standard rules and a comment on everything.

use std::process::Command;

use tests::tools::{root, tool};

#[test]
fn buf_lint_is_clean() {
    let Some(buf) = tool("buf") else { return };
    let output = Command::new(buf).arg("lint").current_dir(root().join("proto")).output().expect("buf runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
}

#[test]
fn buf_lint_notices_a_field_without_a_comment() {
    let Some(buf) = tool("buf") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(root().join("proto/buf.yaml"), folder.path().join("buf.yaml")).unwrap();
    let package = folder.path().join("freshet/bad/v1");
    std::fs::create_dir_all(&package).unwrap();
    let bad = "syntax = \"proto3\";\npackage freshet.bad.v1;\n// A message.\nmessage Bad {\n  string field = 1;\n}\n";
    std::fs::write(package.join("bad.proto"), bad).unwrap();
    let output = Command::new(buf).arg("lint").current_dir(folder.path()).output().expect("buf runs");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("should have a non-empty comment"));
}
