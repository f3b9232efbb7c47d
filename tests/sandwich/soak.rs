//! A day of load, its hours as seconds: what the load generator holds in memory does not grow with it, while
//! it drives and when it closes the run.

use crate::life::memory_of;
use crate::resume::{load, write};
use crate::rig::{PATIENCE, Rig, engine};
use record::rundir::RunDir;
use sim::engine::EngineOptions;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Calls a second. A whole day at 30 a second are 2.6 million: `bench/soak` drives them.
const RATE: u64 = 600;
const HOURS: u64 = 24;

fn day() -> String {
    let hour = |n: u64| format!("    - {{name: hour-{n:02}, rate: {RATE}, duration: 1s}}\n");
    let hours: String = (1..=HOURS).map(hour).collect();
    let mut text = "name: day\nnumber: 8\nquestion: Does the generator stay as it is?\n".to_owned();
    write!(
        text,
        "workload: {{input_tokens: 20, output_tokens: 16}}\nprofile:\n  arrivals: uniform\n  phases:\n{hours}\
         blocks: 1\nwarmup: {{calls: 1}}\nseed: 7\n"
    )
    .unwrap();
    text
}

/// Bytes in the segments of calls.
fn written(run: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(run.join("calls")) else {
        return 0;
    };
    let sizes = entries.filter_map(|e| Some(e.ok()?.metadata().ok()?.len()));
    sizes.sum()
}

#[test]
fn a_day_in_seconds_leaves_the_generator_as_large_as_it_was() {
    let (_engine, at) = engine(EngineOptions::default());
    let rig = Rig::around(at);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &day(), (rig.outer, at));
    let mut process = load(dir.path(), &rig, &[]);
    let run = dir.path().join("run");
    let until = Instant::now() + PATIENCE;
    while written(&run) < 1_000 {
        assert!(Instant::now() < until, "the run does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    let begun = Instant::now();
    let (mut third, mut driving, mut most) = (0, 0, 0);
    let status = loop {
        if let Some(status) = process.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < Duration::from_secs(HOURS) + PATIENCE);
        let now = memory_of(process.id()).unwrap_or(0);
        most = now.max(most);
        let seconds = begun.elapsed().as_secs();
        if seconds < HOURS / 3 {
            third = now.max(third);
        } else if seconds < HOURS - 1 {
            driving = now.max(driving);
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    // Invalid, since nobody calibrated; but it comes to its end.
    assert_eq!(status.code(), Some(1));
    let run = RunDir::open(&run).unwrap();
    let (sent, calls) = (
        run.manifest().unwrap().cells[0].sent,
        run.stream_calls().unwrap().count() as u64,
    );
    assert_eq!((sent, calls), (RATE * HOURS, RATE * HOURS));
    assert_eq!(run.pair().unwrap().count() as u64, calls);
    println!(
        "{third} bytes in the first third, {driving} after it, {most} with the close of the run"
    );
    let grown = driving.saturating_sub(third);
    assert!(grown < 3 << 20, "grew by {grown} bytes while it drove");
    // Tables are written in groups of rows: that is what the close takes, for a run of any length.
    let closing = most.saturating_sub(driving);
    assert!(closing < 40 << 20, "the close took {closing} bytes");
}
