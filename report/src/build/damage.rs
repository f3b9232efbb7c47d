//! Run directories that something happened to, beside one that is whole: what can be used is used, what cannot is named.

use super::build;
use crate::export::tests::run as whole;
use crate::model::Report;
use crate::render;
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use std::fs;
use std::path::{Path, PathBuf};

/// What can happen to a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Cut,
    Flipped,
    Gone,
    Emptied,
    Swollen,
}

const DAMAGES: [Damage; 5] = [
    Damage::Cut,
    Damage::Flipped,
    Damage::Gone,
    Damage::Emptied,
    Damage::Swollen,
];

/// The files of a run that a report reads.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn damage(path: &Path, how: Damage, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    let at = at % bytes.len().max(1);
    match how {
        Damage::Cut => bytes.truncate(at),
        Damage::Flipped => bytes
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte ^= 0x5a),
        Damage::Gone => return fs::remove_file(path).unwrap(),
        Damage::Emptied => bytes.clear(),
        Damage::Swollen => bytes.extend([0xff; 40]),
    }
    fs::write(path, bytes).unwrap();
}

/// A whole run with the files that a small one lacks.
fn run() -> tempfile::TempDir {
    let dir = whole();
    fs::write(dir.path().join("probes.json"), "{}").unwrap();
    fs::write(dir.path().join("series.ndjson"), "{\"at_ns\":1}\n").unwrap();
    dir
}

/// The medians of TTFT of a run's arms.
fn medians(report: &Report, run: &str) -> Vec<Option<f64>> {
    let arms = report.arms.iter().filter(|arm| arm.run == run);
    arms.map(|arm| arm.ttft.p50.value().or(arm.rate)).collect()
}

fn name(dir: &tempfile::TempDir) -> String {
    dir.path()
        .file_name()
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_run_harms_no_other_and_what_is_lost_is_named(
        file in 0_usize..8, how in 0_usize..5, at in 0_usize..10_000) {
        let (good, bad) = (run(), run());
        let alone = build(&[good.path().to_owned()]).unwrap();
        let all = files(bad.path());
        let hit = &all[file % all.len()];
        damage(hit, DAMAGES[how], at);
        let report = build(&[bad.path().to_owned(), good.path().to_owned()]).unwrap();
        prop_assert_eq!(medians(&report, &name(&good)), medians(&alone, &name(&good)));
        // Calls are checked by their sums: one that is not there any more is told.
        let sent = |name: &str| -> usize {
            report.arms.iter().filter(|arm| arm.run == name).map(|arm| arm.strata.sent).sum()
        };
        let calls = hit.components().any(|part| part.as_os_str() == "calls");
        if calls && !matches!(DAMAGES[how], Damage::Gone) && sent(&name(&bad)) < sent(&name(&good)) {
            prop_assert!(!report.losses.is_empty(), "{:?} of {}", DAMAGES[how], hit.display());
        }
        prop_assert!(render::html(&report).ends_with("</html>"));
        prop_assert!(render::markdown(&report).starts_with("# "));
    }
}

#[test]
fn a_directory_that_is_no_run_is_named_beside_those_that_are() {
    let (good, none) = (run(), tempfile::tempdir().unwrap());
    let report = build(&[none.path().to_owned(), good.path().to_owned()]).unwrap();
    assert_eq!(report.runs.len(), 1);
    let at = none.path().display().to_string();
    assert!(
        report.losses.iter().any(|loss| loss.contains(&at)),
        "{:?}",
        report.losses
    );
    assert!(build(&[none.path().to_owned()]).is_err(), "nothing is left");
}

#[test]
fn a_run_named_twice_counts_once_and_two_of_one_name_are_told_apart() {
    let good = run();
    let path = good.path().to_owned();
    let report = build(&[path.clone(), path.join(".")]).unwrap();
    assert_eq!(report.runs.len(), 1);
    assert!(
        report
            .losses
            .iter()
            .any(|loss| loss.contains("named twice")),
        "{:?}",
        report.losses
    );
    let home = tempfile::tempdir().unwrap();
    let other = home.path().join(path.file_name().unwrap());
    for file in files(&path) {
        let to = other.join(file.strip_prefix(&path).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&file, to).unwrap();
    }
    let report = build(&[path, other]).unwrap();
    let names: Vec<&str> = report.runs.iter().map(|run| run.name.as_str()).collect();
    assert_ne!(names[0], names[1]);
    for name in names {
        assert_eq!(medians(&report, name).len(), 2, "{name}");
    }
}
