//! What calls ask: prompts of the length that a backend counts, and the replay of a trace, against engines
//! that count by themselves. *Simulated*.

use crate::rig::{chain, free};
use config::{ChainKind, Scenario};
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, Stop};
use record::client::{CallOutcome, ClientCall};
use record::manifest::Manifest;
use report::export::{Format, Pick, export};
use sim::engine::{EngineOptions, ModelOptions};
use sim::truth::Log;
use std::collections::HashSet;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

async fn engine(options: EngineOptions) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(sim::engine::serve(listener, options, Log::off(), pending()));
    at
}

/// Runs `scenario` against engines, each a chain of its own, into `dir`.
fn run(
    dir: &Path,
    scenario: &str,
    engines: &[(&str, EngineOptions)],
) -> (Manifest, Vec<ClientCall>) {
    let runtime = Runtime::new().unwrap();
    let parsed = config::from_text::<Scenario>(Path::new("w.yaml"), scenario)
        .unwrap_or_else(|error| panic!("{error}"));
    let out = dir.join("run");
    let mut plan = Plan::new("w", &out, parsed.into_inner(), scenario.to_owned());
    for (name, options) in engines {
        let at = runtime.block_on(engine(options.clone()));
        let mut driven = chain(&[("outer", at, free())]);
        driven.name = (*name).to_owned();
        driven.kind = ChainKind::Service;
        driven.taps.clear();
        plan.chains.push(PlannedChain {
            chain: driven,
            text: String::new(),
            base: dir.to_owned(),
            pids: Vec::new(),
            injected: None,
        });
    }
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    runtime.shutdown_background();
    let (calls, losses) = run.read_calls().unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    (run.manifest().unwrap(), calls)
}

#[test]
fn prompts_have_the_length_that_the_backend_counts_and_compared_chains_the_same_text() {
    let counting = |tokens_per_word, template_tokens| EngineOptions {
        ttft_us: 0,
        gap_us: 0,
        tokens_per_word,
        template_tokens,
        ..EngineOptions::default()
    };
    let scenario = "
name: probe
number: 1
question: Are prompts as long as the backend counts?
workload: {input_tokens: 1500, output_tokens: 16, system: {count: 2, tokens: 500}, usage_probe: {}}
closed_loop: {concurrency: [2], cell: {calls: 40}}
blocks: 1
warmup: {calls: 2}
seed: 5
";
    let dir = tempfile::tempdir().unwrap();
    let engines = [("one", counting(1.25, 30)), ("two", counting(1.3, 30))];
    let (manifest, calls) = run(dir.path(), scenario, &engines);
    let probe = &manifest.token_probes[0];
    println!("{}", probe.words(&manifest.workload.tokenizer));
    // (2000 − 30) ÷ 1.25 of ours, as exactly as words that count one or two allow.
    assert!(probe.sent().abs_diff(1576) < 30, "{probe:?}");
    let mean = |cell: &str| {
        let id = manifest.cells.iter().find(|c| c.chain == cell).unwrap().id;
        let counts: Vec<f64> = calls
            .iter()
            .filter(|c| c.cell == id && c.outcome == CallOutcome::Complete)
            .map(|c| f64::from(c.usage_prompt.unwrap()))
            .collect();
        assert!(counts.len() >= 40);
        counts.iter().sum::<f64>() / counts.len() as f64
    };
    let (one, two) = (mean("one"), mean("two"));
    // The probe holds its mean to 1 %; of 40 other prompts the mean scatters by another tenth of that.
    assert!((one / 2000.0 - 1.0).abs() < 0.013, "{one}");
    assert!(calls.iter().all(|c| c.prompt_tokens == probe.sent()));
    // The other chain was not corrected, and how far it is off was told beforehand.
    let told = probe.counted[1].deviation.unwrap();
    assert!((two / one - 1.0 - told).abs() < 0.01, "{two} {one} {told}");
    assert!((told - 0.0394).abs() < 0.01, "{told}");
    let report = report::build(&[dir.path().join("run")]).unwrap();
    let page = report::render::html(&report);
    assert!(page.contains("2000 tokens asked for") && page.contains("% from one"));
    assert!(report::render::markdown(&report).contains("2000 tokens asked for"));
}

/// Times in ms, prompt and answer tokens, blocks of 32 tokens: conversations that grow, and strangers.
const TRACE: [(u64, u32, u32, &[i64]); 7] = [
    (5_000, 100, 16, &[1, 2, 3, 4]),
    (5_300, 140, 20, &[1, 2, 3, 5, 6]),
    (5_301, 64, 16, &[7, 8]),
    (6_000, 100, 3, &[9, 10, 11, 12]),
    (6_500, 200, 16, &[1, 2, 3, 5, 13, 14, 15]),
    (7_100, 96, 16, &[7, 16, 17]),
    (7_200, 50, 18, &[]),
];

