//! Dependencies inside the workspace point one way, and TLS has one provider.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Which crate may use which. `sim` stays away from `wire` and `record`: it writes its bytes and
/// its truth with code of its own, so that an error cannot cancel out. The root knows them all.
const ALLOWED: [(&str, &[&str]); 11] = [
    ("wire", &[]),
    ("record", &["wire"]),
    ("config", &[]),
    ("sim", &["config"]),
    ("tools", &[]),
    ("loadgen", &["wire", "record", "config"]),
    ("report", &["wire", "record", "config"]),
    ("translate", &["wire"]),
    ("cost", &["config"]),
    ("decide", &["record", "config", "report", "cost"]),
    (
        "hopscope",
        &[
            "wire",
            "record",
            "config",
            "sim",
            "tools",
            "loadgen",
            "report",
            "translate",
            "cost",
            "decide",
        ],
    ),
];

/// Crates that bring TLS of their own beside rustls with ring.
const OTHER_TLS: [&str; 9] = [
    "aws-lc-fips-sys",
    "aws-lc-rs",
    "aws-lc-sys",
    "boring",
    "boring-sys",
    "native-tls",
    "openssl",
    "openssl-sys",
    "s2n-tls",
];

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--locked",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// The crates of the workspace that `package` uses, also in its tests and build script.
fn edges<'p>(package: &'p Value, members: &BTreeSet<&str>) -> BTreeSet<&'p str> {
    let dependencies = package["dependencies"].as_array().unwrap().iter();
    let names = dependencies.map(|dependency| dependency["name"].as_str().unwrap());
    names.filter(|name| members.contains(name)).collect()
}

#[test]
fn dependencies_point_one_way() {
    let packages = packages();
    let members: BTreeSet<&str> = packages
        .iter()
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    let known: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        members, known,
        "a crate of the workspace has no line in ALLOWED, or the other way round"
    );
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        let allowed = ALLOWED
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .unwrap()
            .1;
        for used in edges(package, &members) {
            assert!(
                allowed.contains(&used),
                "`{name}` uses `{used}`, which docs/architecture.md does not allow; move what it needs, or change the design first"
            );
        }
    }
}

/// The table itself must have no cycle, or the test would allow one.
#[test]
fn the_allowed_edges_have_no_cycle() {
    let mut left: Vec<(&str, &[&str])> = ALLOWED.to_vec();
    while !left.is_empty() {
        let names: BTreeSet<&str> = left.iter().map(|(name, _)| *name).collect();
        let before = left.len();
        left.retain(|(_, uses)| uses.iter().any(|used| names.contains(used)));
        assert!(left.len() < before, "a cycle among {names:?}");
    }
}

#[test]
fn tls_has_one_provider() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock")).unwrap();
    let names: BTreeSet<&str> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .collect();
    assert!(
        names.contains("ring"),
        "the provider itself is not in Cargo.lock: is this the right file?"
    );
    let others: Vec<&&str> = OTHER_TLS
        .iter()
        .filter(|other| names.contains(*other))
        .collect();
    assert!(
        others.is_empty(),
        "{others:?} in Cargo.lock; `cargo tree -i` shows who brings it; choose its rustls and ring features"
    );
}
