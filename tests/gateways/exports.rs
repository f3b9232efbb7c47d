//! What `hopscope export` writes, read by the tools whose forms these are. *Simulated*: a stand-in is measured.

use super::driven::{drive, records};
use super::rig::{chain, free, serve};
use super::{alone, engine, installed, script, target};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CALLERS: u32 = 4;
const CALLS: usize = 240;
const TOKENS: u32 = 16;

/// Two samples beyond a percentile are enough here, so that no percentile is left out.
fn scenario() -> String {
    format!(
        "
name: exports
number: 4
question: Do other tools read it?
workload: {{input_tokens: 20, output_tokens: {TOKENS}}}
open_loop: {{common_rate: 20, cell: {{duration: 5s}}}}
closed_loop: {{concurrency: [{CALLERS}], cell: {{calls: {CALLS}}}}}
blocks: 1
controls: [direct]
warmup: {{calls: 4}}
limits: {{samples_beyond_min: 2}}
seed: 5
"
    )
}

/// A run in `dir` against the stand-in at `at`.
fn measured(dir: &Path, at: SocketAddr) -> PathBuf {
    let chain = chain(&[("outer", free(), at)]);
    let server = serve(&chain, &records(dir), "tap");
    let driven = drive(dir, chain, server, &scenario(), Vec::new());
    driven.run.root().to_owned()
}

/// The files of `run` in a form.
fn exported(run: &Path, form: &str, out: &Path) -> Vec<PathBuf> {
    let said = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .arg("export")
        .arg(run)
        .args(["--format", form, "--out"])
        .arg(out)
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
    let files = String::from_utf8(said.stdout).unwrap();
    let files: Vec<PathBuf> = files.lines().map(PathBuf::from).collect();
    assert_eq!(files.len(), 2, "one a cell: {files:?}");
    files
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Runs `clients/NAME.py` with the Python of `component`.
fn python(component: &str, name: &str, arguments: &[&str]) -> Output {
    Command::new(target().join(format!("real/{component}/bin/python")))
        .arg(script(&format!("clients/{name}.py")))
        .args(arguments)
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .unwrap()
}

/// What the tool understood, as JSON.
fn understood(component: &str, name: &str, arguments: &[&str]) -> Value {
    let said = python(component, name, arguments);
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{arguments:?}: {stderr}");
    serde_json::from_slice(&said.stdout).unwrap()
}

/// Everything that we wrote and that is not null was understood as it was written.
fn kept(at: &str, ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Null, _) => {}
        (Value::Object(ours), Value::Object(theirs)) => {
            for (key, value) in ours.iter().filter(|(_, value)| !value.is_null()) {
                let found = theirs.get(key);
                let found = found.unwrap_or_else(|| panic!("{at}/{key} is lost"));
                kept(&format!("{at}/{key}"), value, found);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{at}");
            for (n, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                kept(&format!("{at}/{n}"), ours, theirs);
            }
        }
        (Value::Number(ours), Value::Number(theirs)) => {
            assert_eq!(ours.as_f64(), theirs.as_f64(), "{at}");
        }
        _ => assert_eq!(ours, theirs, "{at}"),
    }
}

/// The file again, with `change` made.
fn spoilt(file: &Path, change: impl FnOnce(&mut Value)) -> PathBuf {
    let mut content = json(file);
    change(&mut content);
    let path = file.with_file_name("spoilt.json");
    std::fs::write(&path, content.to_string()).unwrap();
    path
}

#[test]
fn llm_d_reads_its_report_and_makes_reports_of_the_other_forms() {
    let Some(_turn) = installed("llm-d-report") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let run = measured(dir.path(), engine(&runtime));
    let read = |kind: &str, file: &Path| {
        understood(
            "llm-d-report",
            "llmd_report",
            &[kind, file.to_str().unwrap()],
        )
    };
    let all = "/results/request_performance/aggregate";
    for file in exported(&run, "llm-d", &dir.path().join("llm-d")) {
        let ours = json(&file);
        kept("", &ours, &read("report", &file));
        let latency = ours.pointer(&format!("{all}/latency")).unwrap();
        for figure in [
            "time_to_first_token",
            "time_per_output_token",
            "inter_token_latency",
        ] {
            assert!(latency[figure]["p95"].is_number(), "{figure}: {latency}");
        }
        let spoilt = spoilt(&file, |content| {
            *content
                .pointer_mut(&format!("{all}/latency/request_latency/units"))
                .unwrap() = "count".into();
        });
        let said = python(
            "llm-d-report",
            "llmd_report",
            &["report", spoilt.to_str().unwrap()],
        );
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert!(
            !said.status.success() && stderr.contains("Invalid units"),
            "{stderr}"
        );
    }
    // Its converters read what their tools write, and so must what we write in their place.
    for (form, kind, factor) in [
        ("aiperf", "aiperf", 1e-3),
        ("vllm-bench", "vllm-benchmark", 1.0),
    ] {
        for file in exported(&run, form, &dir.path().join(form)) {
            let (ours, report) = (json(&file), read(kind, &file));
            let ours = match form {
                "aiperf" => &ours["time_to_first_token"]["avg"],
                _ => &ours["mean_ttft_ms"],
            };
            let theirs = report.pointer(&format!("{all}/latency/time_to_first_token/mean"));
            let (ours, theirs) = (ours.as_f64().unwrap(), theirs.unwrap().as_f64().unwrap());
            assert!(
                (ours * factor / theirs - 1.0).abs() < 1e-9,
                "{form}: {ours}, {theirs}"
            );
            let rate = report.pointer(&format!("{all}/throughput/total_token_rate/mean"));
            assert!(rate.unwrap().as_f64().unwrap() > 0.0);
        }
    }
    runtime.shutdown_background();
}

