//! A run made by hand, in which every tool's figure can be told from every other's.

use super::*;
use crate::quantile::Rules;
use record::client::{CallOutcome, ClientCall};
use record::rundir::SegmentWriter;
use serde_json::json;
use std::fs::File;
use std::time::Duration;

const MS: u64 = 1_000_000;
/// The window opens here.
const FROM: u64 = 1_000 * MS;

/// Sent at `sent` ms after the window's opening: role after 10 ms, text after 30, each later text 20 ms
/// after the last (five of them, ten tokens), the finish reason 5 ms later, the last byte after 7 more.
fn call(seq: u64, sent: u64) -> ClientCall {
    let sent = FROM + sent * MS;
    ClientCall {
        sent: Some(sent),
        head: Some(sent + 9 * MS),
        first_choice: Some(sent + 10 * MS),
        first_text: Some(sent + 30 * MS),
        last_text: Some(sent + 110 * MS),
        finish: Some(sent + 115 * MS),
        done: Some(sent + 122 * MS),
        end: sent + 122 * MS,
        status: Some(200),
        outcome: CallOutcome::Complete,
        prompt_tokens: 20,
        usage_prompt: Some(24),
        usage_completion: Some(10),
        text_events: 5,
        ..ClientCall::unanswered(0, seq, sent, sent)
    }
}

fn manifest() -> Value {
    let cell = |id: u32, drive: Value, floor: Value| {
        json!({
            "id": id, "chain": "gate", "drive": drive, "block": 0, "from": FROM, "to": FROM + 1_000 * MS,
            "scheduled": 3, "sent": 3, "generator_cpu": null, "tap_cpu": null, "gateway_cpu": null,
            "gateway_memory": null, "saturated": false, "floor_cell": floor,
        })
    };
    let open = json!({"kind": "open", "rate": 3.0, "share": null});
    let host = json!({"name": "h", "cpu": null, "cpus": 2, "memory": null, "kernel": null});
    json!({
        "format": 1, "version": "0.1.0", "run": "r", "started": "2026-12-01T08:09:10Z", "host": host,
        "shared_cpu": true, "simulated": true,
        "config": {"chain gate": "name: gate\nkind: service\nentry: http://127.0.0.1:1\nmodel: llama\ngateway: {name: G, version: '2'}\ntaps: [{name: outer, position: outer, listen: '127.0.0.1:1', upstream: {addresses: ['127.0.0.1:2']}}]\n"},
        "chains": [{"name": "gate", "kind": "service", "simulated": true, "gateway": "G 2", "capacity": null, "injected": null}],
        "workload": {"input_tokens": 20, "output_tokens": 10, "tokenizer": "o200k_base", "stream": true},
        "cells": [
            cell(0, open.clone(), json!(1)),
            cell(1, open, Value::Null),
            cell(2, json!({"kind": "capacity", "rate": 9.0}), Value::Null),
            cell(3, json!({"kind": "closed", "concurrency": 4}), Value::Null),
        ],
        "calibration": null, "verdict": null, "taps": [],
    })
}

/// The run: two complete calls that overlap, a failed one, and one of the warm-up.
pub(crate) fn run() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path()).unwrap();
    run.write_manifest(&serde_json::from_value(manifest()).unwrap())
        .unwrap();
    let mut segments = SegmentWriter::create(&run.calls(), "calls", 1 << 20).unwrap();
    let failed = ClientCall {
        status: Some(503),
        outcome: CallOutcome::Status,
        fault: Some("status 503".to_owned()),
        end: FROM + 150 * MS,
        prompt_tokens: 20,
        ..ClientCall::unanswered(0, 2, FROM + 140 * MS, FROM + 140 * MS)
    };
    let warm = ClientCall {
        warmup: true,
        ..call(3, 0)
    };
    for call in [call(0, 10), call(1, 50), failed, warm] {
        segments.append(&call).unwrap();
    }
    segments.sync().unwrap();
    let mut gaps = histogram::durations();
    (0..8).for_each(|_| histogram::add(&mut gaps, 20 * MS));
    let entry = ("cell0.chunk-gap", Duration::ZERO, Duration::ZERO, &gaps);
    let mut log = File::create(run.histograms()).unwrap();
    histogram::write_log(&mut log, [entry].into_iter()).unwrap();
    dir
}

fn only(format: Format) -> Exported {
    let pick = Pick {
        cells: vec![0],
        ..Pick::default()
    };
    let mut exports = export(run().path(), format, &pick).unwrap();
    assert_eq!(exports.files.len(), 1);
    exports.files.remove(0)
}

