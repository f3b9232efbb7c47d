//! The decision's page in a real browser, with the network off: in every language, on a phone, for a screen reader and
//! on paper. What it shows is *simulated*.

use super::driven::{drive, records};
use super::rig::{chain, free, serve};
use super::{alone, engine, script, target};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Scenario 1 of a few seconds.
const SCENARIO: &str = "
name: page
number: 1
question: Can it be read?
workload: {input_tokens: 20, output_tokens: 16}
closed_loop: {concurrency: [1, 4], cell: {calls: 120}}
blocks: 2
warmup: {calls: 4}
limits: {samples_beyond_min: 2}
seed: 5
";

/// Writes the decision of `run` in a language; gives the page.
fn decided(run: &Path, language: &str, dir: &Path) -> PathBuf {
    let page = dir.join(format!("{language}.html"));
    let workload = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/workload.yaml");
    let said = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .arg("report")
        .arg(run)
        .args(["--lang", language, "--decide"])
        .arg(workload)
        .arg("--against")
        .arg(run)
        .arg("--decision")
        .arg(&page)
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    page
}

#[test]
fn the_page_is_read_with_the_network_off_in_every_language_and_width() {
    let Some(_turn) = alone(&["browser"]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut chain = chain(&[("outer", free(), engine(&runtime))]);
    chain.name = "baseline".to_owned();
    let server = serve(&chain, &records(dir.path()), "tap");
    let driven = drive(dir.path(), chain, server, SCENARIO, Vec::new());
    let run = driven.run.root();
    let pages: Vec<PathBuf> = ["en", "ko", "zh"]
        .into_iter()
        .map(|language| decided(run, language, dir.path()))
        .collect();
    // The technical report is read in the same ways.
    let technical = run.join("report.html");
    let home = target().join("real/browser/bin");
    let said = Command::new(home.join("python"))
        .arg(script("clients/page.py"))
        .arg(home.join("chromium"))
        .args(&pages)
        .arg(&technical)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{errors}");
    let seen: Vec<Value> = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(seen.len(), pages.len() + 1);
    for page in &seen {
        for empty in ["console", "requests", "axe"] {
            let found = page[empty].as_array().unwrap();
            assert!(found.is_empty(), "{empty} of {}: {found:#?}", page["page"]);
        }
        assert_eq!(
            page["overflow"],
            Value::Object(serde_json::Map::new()),
            "{}",
            page["page"]
        );
        assert_eq!(
            (&page["rows"], &page["unreachable"]),
            (&Value::from(0), &Value::from(0)),
            "{}",
            page["page"]
        );
        let sheets = page["sheets"].as_u64().unwrap();
        assert!(
            (2..=60).contains(&sheets),
            "{sheets} sheets of {}",
            page["page"]
        );
    }
}