#[test]
fn a_trace_is_replayed_at_its_times_with_its_lengths_and_its_shared_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> = TRACE
        .iter()
        .map(|(at, input, output, blocks)| {
            let names = match blocks.is_empty() {
                true => String::new(),
                false => format!(", \"hash_ids\": {blocks:?}"),
            };
            format!("{{\"timestamp\": {at}, \"input_length\": {input}, \"output_length\": {output}{names}}}\n")
        })
        .collect();
    let file = dir.path().join("small.jsonl");
    std::fs::write(&file, lines.concat()).unwrap();
    let scenario = format!(
        "name: replay\nnumber: 9\nquestion: q\nworkload: {{input_tokens: 20, output_tokens: 16}}\n\
         trace: {{file: {:?}, speed: 2.0, block_tokens: 32}}\nblocks: 1\nwarmup: {{calls: 1}}\nseed: 5\n",
        file.display().to_string()
    );
    // Fast enough that a prompt is in the cache before the next one of its conversation comes.
    let modelled = EngineOptions {
        model_options: ModelOptions {
            modelled: true,
            time_scale: 200.0,
            ..ModelOptions::default()
        },
        ..EngineOptions::default()
    };
    let (manifest, mut calls) = run(dir.path(), &scenario, &[("engine", modelled)]);
    calls.sort_by_key(|call| call.seq);
    assert_eq!(calls.len(), TRACE.len());
    assert!(
        calls
            .iter()
            .all(|c| !c.warmup && c.outcome == CallOutcome::Complete)
    );
    let first = calls[0].intended;
    let mut seen: HashSet<&[i64]> = HashSet::new();
    for (call, (at, input, output, blocks)) in calls.iter().zip(&TRACE) {
        // To the nanosecond: half of the trace's time after its first call.
        assert_eq!(call.intended - first, (at - 5_000) * 1_000_000 / 2);
        assert_eq!(
            (call.prompt_tokens, call.usage_prompt),
            (*input, Some(*input))
        );
        assert_eq!(call.usage_completion, Some(*output));
        // What an earlier prompt of the trace began with is in the engine's cache, block by block.
        let shared = (1..=blocks.len())
            .rev()
            .find(|n| seen.contains(&blocks[..*n]));
        let shared = u32::try_from(shared.unwrap_or(0)).unwrap() * 32;
        assert_eq!(call.usage_cached.unwrap_or(0), shared, "call {}", call.seq);
        // The last block of a prompt is not full, and nobody shares it.
        seen.extend((1..blocks.len()).map(|n| &blocks[..n]));
    }
    let cell = &manifest.cells[0];
    assert_eq!((cell.scheduled, cell.sent), (Some(7), 7));
    let trace = manifest.workload.trace.unwrap();
    assert_eq!((trace.calls, trace.input_tokens, trace.empty), (7, 750, 0));
    let report = report::build(&[dir.path().join("run")]).unwrap();
    assert_eq!(report.arms[0].label, "trace small.jsonl, 2 times as fast");
    assert!(report::render::html(&report).contains("7 calls with 750 prompt tokens"));

    // The same run in the forms of other tools, against what the rows say.
    let exported = |format| {
        let mut all = export(&dir.path().join("run"), format, &Pick::default()).unwrap();
        assert_eq!((all.files.len(), all.losses.len()), (1, 0));
        all.files.remove(0).json
    };
    let mean = |of: &dyn Fn(&ClientCall) -> u64| {
        calls.iter().map(|c| of(c) as f64 / 1e6).sum::<f64>() / calls.len() as f64
    };
    let close = |json: &serde_json::Value, path: &str, truth: f64| {
        let found = json.pointer(path).and_then(serde_json::Value::as_f64);
        assert!(
            found.is_some_and(|f| (f - truth).abs() < 1e-6),
            "{path}: {found:?}, {truth}"
        );
    };
    let ttft = mean(&|c| c.ttft().unwrap());
    close(&exported(Format::Aiperf), "/time_to_first_token/avg", ttft);
    let vllm = exported(Format::VllmBench);
    close(&vllm, "/mean_ttft_ms", mean(&|c| c.ttft_choice().unwrap()));
    assert_eq!(
        (&vllm["completed"], &vllm["total_input_tokens"]),
        (&7.into(), &750.into())
    );
    let llm_d = exported(Format::LlmD);
    let aggregate = "/results/request_performance/aggregate";
    close(
        &llm_d,
        &format!("{aggregate}/latency/request_latency/mean"),
        mean(&|c| c.e2e().unwrap()),
    );
    let asked = &llm_d["scenario"]["load"]["standardized"]["input_seq_len"];
    assert_eq!(asked["distribution"], "other");
}
