//! Arms of runs made by hand.

use super::*;
use crate::gather::{CacheUsage, Joined, Tapped};
use crate::model::{
    CacheShare, Contrast, Drift, Leak, LeakFinding, Perturbation, ProbeFindings, Reading,
    SemanticFinding,
};
use crate::quantile::Rules;
use crate::render::{self, cached, sent};
use record::client::{CallOutcome, ClientCall};
use record::leg::{Legs, TextAgreement, TokenLegs};
use record::manifest::Manifest;
use record::pairing::CallClass;
use record::probe::Probes;
use record::span::Span;
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::path::Path;

const MS: u64 = 1_000_000;

/// Legs of a call to which so many nanoseconds are added.
pub(super) fn legs(added: i64) -> Legs {
    let span = Some(Span {
        value: added,
        low: added,
        high: added,
    });
    Legs {
        head: None,
        request: None,
        recovery: None,
        first_token: None,
        last_token: None,
        tokens: TokenLegs::default(),
        finish: None,
        terminal: None,
        end: None,
        added_ttft: span,
        added_text: span,
        added_end: span,
        outside_attempts: None,
        text: TextAgreement::Same,
        merge_ratio: None,
    }
}

/// A call through both taps.
pub(super) fn tapped(legs: Option<Legs>) -> Tapped {
    Tapped {
        class: CallClass::Served,
        pairable: true,
        paired: true,
        resent: false,
        legs,
        identity_broken: false,
        own_delay: None,
        events: 0,
        joined: 0,
        claimed: None,
        inner: CacheUsage::default(),
    }
}

/// Call `seq` of a cell, due each ten milliseconds and answered in full in one.
fn call(seq: u64) -> Joined {
    let due = seq * 10 * MS;
    Joined {
        client: ClientCall {
            sent: Some(due),
            first_text: Some(due + MS),
            end: due + MS,
            outcome: CallOutcome::Complete,
            ..ClientCall::unanswered(0, seq, due, due)
        },
        taps: None,
    }
}

/// A cell of a second, of 100 calls all of which were sent.
fn cell(id: u32, block: u32, drive: &Drive) -> Value {
    json!({
        "id": id, "chain": "mock", "drive": drive, "block": block, "from": 0, "to": 1_000 * MS,
        "scheduled": 100, "sent": 100, "gateway_memory": 1_000,
    })
}

/// A run of `cells`, whose calls are these.
fn run(cells: &[Value], calls: Vec<(u32, Vec<Joined>)>) -> Gathered {
    let manifest = json!({
        "format": 1, "version": "0.1.0", "run": "r", "started": "2026-12-01T08:09:10Z",
        "host": {"name": "h", "cpu": null, "cpus": 2, "memory": null, "kernel": null},
        "shared_cpu": true, "simulated": true, "config": {},
        "chains": [
            {"name": "mock", "kind": "gateway", "simulated": true, "gateway": null, "capacity": null, "injected": null},
            {"name": "real", "kind": "gateway", "simulated": false, "gateway": null, "capacity": null, "injected": null},
        ],
        "workload": {"input_tokens": 20, "output_tokens": 10, "tokenizer": "o200k_base", "stream": true},
        "cells": cells, "calibration": null, "verdict": null, "taps": [],
    });
    Gathered {
        name: "r".to_owned(),
        manifest: serde_json::from_value::<Manifest>(manifest).unwrap(),
        rules: Rules::default(),
        scenario: None,
        calls: calls.into_iter().collect(),
        tools: HashMap::new(),
        usage: HashMap::new(),
        looks: Vec::new(),
        seconds: Vec::new(),
        probes: Probes::default(),
        floors: HashSet::new(),
        samples: HashMap::new(),
    }
}

fn open(rate: f64, share: Option<f64>) -> Drive {
    Drive::Open { rate, share }
}

fn whole(run: &Gathered) -> Vec<Arm> {
    let groups = groups(run);
    groups.iter().map(|g| arm::arm(run, g, None)).collect()
}

