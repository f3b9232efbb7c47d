//! A whole run against stand-ins with known delays: what the load generator writes down and what
//! the report says of it, held against the stand-in's own stamps.

use crate::rig::{Rig, chain};
use config::Scenario;
use hopscope::truth;
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, PlannedTap, Stop};
use record::manifest::Drive;
use record::rundir::RunDir;
use report::{Arm, LegRow};
use sim::engine::EngineOptions;
use sim::gateway::GatewayOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SCENARIO: &str = "
name: small
number: 4
question: Does the report say what was injected?
workload: {input_tokens: 20, output_tokens: 16}
open_loop: {common_rate: 20, cell: {duration: 1s}}
closed_loop: {concurrency: [4], cell: {calls: 30}}
blocks: 2
warmup: {calls: 4}
seed: 7
";

/// The run's directory, the injected truth, and the calls as they were paired offline.
fn run() -> (tempfile::TempDir, PathBuf, Vec<truth::Compared>) {
    let engine = EngineOptions {
        ttft_us: 20_000,
        gap_us: 3_000,
        ..EngineOptions::default()
    };
    let gateway = GatewayOptions {
        request_delay_us: 20_000,
        reserialize: true,
        ..GatewayOptions::default()
    };
    let mut rig = Rig::start(engine, gateway);
    let records = rig.records.path().join("taps/tap");
    let scenario = config::from_text::<Scenario>(Path::new("small.yaml"), SCENARIO).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let mut plan = Plan::new("small", &out, scenario.into_inner(), SCENARIO.to_owned());
    // What the generator needs of the chain: its entry, and that taps stand on both sides.
    let (one, two, three) = (crate::rig::free(), crate::rig::free(), crate::rig::free());
    let mut driven = chain(&[("outer", rig.outer, one), ("inner", two, three)]);
    driven.name = "rig".to_owned();
    plan.chains.push(PlannedChain {
        chain: driven,
        text: "name: rig".to_owned(),
        base: dir.path().to_owned(),
        pids: vec![std::process::id()],
        injected: Some("20ms on the request".to_owned()),
    });
    plan.taps.push(PlannedTap {
        records,
        pid: Some(std::process::id()),
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    let compared = truth::compare(&rig.calls(), &rig.truth.take());
    (dir, run.root().to_owned(), compared)
}

fn leg<'a>(arm: &'a Arm, name: &str) -> &'a LegRow {
    arm.legs.iter().find(|l| l.leg == name).unwrap()
}

#[test]
fn a_run_and_its_report_say_what_happened_and_no_more() {
    let (_dir, root, truths) = run();
    let run = RunDir::open(&root).unwrap();
    let manifest = run.manifest().unwrap();
    let (calls, losses) = run.read_calls().unwrap();
    assert!(
        losses.is_empty()
            && root.join("calls.parquet").is_file()
            && root.join("exchanges.parquet").is_file()
    );

    // Every due call was sent, and a cell's window is its duration, not the span of its calls.
    let open: Vec<_> = manifest
        .cells
        .iter()
        .filter(|c| matches!(c.drive, Drive::Open { .. }))
        .collect();
    assert_eq!(open.len(), 2);
    for cell in open {
        assert_eq!(cell.scheduled, Some(cell.sent));
        assert_eq!(cell.to - cell.from, 1_000_000_000);
        let measured = calls.iter().filter(|c| c.cell == cell.id && !c.warmup);
        assert_eq!(measured.clone().count() as u64, cell.sent);
        assert!(
            measured
                .clone()
                .all(|c| (cell.from..cell.to).contains(&c.intended))
        );
        // Warm-up cost CPU too: it is counted with the calls that it was spent on.
        assert!(cell.counted.answered >= cell.sent + 4 && cell.counted.seconds > 1.0);
    }

    let report = report::build(&[root]).unwrap();
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let closed = report.arms.iter().find(|a| a.label == "4 at once").unwrap();
    assert_eq!(
        (closed.blocks, closed.strata.sent, closed.strata.pairing),
        (2, 60, Some(1.0))
    );
    assert_eq!(closed.strata.identity_broken, 0);
    let true_request = truths.iter().find(|t| t.leg == "request").unwrap().truth;
    let request = leg(closed, "request").p50.value().unwrap();
    // Two hops and a wake-up lie between, longer on a busy machine.
    assert!(
        request > true_request * 0.98 && request < true_request + 8e6,
        "{request} against {true_request}"
    );
    assert!(leg(closed, "added TTFT").interval.is_some());
    assert_eq!(closed.merge_ratio, Some(1.0));
    // 60 calls carry no 99th percentile, and there was no relay probe.
    assert!(leg(closed, "request").p99.value().is_none());
    assert_eq!(leg(closed, "request").floor, None);

    // No calibration, no floor probe: not shown to be valid, and the first line says so.
    let verdict = manifest.verdict.unwrap();
    assert!(!verdict.valid() && verdict.broken().any(|c| c.name == "floor"));
    let page = report::render::html(&report);
    let markdown = report::render::markdown(&report);
    for text in [&page, &markdown] {
        assert!(text.contains("simulated") && text.contains("Not shown to be valid"));
        assert!(!text.contains("NaN") && !text.contains("inf ") && !text.contains("null"));
    }
    // The name of SVG's namespace is no address that anything loads.
    let loads = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http://", "https://", "<script", "<link", "@import", "url("] {
        assert!(
            !loads.contains(outside),
            "the page loads or links nothing: {outside}"
        );
    }
    assert_eq!(
        page.matches("<table").count(),
        page.matches("</table>").count()
    );
    assert!(
        serde_json::from_str::<serde_json::Value>(&report::render::json(&report).unwrap()).is_ok()
    );
}
