//! The server side of a run: what engine and gateway say of themselves, against what the calls were told; and
//! a component that leaks. *Simulated*.

use crate::rig::{Rig, chain, free};
use config::chain::Scrape;
use config::{ChainKind, Scenario};
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, PlannedTap, Stop};
use record::manifest::Drive;
use record::rundir::RunDir;
use report::{HitRate, LeakFinding, Report};
use sim::engine::{EngineOptions, ModelOptions};
use sim::gateway::GatewayOptions;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

const PROMPTS: &str = "
name: scraping
number: 3
question: Does the hit rate by counters agree with the calls' own?
workload: {input_tokens: 20, output_tokens: 16, system: {count: 3, tokens: 600}}
closed_loop: {concurrency: [2], cell: {calls: 60}}
blocks: 2
warmup: {calls: 4}
seed: 3
";

fn scrape(component: &str, kind: &str, at: SocketAddr, figures: &str) -> Scrape {
    let text = format!(
        "{{\"component\": \"{component}\", \"kind\": \"{kind}\", \"url\": \"http://{at}/metrics\", \"every\": \"100ms\", \"figures\": {{{figures}}}}}"
    );
    serde_json::from_str(&text).unwrap()
}

fn modelled() -> EngineOptions {
    EngineOptions {
        model_options: ModelOptions {
            modelled: true,
            kv_blocks: 400,
            time_scale: 20.0,
            ..ModelOptions::default()
        },
        ..EngineOptions::default()
    }
}

/// Runs `scenario` through taps around a gateway before a modelled engine, reading the metrics of both, and of
/// one that nobody serves.
fn run(scenario: &str, out: &Path) -> RunDir {
    let mut rig = Rig::start(modelled(), GatewayOptions::default());
    let parsed = config::from_text::<Scenario>(Path::new("scraping.yaml"), scenario)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut plan = Plan::new("scraping", out, parsed.into_inner(), scenario.to_owned());
    let mut driven = chain(&[
        ("outer", rig.outer, rig.gateway),
        ("inner", rig.inner, rig.engine),
    ]);
    driven.kind = ChainKind::Gateway;
    let figures = "\"requests\": \"sim_gateway_requests_total\", \"cache_hits\": \"sim_gateway_cache_hits_total\"";
    driven.scrape = vec![
        scrape("engine", "vllm", rig.engine, ""),
        scrape("gateway", "other", rig.gateway, figures),
        scrape("dead", "litellm", free(), ""),
    ];
    plan.chains.push(PlannedChain {
        chain: driven,
        text: String::new(),
        base: out.to_owned(),
        // Everything runs in this process.
        pids: vec![std::process::id()],
        injected: None,
    });
    plan.taps.push(PlannedTap {
        records: rig.records.path().join("taps/tap"),
        pid: None,
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    drop(rig.calls());
    run
}

fn rate<'a>(report: &'a Report, name: &str) -> &'a HitRate {
    let mut rates = report.arms[0].server.rates.iter();
    rates
        .find(|r| r.name == name)
        .unwrap_or_else(|| panic!("no {name} in {:?}", report.arms[0].server))
}