#[test]
fn drives_that_differ_in_the_second_digit_are_two_arms_with_two_names() {
    let drives = [
        open(0.44, None),
        open(0.36, None),
        // A share of capacity is one arm, whatever rate it came to.
        open(50.04, Some(0.255)),
        open(50.01, Some(0.255)),
        open(50.0, Some(0.25)),
    ];
    let cells: Vec<Value> = (0..)
        .zip(&drives)
        .map(|(id, drive)| cell(id, id, drive))
        .collect();
    let arms = whole(&run(&cells, Vec::new()));
    let labels: Vec<(&str, usize)> = arms.iter().map(|a| (a.label.as_str(), a.blocks)).collect();
    assert_eq!(
        labels,
        [
            ("0.36/s", 1),
            ("0.44/s", 1),
            ("25 % of capacity (50.0/s)", 1),
            ("25.5 % of capacity (50.0/s)", 2),
        ]
    );
    assert_eq!(label(&open(1.0, Some(0.29))), "29 % of capacity (1.0/s)");
}

#[test]
fn calls_that_were_due_and_not_sent_are_the_slowest() {
    let one = |unsent: u64| {
        let mut cell = cell(0, 0, &open(100.0, None));
        cell["scheduled"] = json!(300 + unsent);
        cell["sent"] = json!(300);
        let calls = (0..300).map(call).collect();
        whole(&run(&[cell], vec![(0, calls)])).remove(0)
    };
    let all = one(0);
    assert!(matches!(all.ttft_intended.p95, Reading::Value { .. }));
    assert_eq!(all.strata.unsent, Some(0));
    // Of the 310 as many may be lost as a tenth of those beyond: 15 of p50, 1 of p95.
    let some = one(10);
    for row in [&some.ttft, &some.ttft_intended, &some.e2e] {
        assert!(matches!(row.p50, Reading::Value { .. }), "{row:?}");
        assert!(matches!(row.p95, Reading::Refused(_)), "{row:?}");
    }
    let most = one(400);
    assert!(matches!(most.ttft.p50, Reading::Refused(_)));
    assert_eq!((most.strata.sent, most.strata.unsent), (300, Some(400)));
    assert_eq!(sent(&most.strata), "sent 300 of 700 scheduled");
}

#[test]
fn a_phase_of_which_it_is_not_known_what_was_due_has_no_quantiles() {
    let phase = |name: &str| json!({"name": name, "rate": 100.0, "to": 100.0, "lasts": 500 * MS});
    let course = |sent: &dyn Fn(&u64) -> bool| {
        let drive = json!({"kind": "profile", "phases": [phase("a"), phase("b")]});
        let mut cell = cell(0, 0, &open(100.0, None));
        let calls: Vec<Joined> = (0..100).filter(sent).map(call).collect();
        cell["drive"] = drive;
        cell["sent"] = json!(calls.len());
        let run = run(&[cell], vec![(0, calls)]);
        phases(&run, &groups(&run)[0])
    };
    let known = course(&|n| !(60..70).contains(n));
    assert_eq!(known[0].strata.unsent, Some(0));
    assert_eq!(known[1].strata.unsent, Some(10));
    assert!(known[0].ttft.p50.value().is_some());
    let across = course(&|n| !(45..55).contains(n));
    for phase in &across {
        assert_eq!((phase.strata.sent, phase.strata.unsent), (45, None));
        assert!(matches!(phase.ttft.p50, Reading::Refused(_)));
        assert_eq!(phase.ttft.interval, None);
    }
}

#[test]
fn a_share_of_cached_tokens_says_of_how_many_calls_it_is() {
    let calls = (0..100).map(|n| {
        let mut joined = call(n);
        joined.client.usage_prompt = Some(100);
        joined.client.usage_cached = (n < 40).then_some(50);
        joined
    });
    let run = run(
        &[cell(0, 0, &open(100.0, None))],
        vec![(0, calls.collect())],
    );
    let arm = whole(&run).remove(0);
    assert_eq!((arm.cached_share, arm.cached_stated), (Some(0.5), 40));
    assert_eq!(cached(&arm), "50.00 % (40 of 100 calls state it)");
}

