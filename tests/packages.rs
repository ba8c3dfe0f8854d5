//! What is published: a single version, no unused dependency, and a changelog that contains the
//! version.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn packages() -> Vec<Value> {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let metadata: Value = serde_json::from_slice(&out.stdout).expect("cargo prints JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

/// The text of all sources in these folders and files.
fn text(paths: &[PathBuf]) -> String {
    let mut out = String::new();
    for path in paths {
        if path.is_dir() {
            let inside: Vec<PathBuf> =
                fs::read_dir(path).expect("readable").map(|e| e.expect("an entry").path()).collect();
            out += &text(&inside);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out += &fs::read_to_string(path).expect("UTF-8");
        }
    }
    out
}

/// Whether a source names a crate: at the start of a path, or in `extern crate`.
fn names(source: &str, krate: &str) -> bool {
    source.match_indices(krate).any(|(at, _)| {
        let before = source[..at].chars().next_back();
        let after = source[at + krate.len()..].chars().next();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_') && matches!(after, Some(':' | ';' | ' '))
    })
}

#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    for package in packages() {
        let folder =
            Path::new(package["manifest_path"].as_str().expect("a path")).parent().expect("a folder").to_owned();
        let sources: Vec<PathBuf> =
            ["src", "tests", "benches", "build.rs"].iter().map(|s| folder.join(s)).filter(|p| p.exists()).collect();
        let source = text(&sources);
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let name = dependency["name"].as_str().expect("a name");
            // Dependencies in `as-tested` only turn features on.
            let as_tested = package["features"]["as-tested"].as_array();
            let only_features = as_tested.is_some_and(|all| all.contains(&format!("dep:{name}").into()));
            if !only_features && !names(&source, &name.replace('-', "_")) {
                unused.push(format!("{} does not use {name}", package["name"]));
            }
        }
    }
    assert!(unused.is_empty(), "{unused:#?}");
}

#[test]
fn there_is_one_version() {
    let packages = packages();
    let version = packages[0]["version"].as_str().expect("a version");
    for package in &packages {
        assert_eq!(package["version"], version, "{}", package["name"]);
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            if dependency["path"].is_string() {
                let wanted = format!("^{version}");
                assert_eq!(dependency["req"], wanted, "{} needs {}", package["name"], dependency["name"]);
            }
        }
    }
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).expect("a changelog");
    assert!(changes.contains(&format!("\n## {version}")), "CHANGELOG.md does not describe {version}");
}

/// The crates and features that a build of these packages compiles.
fn compiled(words: &[&str]) -> BTreeSet<String> {
    let out = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none", "-f", "{p} {f}"])
        .args(words)
        .current_dir(root())
        .output()
        .expect("cargo tree runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

/// If only a dependency of tests turns a feature on, cargo compiles the crate, and all crates that
/// use it, a second time for the wheel.
#[test]
fn the_wheel_of_the_tests_consists_of_the_crates_of_the_tests() {
    let tests = compiled(&["--workspace", "-e", "normal,build,dev"]);
    let wheel = compiled(&["-p", "nki-sim-python", "--features", "as-tested", "-e", "normal,build"]);
    let again: Vec<&String> = wheel.difference(&tests).filter(|c| !c.starts_with("nki-sim-python ")).collect();
    assert!(again.is_empty(), "compiled twice: {again:#?}");
}
