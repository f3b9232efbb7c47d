//! A run that was killed or stopped is taken up again, and nothing of it is counted twice or lost.

use crate::rig::{PATIENCE, Rig, engine};
use config::Scenario;
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, Stop};
use record::client::CallOutcome;
use record::manifest::{Cell, Drive, Manifest};
use record::rundir::RunDir;
use sim::engine::EngineOptions;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 30_000,
        gap_us: 1_000,
        ..EngineOptions::default()
    }
}

pub(crate) fn write(dir: &Path, scenario: &str, (outer, at): (SocketAddr, SocketAddr)) {
    let chain = format!(
        "name: rig\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{outer}\nmodel: m\n\
         taps: [{{name: outer, position: outer, listen: \"{outer}\", upstream: {{addresses: [\"{at}\"]}}}}]\n"
    );
    std::fs::write(dir.join("chain.yaml"), chain).unwrap();
    std::fs::write(dir.join("scenario.yaml"), scenario).unwrap();
}

pub(crate) fn load(dir: &Path, rig: &Rig, more: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(["load", "--quiet", "--scenario"])
        .arg(dir.join("scenario.yaml"))
        .arg("--chain")
        .arg(dir.join("chain.yaml"))
        .arg("--out")
        .arg(dir.join("run"))
        .arg("--tap")
        .arg(rig.records.path().join("taps/tap"))
        .args(more)
        .spawn()
        .unwrap()
}

/// Waits until the run in `dir` is as `far` says.
fn wait(dir: &Path, far: impl Fn(&Manifest, usize) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < until, "the run did not come so far");
        std::thread::sleep(Duration::from_millis(50));
        let Ok(run) = RunDir::open(&dir.join("run")) else {
            continue;
        };
        if let (Ok(manifest), Ok((calls, _))) = (run.manifest(), run.read_calls())
            && far(&manifest, calls.len())
        {
            return;
        }
    }
}

const COURSE: &str = "
name: course
number: 8
question: Does it go on?
workload: {input_tokens: 20, output_tokens: 16}
profile:
  arrivals: uniform
  phases:
    - {name: first, rate: 100, duration: 3s}
    - {name: second, rate: 50, duration: 3s}
blocks: 1
warmup: {calls: 2}
seed: 7
";

#[test]
fn a_course_goes_on_where_a_kill_cut_it_and_every_call_is_accounted_for() {
    let (_engine, at) = engine(quick());
    let rig = Rig::around(at);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), COURSE, (rig.outer, at));
    let mut killed = load(dir.path(), &rig, &[]);
    wait(dir.path(), |_, calls| calls > 120);
    killed.kill().unwrap();
    killed.wait().unwrap();
    // Invalid, since nobody calibrated; but it comes to its end.
    let status = load(dir.path(), &rig, &["--resume"]).wait().unwrap();
    assert_eq!(status.code(), Some(1));

    let run = RunDir::open(&dir.path().join("run")).unwrap();
    let manifest = run.manifest().unwrap();
    let [cut, rest] = &manifest.cells[..] else {
        panic!("{:?}", manifest.cells);
    };
    assert!(cut.cut && !rest.cut && cut.skipped == 0 && rest.id > cut.id);
    assert_eq!(rest.skipped, cut.to - cut.from);
    assert_eq!(manifest.resumed.len(), 1);
    assert!(manifest.under_way.is_empty() && manifest.verdict.is_some());
    // 300 calls in the first phase, 150 in the second, each once.
    let (calls, _) = run.read_calls().unwrap();
    let of = |cell: &Cell| {
        let mine = calls.iter().filter(|c| c.cell == cell.id);
        mine.map(|c| c.seq).collect::<BTreeSet<_>>().len() as u64
    };
    assert_eq!(of(cut) + of(rest), calls.len() as u64);
    assert_eq!(calls.len(), 450);
    assert_eq!((cut.sent + rest.sent, cut.scheduled), (450, Some(cut.sent)));
    let lost = calls.iter().filter(|c| c.outcome != CallOutcome::Complete);
    let lost: Vec<_> = lost.collect();
    // In flight at the kill: three or so, and what ended after the last write to the disk.
    assert!(lost.len() < 130, "{} calls lost", lost.len());
    assert!(
        lost.iter()
            .all(|c| c.outcome == CallOutcome::CutOff && c.end <= cut.to)
    );

    let (exchanges, _) = run.read_exchanges().unwrap();
    let answered = calls.len() - lost.len();
    assert!(
        (answered..=calls.len() + 6).contains(&exchanges.len()),
        "{}",
        exchanges.len()
    );

    let report = report::build(&[dir.path().join("run")]).unwrap();
    let sent: Vec<_> = report
        .arms
        .iter()
        .map(|a| (a.strata.sent, a.blocks))
        .collect();
    assert_eq!(sent, [(450, 1), (300, 1), (150, 1)]);
    assert!(report.losses.iter().any(|l| l.contains("taken up again")));

    // What is finished is not done again.
    assert_eq!(
        load(dir.path(), &rig, &["--resume"]).wait().unwrap().code(),
        Some(1)
    );
    assert_eq!(run.read_calls().unwrap().0.len(), 450);
    assert_eq!(run.manifest().unwrap().cells, manifest.cells);
    assert!(run.read_exchanges().unwrap().0.len() <= exchanges.len() + 1);
}