#[test]
fn the_scraped_hit_rate_is_that_of_the_calls_and_a_dead_endpoint_stops_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(PROMPTS, &dir.path().join("run"));
    let report = report::build(&[run.root().to_owned()]).unwrap();
    let side = &report.arms[0].server;
    let (calls, _) = run.read_calls().unwrap();
    assert!(calls.len() >= 120);
    let sum = |pick: &dyn Fn(&record::client::ClientCall) -> bool| -> (f64, f64) {
        let of = calls.iter().filter(|c| pick(c));
        of.fold((0.0, 0.0), |(cached, all), c| {
            let cached = cached + f64::from(c.usage_cached.unwrap());
            (cached, all + f64::from(c.usage_prompt.unwrap()))
        })
    };
    let told = |rate: &HitRate| (rate.hits, rate.of);
    // By the engine's counters over whole cells, to the token.
    let kv = rate(&report, "KV cache");
    assert_eq!(told(kv), sum(&|_| true));
    assert!(kv.whole && kv.share().unwrap() > 0.5, "{kv:?}");
    assert!(
        kv.source.contains("engine: vllm:prefix_cache_hits_total"),
        "{kv:?}"
    );
    let client = rate(&report, "prompt cache, as the client is told");
    assert_eq!(told(client), told(kv));
    // At the inner tap, of the measured calls alone.
    let inner = rate(&report, "KV cache, request by request");
    assert_eq!(told(inner), sum(&|c| !c.warmup));
    // Over blocks, and beside what there was to be found.
    let (low, high) = client.interval.unwrap();
    assert!(
        (low..=high).contains(&client.share().unwrap()),
        "{client:?}"
    );
    let again = side.repetition.unwrap();
    assert_eq!(again.calls, calls.len() as u64);
    let most = again.prefix_tokens as f64 / again.tokens as f64;
    let found = kv.share().unwrap();
    assert!(
        found < most + 0.02 && found > most / 2.0,
        "{found} of {most}"
    );
    // The gateway's own counter beside the taps' evidence: no prompt came twice.
    let own = rate(&report, "cache of answers");
    assert_eq!(told(own), (0.0, calls.len() as f64));
    let taps = rate(&report, "cache of answers, by the taps");
    assert_eq!(told(taps), (0.0, report.arms[0].strata.sent as f64));

    let [engine, gateway, dead] = side.components.as_slice() else {
        panic!("{side:?}")
    };
    assert_eq!(
        (side.calls, side.probes),
        (Some(calls.len() as u64), Some(0))
    );
    assert_eq!(engine.requests, Some(calls.len() as f64));
    assert_eq!(gateway.requests, engine.requests);
    assert_eq!((engine.gaps, engine.restarts), (0, Some(0)));
    let (running, kv) = (engine.running.unwrap(), engine.kv_usage.unwrap());
    assert!(running.max <= 2.0 && running.looks > 0, "{running:?}");
    assert!(kv.max > 0.0 && kv.max <= 1.0, "{kv:?}");
    assert_eq!((gateway.running, gateway.kv_usage), (None, None));
    // The dead one: named, a gap each time, nothing of it known.
    assert!(dead.looks >= 4 && dead.gaps == dead.looks);
    assert_eq!((dead.requests, dead.restarts), (None, None));
    let named: Vec<&String> = report
        .losses
        .iter()
        .filter(|l| l.contains("dead"))
        .collect();
    assert!(
        named.len() == 1 && named[0].contains("refused"),
        "{named:?}"
    );

    assert!(report.runs[0].scrape_cpu.unwrap() > 0.0);
    let scraped = run.manifest().unwrap().scraped;
    assert_eq!(scraped.len(), 3);
    assert!(run.root().join("scrapes.parquet").is_file());
    let seconds = run.read_seconds().unwrap();
    let known = |s: &&record::rundir::Second| s.descriptors.is_some_and(|n| n > 10);
    assert!(seconds.iter().any(|s| known(&s) && s.memory.is_some()));
    let (page, text) = (
        report::render::html(&report),
        report::render::markdown(&report),
    );
    for shown in [&page, &text] {
        assert!(shown.contains("vllm:prefix_cache_hits_total") && shown.contains("engine (vllm)"));
        assert!(shown.contains("not measured") && !shown.contains("NaN"));
    }
}

const COURSE: &str = "
name: soak
number: 8
question: Does it leak?
workload: {input_tokens: 20, output_tokens: 16}
profile:
  arrivals: uniform
  phases:
    - {name: steady, rate: 20, duration: 1s}
blocks: 1
warmup: {calls: 1}
seed: 3
";

/// The course takes a second; its record is made three hours long, with a component that loses 4 MB and
/// breathes, and descriptors that come and go.
#[test]
fn a_component_that_leaks_is_told_by_the_series_of_a_long_course() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(COURSE, &dir.path().join("run"));
    let short = report::build(&[run.root().to_owned()]).unwrap();
    assert!(
        short
            .leaks
            .iter()
            .all(|l| l.finding == LeakFinding::TooShort),
        "{:?}",
        short.leaks
    );
    let mut manifest = run.manifest().unwrap();
    let cell = &mut manifest.cells[0];
    let hours = 3 * 3600 * 1_000_000_000;
    cell.to = cell.from + hours;
    if let Drive::Profile { phases } = &mut cell.drive {
        phases[0].lasts = hours;
    }
    let (from, name) = (cell.from, cell.chain.clone());
    run.write_manifest(&manifest).unwrap();
    let mut series = String::new();
    for second in 0..3 * 3600_u64 {
        let noise = second * 7919 % 13;
        // At first pools fill: that is no leak.
        let filling = second.min(600) * 100_000;
        let memory = 200_000_000 + filling + second * 4_000_000 / 3600 + noise * 50_000;
        writeln!(
            series,
            "{{\"at_ns\":{},\"chain\":\"{name}\",\"component_rss_bytes\":{memory},\"component_descriptors\":{}}}",
            from + second * 1_000_000_000,
            40 + noise
        )
        .unwrap();
    }
    std::fs::write(run.series(), series).unwrap();
    let report = report::build(&[run.root().to_owned()]).unwrap();
    let [memory, descriptors] = report.leaks.as_slice() else {
        panic!("{:?}", report.leaks)
    };
    assert_eq!(memory.finding, LeakFinding::Grows);
    assert!(
        (memory.slope_per_hour / 4e6 - 1.0).abs() < 0.05,
        "{memory:?}"
    );
    assert!(
        memory.interval.0 < 4e6 && memory.interval.1 > 4e6,
        "{memory:?}"
    );
    assert_eq!(memory.samples, 9720, "the first tenth is left out");
    assert_eq!(descriptors.finding, LeakFinding::NoneShown);
    assert!(report::render::html(&report).contains("What the component keeps"));
    assert!(report::render::markdown(&report).contains("| grows |"));
}