#[test]
fn memory_that_was_not_measured_in_every_cell_is_not_the_largest_of_the_others() {
    let drive = open(100.0, None);
    let mut cells = vec![cell(0, 0, &drive), cell(1, 1, &drive)];
    assert_eq!(
        whole(&run(&cells, Vec::new()))[0].gateway_memory,
        Some(1_000)
    );
    cells[1]["gateway_memory"] = Value::Null;
    assert_eq!(whole(&run(&cells, Vec::new()))[0].gateway_memory, None);
}

/// A report of everything that names a chain, half of it of a stand-in.
fn mixed() -> Report {
    let drive = open(100.0, None);
    let mut cells = vec![cell(0, 0, &drive), cell(1, 0, &drive)];
    cells[1]["chain"] = json!("real");
    let run = run(&cells, Vec::new());
    let mut arms = whole(&run);
    arms.iter_mut().for_each(|arm| arm.claimed = Some(1.0));
    let chains = [("mock", true), ("real", false)];
    let semantic = |(chain, _): (&str, bool)| SemanticFinding {
        chain: chain.to_owned(),
        tenant: "t".to_owned(),
        same: CacheShare::default(),
        near: CacheShare::default(),
        astray: 0,
        nameless: 0,
        failed: 0,
        hit_ttft: None,
        miss_ttft: None,
    };
    let drift = |(chain, simulated): (&str, bool)| Drift {
        run: "r".to_owned(),
        chain: chain.to_owned(),
        simulated,
        figure: "TTFT p50",
        phases: 8,
        of: 8,
        slope_per_hour: 0.0,
        s: 0,
        p: 1.0,
    };
    let leak = |(chain, simulated): (&str, bool)| Leak {
        run: "r".to_owned(),
        chain: chain.to_owned(),
        simulated,
        figure: "open descriptors",
        unit: "",
        samples: 8,
        stretches: 8,
        hours: 1.0,
        level: 1.0,
        slope_per_hour: 0.0,
        interval: (0.0, 0.0),
        finding: LeakFinding::TooShort,
    };
    let perturbation = |(chain, simulated): (&str, bool)| Perturbation {
        run: "r".to_owned(),
        chain: chain.to_owned(),
        simulated,
        label: "100/s".to_owned(),
        difference: None,
        expected: None,
        excess: None,
        refused: None,
    };
    let contrast = |(chain, simulated): (&str, bool)| Contrast {
        run: "r".to_owned(),
        a: chain.to_owned(),
        b: "other".to_owned(),
        simulated,
        saturated: false,
        drive: open(100.0, None),
        label: "100/s".to_owned(),
        blocks: 2,
        differences: Vec::new(),
        refused: Some("other work".to_owned()),
    };
    let mut run = info(run, Path::new("r"));
    run.probes = Some(ProbeFindings {
        semantic: chains.map(semantic).into(),
        ..ProbeFindings::default()
    });
    Report {
        format: FORMAT,
        simulated: true,
        runs: vec![run],
        arms,
        perturbations: chains.map(perturbation).into(),
        drifts: chains.map(drift).into(),
        experiments: Vec::new(),
        variants: Vec::new(),
        leaks: chains.map(leak).into(),
        losses: Vec::new(),
        contrasts: chains.map(contrast).into(),
    }
}

#[test]
fn a_cell_in_which_no_call_was_due_has_no_rate() {
    let rate = |due: u64| {
        let mut one = cell(0, 0, &open(1.0, None));
        (one["scheduled"], one["sent"]) = (json!(due), json!(0));
        let arms = whole(&run(&[one], vec![(0, Vec::new())]));
        (arms[0].rate, arms[0].tokens_rate)
    };
    assert_eq!(rate(0), (None, None));
    // A hundred were due, and none of them was answered.
    assert_eq!(rate(100), (Some(0.0), Some(0.0)));
}