const CELLS: &str = "
name: cells
number: 1
question: Does it go on?
workload: {input_tokens: 20, output_tokens: 16}
closed_loop: {concurrency: [1, 2, 3], cell: {duration: 1s}}
blocks: 2
warmup: {calls: 2}
seed: 7
";

#[test]
fn finished_cells_stay_and_the_one_that_was_cut_is_driven_anew() {
    let (_engine, at) = engine(quick());
    let rig = Rig::around(at);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), CELLS, (rig.outer, at));
    let mut killed = load(dir.path(), &rig, &[]);
    wait(dir.path(), |m, calls| {
        m.cells.len() == 2 && !m.under_way.is_empty() && calls > 0
    });
    std::thread::sleep(Duration::from_millis(300));
    killed.kill().unwrap();
    killed.wait().unwrap();
    let run = RunDir::open(&dir.path().join("run")).unwrap();
    let before = run.manifest().unwrap();

    // With other files it is another run.
    std::fs::write(
        dir.path().join("scenario.yaml"),
        CELLS.replace("[1, 2, 3]", "[1, 2]"),
    )
    .unwrap();
    let refused = load(dir.path(), &rig, &["--resume"]).wait().unwrap();
    assert_eq!(refused.code(), Some(2));
    assert_eq!(run.manifest().unwrap(), before);

    std::fs::write(dir.path().join("scenario.yaml"), CELLS).unwrap();
    load(dir.path(), &rig, &["--resume"]).wait().unwrap();
    let after = run.manifest().unwrap();
    assert_eq!(after.cells[..2], before.cells[..2]);
    let mut ways: Vec<(u32, u32)> = after
        .cells
        .iter()
        .map(|c| match c.drive {
            Drive::Closed { concurrency } => (c.block, concurrency),
            ref other => panic!("{other:?}"),
        })
        .collect();
    ways.sort_unstable();
    assert_eq!(ways, [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]);
    let numbers: BTreeSet<u32> = after.cells.iter().map(|c| c.id).collect();
    assert!(numbers.len() == 6 && !numbers.contains(&before.under_way[0].id));
    let log = std::fs::read_to_string(run.histograms()).unwrap();
    assert!(
        numbers
            .iter()
            .all(|id| log.contains(&format!("Tag=cell{id}.ttft,")))
    );
}

#[test]
fn a_run_that_was_stopped_goes_on_too() {
    let (_engine, at) = engine(quick());
    let rig = Rig::around(at);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), COURSE, (rig.outer, at));
    let chain = config::load::<config::Chain>(dir.path().join("chain.yaml")).unwrap();
    let scenario = config::load::<Scenario>(dir.path().join("scenario.yaml")).unwrap();
    let out = dir.path().join("run");
    let mut plan = Plan::new("run", &out, scenario.into_inner(), COURSE.to_owned());
    plan.chains.push(PlannedChain::from_file(&chain).unwrap());
    let stop = Stop::default();
    let asked = stop.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1500));
        asked.request();
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &stop).unwrap();
    let stopped = run.manifest().unwrap();
    assert!(stopped.cells[0].cut);
    let early = |m: &Manifest| {
        let checks = m.verdict.clone().unwrap();
        checks.broken().any(|c| c.name == "stopped-early")
    };
    assert!(early(&stopped));
    plan.resume = true;
    loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    let ended = run.manifest().unwrap();
    assert!(!early(&ended));
    let sent: u64 = ended.cells.iter().map(|c| c.sent).sum();
    assert_eq!((sent, run.read_calls().unwrap().0.len()), (450, 450));
}