/// The number at `path`, to a millionth.
fn number(json: &Value, path: &str) -> f64 {
    let found = json.pointer(path).and_then(Value::as_f64);
    let found = found.unwrap_or_else(|| panic!("{path} of {json:#}"));
    (found * 1e6).round() / 1e6
}

#[test]
fn vllm_gets_its_own_definitions() {
    let Exported { file, json } = only(Format::VllmBench);
    assert_eq!(file, Path::new("gate-open-3.00-block0-cell0.json"));
    // To the first chunk with a choice, and to the last one.
    assert_eq!(number(&json, "/mean_ttft_ms"), 10.0);
    assert_eq!(number(&json, "/mean_e2el_ms"), 115.0);
    assert_eq!(
        number(&json, "/mean_tpot_ms"),
        (105.0_f64 / 9.0 * 1e6).round() / 1e6
    );
    // Eight gaps of 20 ms, and of each call the 20 before its first text and the 5 to its finish.
    let itl = number(&json, "/mean_itl_ms");
    assert!((itl - 210.0 / 12.0).abs() < 0.05, "{itl}");
    // Until the last answer, the failed one's too.
    assert_eq!(number(&json, "/duration"), 0.172);
    assert_eq!(
        number(&json, "/request_throughput"),
        (2.0_f64 / 0.172 * 1e6).round() / 1e6
    );
    for (field, value) in [
        ("num_prompts", json!(3)),
        ("completed", json!(2)),
        ("failed", json!(1)),
        ("total_input_tokens", json!(48)),
        ("total_output_tokens", json!(20)),
        ("max_concurrent_requests", json!(2)),
        ("request_rate", json!(3.0)),
        ("max_concurrency", Value::Null),
        ("date", json!("20261201-080910")),
        ("model_id", json!("llama")),
        // Not measured, and not supported by two calls of three: null, and not 0.
        ("max_output_tokens_per_s", Value::Null),
        ("request_goodput", Value::Null),
        ("p99_ttft_ms", Value::Null),
    ] {
        assert_eq!(json[field], value, "{field}");
    }
    assert_eq!(json["hopscope"]["simulated"], json!(true));
    assert_eq!(json["hopscope"]["valid"], Value::Null);
}

#[test]
fn aiperf_gets_its_own_definitions() {
    let Exported { file, json } = only(Format::Aiperf);
    assert!(file.ends_with("profile_export_aiperf.json"));
    assert_eq!(number(&json, "/time_to_first_token/avg"), 30.0);
    assert_eq!(number(&json, "/request_latency/avg"), 110.0);
    let itl = 80.0_f64 / 9.0;
    assert_eq!(
        number(&json, "/inter_token_latency/avg"),
        (itl * 1e6).round() / 1e6
    );
    let user = number(&json, "/output_token_throughput_per_user/avg");
    assert!((user - 1e3 / itl).abs() < 1e-3, "{user}");
    assert!((number(&json, "/inter_chunk_latency/avg") - 20.0).abs() < 0.02);
    // From the first request to the last response, failed ones apart.
    assert_eq!(number(&json, "/benchmark_duration/avg"), 0.162);
    assert_eq!(number(&json, "/total_osl/avg"), 20.0);
    assert_eq!(number(&json, "/total_isl/avg"), 48.0);
    let both = number(&json, "/total_token_throughput/avg");
    assert!((both - 68.0 / 0.162).abs() < 1e-3, "{both}");
    assert_eq!(number(&json, "/request_count/avg"), 2.0);
    assert_eq!(number(&json, "/error_request_count/avg"), 1.0);
    let error = json!({"error_details": {"code": 503, "type": "status", "message": "status 503"}, "count": 1});
    assert_eq!(json["error_summary"], json!([error]));
    assert_eq!(json["time_to_first_token"]["unit"], json!("ms"));
    assert_eq!(json["time_to_first_token"]["p99"], Value::Null);
    assert!(json.get("time_to_second_token").is_none(), "not measured");
    assert_eq!(json["hopscope"]["simulated"], json!(true));
}

