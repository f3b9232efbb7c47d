//! Every test that `docs/traps.md` names exists, and every row of its tables names one.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const TABLE: &str = "docs/traps.md";
/// Where Rust is.
const FOLDERS: [&str; 8] = [
    "config", "loadgen", "record", "report", "sim", "src", "tests", "wire",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            names.extend(tests_in(&fs::read_to_string(&path).unwrap()));
        }
    }
}

/// Names of the functions that an attribute makes tests.
fn tests_in(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line);
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(rest) = function.strip_prefix("fn ")
            && std::mem::take(&mut marked)
        {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            names.push(name.to_owned());
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            marked = false;
        }
    }
    names
}

/// The tests that each row of the tables names, with the row.
fn rows(text: &str) -> Vec<(String, Vec<String>)> {
    let body = text.lines().filter(|line| line.starts_with("| "));
    let rows = body.filter(|line| !line.ends_with("| test |"));
    rows.map(|line| {
        let cell = line.trim_end_matches(" |").rsplit("| ").next().unwrap();
        // Every other piece stands between backticks.
        let named = cell.split('`').skip(1).step_by(2).map(str::to_owned);
        (line.to_owned(), named.collect())
    })
    .collect()
}

#[test]
fn every_test_that_the_table_of_traps_names_exists() {
    let mut known = BTreeSet::new();
    for folder in FOLDERS {
        collect(&root().join(folder), &mut known);
    }
    assert!(known.len() > 300, "only {} tests found", known.len());
    let rows = rows(&fs::read_to_string(root().join(TABLE)).unwrap());
    assert!(rows.len() > 40, "only {} rows found", rows.len());
    for (row, named) in rows {
        assert!(!named.is_empty(), "no test is named in: {row}");
        for name in named {
            assert!(known.contains(&name), "{TABLE}: no test is called {name}");
        }
    }
}

#[test]
fn a_function_is_a_test_by_its_attribute_alone() {
    let source = "#[test]\n#[should_panic]\nfn one() {}\nfn two() {}\n#[tokio::test(flavor = \"x\")]\nasync fn three<T>() {}\n#[test]\nstruct X;\nfn four() {}\n";
    assert_eq!(tests_in(source), ["one", "three"]);
}
