//! Several generators that drive one run together send exactly its schedule, and their results merge into it.

use crate::rig::{Rig, engine};
use record::manifest::{Cell, Drive};
use record::rundir::RunDir;
use sim::engine::EngineOptions;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SCENARIO: &str = "
name: parts
number: 7
question: Do parts make a whole?
workload: {input_tokens: 20, output_tokens: 16}
open_loop:
  rates: [30, 60]
  arrivals: uniform
  cell: {duration: 2s}
closed_loop: {concurrency: [5], cell: {duration: 1s}}
blocks: 1
warmup: {duration: 500ms}
timeouts: {connect: 1s, first_byte: 1s, silence: 1s, total: 1s}
seed: 7
";

fn part(dir: &Path, rig: &Rig, shard: &str, at: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(["load", "--quiet", "--scenario"])
        .arg(dir.join("scenario.yaml"))
        .arg("--chain")
        .arg(dir.join("chain.yaml"))
        .arg("--out")
        .arg(dir.join(format!("part-{}", &shard[..1])))
        .arg("--tap")
        .arg(rig.records.path().join("taps/tap"))
        .args(["--name", "whole", "--shard", shard, "--start-at", at])
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn merge(dir: &Path, parts: &[&str], out: &str) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .arg("merge")
        .args(parts.iter().map(|part| dir.join(part)))
        .arg("--out")
        .arg(dir.join(out))
        .output()
        .unwrap()
}

#[test]
fn the_parts_of_a_run_send_its_schedule_and_merge_into_it() {
    let (_engine, at) = engine(EngineOptions {
        ttft_us: 20_000,
        gap_us: 1_000,
        ..EngineOptions::default()
    });
    let rig = Rig::around(at);
    let dir = tempfile::tempdir().unwrap();
    let chain = format!(
        "name: rig\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{0}\nmodel: m\n\
         taps: [{{name: outer, position: outer, listen: \"{0}\", upstream: {{addresses: [\"{at}\"]}}}}]\n",
        rig.outer
    );
    std::fs::write(dir.path().join("chain.yaml"), chain).unwrap();
    std::fs::write(dir.path().join("scenario.yaml"), SCENARIO).unwrap();
    let over = part(dir.path(), &rig, "0/2", "1000").wait().unwrap();
    assert_eq!(over.code(), Some(2), "a start that is over");

    let start = record::clock::wall() / 1_000_000_000 + 3;
    let parts = ["0/2", "1/2"].map(|n| part(dir.path(), &rig, n, &start.to_string()));
    for mut part in parts {
        // Invalid for lack of a calibration and of the tap's process, but at its end.
        assert!(part.wait().unwrap().code().is_some_and(|code| code < 2));
    }
    let lonely = merge(dir.path(), &["part-0"], "merged");
    let told = String::from_utf8_lossy(&lonely.stderr).into_owned();
    assert!(
        lonely.status.code() == Some(2) && told.contains("1 of 2 parts"),
        "{told}"
    );
    let twice = merge(dir.path(), &["part-0", "part-0"], "merged");
    assert_eq!(twice.status.code(), Some(2));

    let merged = merge(dir.path(), &["part-1", "part-0"], "merged");
    assert!(
        merged.status.code().is_some_and(|code| code < 2),
        "{merged:?}"
    );
    let run = RunDir::open(&dir.path().join("merged")).unwrap();
    let manifest = run.manifest().unwrap();
    let (calls, losses) = run.read_calls().unwrap();
    assert!(losses.is_empty());
    let read = |part: &str| {
        RunDir::open(&dir.path().join(part))
            .unwrap()
            .read_calls()
            .unwrap()
            .0
    };
    assert_eq!(calls.len(), read("part-0").len() + read("part-1").len());

    let open = |rate: f64| -> &Cell {
        let is = |c: &&Cell| matches!(c.drive, Drive::Open { rate: r, .. } if r == rate);
        manifest.cells.iter().find(is).unwrap()
    };
    for rate in [30.0, 60.0] {
        let cell = open(rate);
        // Half a second of warm-up and two seconds, each call once, a gap apart on one schedule.
        let mut due: Vec<(u64, u64)> = calls
            .iter()
            .filter(|c| c.cell == cell.id)
            .map(|c| (c.seq, c.intended))
            .collect();
        due.sort_unstable();
        let numbers: BTreeSet<u64> = due.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(numbers.len(), due.len());
        assert_eq!(numbers, (0..due.len() as u64).collect());
        let gap = 1e9 / rate;
        for pair in due.windows(2) {
            let apart = (pair[1].1 - pair[0].1) as f64;
            // Both parts read two clocks once: they agree within what that takes.
            assert!((apart - gap).abs() < 0.2 * gap, "{apart} ns for {gap} ns");
        }
        let measured = calls
            .iter()
            .filter(|c| c.cell == cell.id && !c.warmup)
            .count() as u64;
        assert_eq!((cell.scheduled, cell.sent), (Some(measured), measured));
        assert!(
            (measured as f64 - 2.0 * rate).abs() <= 1.0,
            "{measured} at {rate}"
        );
    }
    let (exchanges, _) = run.read_exchanges().unwrap();
    let named: BTreeSet<&str> = exchanges
        .iter()
        .filter_map(|e| e.keys.client.as_deref())
        .collect();
    assert!(
        calls.iter().all(|c| named.contains(c.key().as_str())),
        "a call without its exchange"
    );

    let report = report::build(&[run.root().to_owned()]).unwrap();
    let sent: Vec<usize> = report.arms.iter().map(|a| a.strata.sent).collect();
    assert!(
        sent[0].abs_diff(60) <= 1 && sent[1].abs_diff(120) <= 1,
        "{sent:?}"
    );
    let callers = report.arms.iter().find(|a| a.label.contains('5')).unwrap();
    let complete = [("complete".to_owned(), callers.strata.sent)];
    assert_eq!(callers.strata.outcomes, complete);
}