#[test]
fn every_row_of_a_stand_in_is_marked_beside_real_ones() {
    let report = mixed();
    let (markdown, html) = (render::markdown(&report), render::html(&report));
    let lines: Vec<&str> = markdown.lines().collect();
    let rows: Vec<&str> = html
        .split("<tr")
        .flat_map(|rest| rest.split("</tr>"))
        .collect();
    for (rows, at_least) in [(lines, 8), (rows, 9)] {
        for (chain, simulated) in [("mock", true), ("real", false)] {
            let of: Vec<&&str> = rows.iter().filter(|row| row.contains(chain)).collect();
            assert!(of.len() >= at_least, "{of:?}");
            for row in of {
                assert_eq!(row.contains("simulated"), simulated, "{row}");
            }
        }
    }
}

#[test]
fn a_hit_rate_says_of_how_many_requests_it_is() {
    let calls = (0..100).map(|n| {
        let mut joined = call(n);
        let stated = u64::from(n < 40);
        let inner = CacheUsage {
            calls: 1,
            stated,
            cached: 50 * stated,
            prompt: 100 * stated,
        };
        joined.taps = Some(Tapped {
            inner,
            ..tapped(None)
        });
        joined
    });
    let run = run(
        &[cell(0, 0, &open(100.0, None))],
        vec![(0, calls.collect())],
    );
    let arm = whole(&run).remove(0);
    let rate = &arm.server.rates[0];
    assert_eq!(rate.name, "KV cache, request by request");
    assert_eq!((rate.stated, rate.whole), (Some((40, 100)), false));
}

#[test]
fn a_drift_says_in_how_many_phases_it_could_be_read() {
    // Nine phases of ten calls; in the fifth eight were due and not sent.
    let phase =
        |n: u32| json!({"name": format!("p{n}"), "rate": 100.0, "to": 100.0, "lasts": 100 * MS});
    let phases_of = (0..9).map(phase).collect::<Vec<Value>>();
    let mut cell = cell(0, 0, &open(100.0, None));
    cell["drive"] = json!({"kind": "profile", "phases": phases_of});
    cell["to"] = json!(900 * MS);
    (cell["scheduled"], cell["sent"]) = (json!(90), json!(82));
    let sent = (0..90).filter(|n| !(41..49).contains(n));
    let run = run(&[cell], vec![(0, sent.map(call).collect())]);
    let groups = groups(&run);
    let whole = arm::arm(&run, &groups[0], None);
    let drifts = drift::drifts(
        &whole,
        drift::course(&whole.drive),
        &phases(&run, &groups[0]),
    );
    let read: Vec<(&str, usize, usize)> =
        drifts.iter().map(|d| (d.figure, d.phases, d.of)).collect();
    assert_eq!(
        read,
        [
            ("TTFT p50", 8, 9),
            ("E2E p50", 8, 9),
            ("share of calls not answered in full", 9, 9)
        ]
    );
    assert!(drifts.iter().all(|d| d.simulated));
}

#[test]
fn a_run_says_which_scenario_made_it_by_its_manifest_or_its_file() {
    let told = |run: Gathered| {
        info(run, Path::new("r"))
            .scenario
            .map(|s| (s.number, s.name))
    };
    assert_eq!(told(run(&[], Vec::new())), None);
    let file = r#"{"name": "f", "number": 8, "question": "q", "seed": 1, "warmup": {"calls": 1},
        "workload": {"input_tokens": 50, "output_tokens": 50},
        "profile": {"phases": [{"name": "a", "rate": 1, "duration": "1s"}]}}"#;
    let mut older = run(&[], Vec::new());
    let read = config::from_text::<config::Scenario>(std::path::Path::new("f"), file);
    older.scenario = Some(read.unwrap().into_inner());
    assert_eq!(told(older), Some((8, "f".to_owned())));
    let mut newer = run(&[], Vec::new());
    let scenario = json!({"number": 3, "name": "m"});
    newer.manifest.scenario = serde_json::from_value(scenario).unwrap();
    assert_eq!(told(newer), Some((3, "m".to_owned())));
}