#[test]
fn llm_d_gets_our_definitions_in_its_schema() {
    let Exported { file, json } = only(Format::LlmD);
    assert!(file.ends_with("benchmark_report_v0.2.yaml"));
    assert_eq!(json["version"], json!("0.2"));
    let all = "/results/request_performance/aggregate";
    let figure = |path: &str| number(&json, &format!("{all}{path}"));
    assert_eq!(figure("/latency/time_to_first_token/mean"), 30.0);
    assert_eq!(figure("/latency/request_latency/mean"), 122.0);
    assert_eq!(
        figure("/latency/normalized_time_per_output_token/mean"),
        12.2
    );
    let tpot = (92.0_f64 / 9.0 * 1e6).round() / 1e6;
    assert_eq!(figure("/latency/time_per_output_token/mean"), tpot);
    let found = json.pointer(all).unwrap();
    assert_eq!(
        found["latency"]["inter_token_latency"],
        Value::Null,
        "two tokens an event: a gap between events is none between tokens"
    );
    assert_eq!(found["requests"]["total"], json!(3));
    assert_eq!(found["requests"]["failures"], json!(1));
    assert_eq!(found["requests"]["incomplete"], json!(0));
    let rate = figure("/throughput/output_token_rate/mean");
    assert!((rate - 20.0 / 0.172).abs() < 1e-3, "{rate}");
    let stack = &json["scenario"]["stack"][0]["standardized"];
    assert_eq!(
        (&stack["tool"], &stack["tool_version"]),
        (&json!("G"), &json!("2"))
    );
    let words = json["run"]["keywords"].as_array().unwrap();
    assert!(words.contains(&json!("simulated")) && words.contains(&json!("not-shown-to-be-valid")));
}

#[test]
fn probes_and_searches_are_left_out_unless_they_are_named() {
    let dir = run();
    let files = |pick: Pick| export(dir.path(), Format::VllmBench, &pick);
    let names: Vec<String> = files(Pick::default())
        .unwrap()
        .files
        .iter()
        .map(|one| one.file.display().to_string())
        .collect();
    assert_eq!(
        names,
        [
            "gate-open-3.00-block0-cell0.json",
            "gate-closed-4-block0-cell3.json"
        ]
    );
    let one = |cell: u32| Pick {
        cells: vec![cell],
        ..Pick::default()
    };
    assert_eq!(files(one(2)).unwrap().files.len(), 1);
    let error = files(one(9)).unwrap_err().to_string();
    assert!(
        error.contains("[9]") && error.contains("gate") && error.contains("4 cells"),
        "{error}"
    );
    // A cell without calls and without a log of gaps has no figures, and no zeros in their place.
    let empty = &files(one(3)).unwrap().files[0].json;
    for field in [
        "mean_ttft_ms",
        "mean_itl_ms",
        "duration",
        "request_throughput",
        "total_output_tokens",
    ] {
        assert_eq!(empty[field], Value::Null, "{field}");
    }
    assert_eq!(
        (&empty["completed"], &empty["request_rate"]),
        (&json!(0), &json!("inf"))
    );
    assert_eq!(empty["burstiness"], json!(1.0), "vLLM's default");
}

fn data<'a>(manifest: &'a Manifest, cell: &'a Cell, calls: &'a [ClientCall]) -> CellData<'a> {
    CellData {
        manifest,
        scenario: None,
        chain: None,
        cell,
        calls,
        gaps: None,
    }
}

#[test]
fn vllm_counts_a_request_in_every_second_that_it_touches() {
    let manifest: Manifest = serde_json::from_value(manifest()).unwrap();
    let peak = |sent: &[u64]| {
        let calls: Vec<ClientCall> = sent.iter().map(|at| call(*at, *at)).collect();
        vllm::peak(&data(&manifest, &manifest.cells[0], &calls))
    };
    // Each takes 115 ms: no two at once, and three in the first second.
    assert_eq!(peak(&[0, 200, 900, 2_000]), Some(3));
    // The one across the border is in both.
    assert_eq!(peak(&[0, 900, 1_020, 1_200]), Some(3));
    assert_eq!(peak(&[]), None);
}

#[test]
fn a_percentile_is_null_where_many_calls_were_due_and_not_sent() {
    let manifest: Manifest = serde_json::from_value(manifest()).unwrap();
    let calls: Vec<ClientCall> = (0..100).map(|n| call(n, n)).collect();
    let median = |scheduled| {
        let mut cell = manifest.cells[0].clone();
        (cell.scheduled, cell.sent) = (Some(scheduled), 100);
        let data = data(&manifest, &cell, &calls);
        let ttft = data.sample(|call| call.ttft().map(|n| n as f64));
        ttft.at(0.5, &Rules::default())
    };
    assert_eq!(median(100), Some(30.0 * MS as f64));
    assert_eq!(median(120), None);
}