#[test]
fn aiperf_reads_its_export() {
    let Some(_turn) = installed("aiperf") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let run = measured(dir.path(), engine(&runtime));
    for file in exported(&run, "aiperf", &dir.path().join("aiperf")) {
        let theirs = understood("aiperf", "aiperf_export", &[file.to_str().unwrap()]);
        kept("", &json(&file), &theirs);
        let spoilt = spoilt(&file, |content| {
            content["time_to_first_token"]["unit"] = "sec".into();
        });
        let said = python("aiperf", "aiperf_export", &[spoilt.to_str().unwrap()]);
        let stderr = String::from_utf8_lossy(&said.stderr);
        assert!(
            !said.status.success() && stderr.contains("AIPerf writes ms"),
            "{stderr}"
        );
    }
    runtime.shutdown_background();
}

/// What their file has and ours deliberately not.
const ABSENT: [&str; 3] = [
    // Of each single request: `calls.parquet` has it.
    "latencies",
    "queue_times",
    // Of speech.
    "rtfx",
];

/// The result of the real `vllm bench serve` over the stand-in at `at`, driven as the closed loop of [`scenario`].
fn bench(dir: &Path, at: SocketAddr) -> Map<String, Value> {
    let home = target().join("real/vllm");
    let said = Command::new(home.join("bin/vllm"))
        .args(["bench", "serve", "--backend", "openai-chat"])
        .args(["--endpoint", "/v1/chat/completions", "--model", "m"])
        .args(["--base-url", &format!("http://{at}"), "--tokenizer"])
        .arg(home.join("model"))
        .args(["--dataset-name", "random", "--random-input-len", "20"])
        .args(["--random-output-len", &TOKENS.to_string(), "--ignore-eos"])
        .args(["--num-prompts", &CALLS.to_string()])
        .args(["--max-concurrency", &CALLERS.to_string()])
        .args(["--percentile-metrics", "ttft,tpot,itl,e2el"])
        .args(["--metric-percentiles", "50,90,95,99"])
        .args(["--label", "bench", "--disable-tqdm", "--save-result"])
        .args(["--result-filename", "bench.json", "--result-dir"])
        .arg(dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("XDG_CONFIG_HOME", dir.join("config"))
        .envs([("HF_HUB_OFFLINE", "1"), ("VLLM_NO_USAGE_STATS", "1")])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{stderr}");
    match json(&dir.join("bench.json")) {
        Value::Object(fields) => fields,
        other => panic!("{other}"),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[test]
fn vllm_bench_writes_the_same_fields_of_the_same_stand_in() {
    let Some(_turn) = alone(&["vllm"]) else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let at = engine(&runtime);
    let dir = tempfile::tempdir().unwrap();
    let theirs = bench(dir.path(), at);
    let run = measured(dir.path(), at);
    let files = exported(&run, "vllm-bench", &dir.path().join("vllm-bench"));
    let closed = files
        .iter()
        .find(|file| file.to_string_lossy().contains("closed"));
    let Value::Object(mut ours) = json(closed.unwrap()) else {
        panic!("{files:?}")
    };
    assert_eq!(ours.remove("hopscope").unwrap()["simulated"], true);
    runtime.shutdown_background();

    let names = |of: &Map<String, Value>| of.keys().cloned().collect::<BTreeSet<String>>();
    let mut wanted = names(&theirs);
    for absent in ABSENT {
        assert!(wanted.remove(absent), "{absent} is no field any more");
    }
    assert_eq!(names(&ours), wanted);
    for (name, value) in &ours {
        match name.as_str() {
            // It counts chunks by the second, and we keep no instant of each.
            "max_output_tokens_per_s" => assert!(value.is_null()),
            _ => assert_eq!(kind(value), kind(&theirs[name]), "{name}"),
        }
    }
    for name in [
        "backend",
        "endpoint_type",
        "model_id",
        "num_prompts",
        "completed",
        "failed",
        "request_rate",
        "burstiness",
        "max_concurrency",
        "total_output_tokens",
    ] {
        let number = |of: &Value| of.as_f64();
        match number(&ours[name]) {
            Some(value) => assert_eq!(Some(value), number(&theirs[name]), "{name}"),
            None => assert_eq!(ours[name], theirs[name], "{name}"),
        }
    }
    // Two clients of one stand-in: the same magnitude, and so the same unit. What is a spread is each client's own.
    let mut compared = 0;
    for (name, value) in &ours {
        let figure = name.ends_with("_ms") && !name.starts_with("std_");
        let other = [
            "duration",
            "request_throughput",
            "output_throughput",
            "max_concurrent_requests",
        ];
        if figure || other.contains(&name.as_str()) {
            let (ours, theirs) = (value.as_f64().unwrap(), theirs[name].as_f64().unwrap());
            println!("{name}: {ours:.2} by hopscope, {theirs:.2} by vLLM");
            let most = if name.starts_with("p9") { 3.0 } else { 1.5 };
            assert!(
                (1.0 / most..most).contains(&(ours / theirs)),
                "{name}: {ours}, {theirs}"
            );
            compared += 1;
        }
    }
    // Mean, median and four percentiles of four figures.
    assert_eq!(compared, 24 + 4);
    let length = theirs["date"].as_str().unwrap().len();
    assert_eq!(ours["date"].as_str().unwrap().len(), length);
}
