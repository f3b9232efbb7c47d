//! Real engines on the CPU, driven by the load generator through the taps. What the taps and the load
//! generator say is held against what the engine says of the same calls: its counters, its histograms, the
//! times in its answers.

use super::driven::{Driven, drive, ready, records, start};
use super::prometheus::get;
use super::rig::{END, chat, connect, exchange, free, pair, serve};
use super::{Running, alone, target};
use config::Chain;
use record::client::{CallOutcome, ClientCall};
use record::exchange::Exchange;
use record::leg::{TextAgreement, identity_error};
use record::pairing::{CallClass, MatchedBy};
use report::HitRate;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The sum of the samples of `name` on a page of metrics.
fn metric(at: SocketAddr, name: &str) -> f64 {
    let page = get(at, "/metrics");
    let own = |line: &&str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let values: Vec<f64> = page
        .lines()
        .filter(own)
        .map(|line| line.rsplit(' ').next().unwrap().trim().parse().unwrap())
        .collect();
    assert!(!values.is_empty(), "no {name} on {at}");
    values.iter().sum()
}

fn parsed(text: &str) -> Chain {
    config::from_text::<Chain>(Path::new("chain.yaml"), text)
        .unwrap_or_else(|error| panic!("{error}"))
        .into_inner()
}

fn tap(name: &str, position: &str, listen: SocketAddr, upstream: SocketAddr) -> String {
    format!(
        "  - {{name: {name}, position: {position}, listen: \"{listen}\", upstream: {{addresses: [\"{upstream}\"]}}}}\n"
    )
}

/// From the request's last byte towards the engine to the first choice, and to the last byte, seconds.
fn seen(exchange: &Exchange) -> (f64, f64) {
    let sent = exchange.request_out().unwrap().begin;
    let first = exchange.stream.marks.first_choice.unwrap().arrival.latest();
    let end = exchange.marks.end.unwrap().arrival.latest();
    ((first - sent) as f64 / 1e9, (end - sent) as f64 / 1e9)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// What is seen from outside holds what the engine says of itself, and what HTTP and two busy cores add to it.
fn holds(what: &str, seen: f64, engine: f64, slack: f64) {
    println!(
        "{what}: {:.1} ms seen, {:.1} ms by the engine",
        seen * 1e3,
        engine * 1e3
    );
    assert!(
        seen > engine * 0.99 && seen < engine * 1.5 + slack,
        "{what}: {seen} s seen, {engine} s by the engine"
    );
}

// --- vLLM

/// Of the engine's block size on CPUs, 128 tokens: a system prompt fills two, which the next call with it finds.
const BLOCK: u32 = 128;
const SYSTEMS: u64 = 12;
const CALLS: usize = 48;
const TOKENS: u32 = 16;

/// One call at a time, which release 0.1.17 of the router sends all to one engine by `cache_aware`: it weighs load where
/// it knows no prefix. (With two at once it also leaves engines that hold a prefix: the gain is then hardly seen.)
fn shared_prompts(policy: &str) -> String {
    let tokenizer = target().join("real/vllm/model/tokenizer.json");
    format!(
        "
name: {policy}
number: 3
question: What does a router that knows the caches find in them?
workload:
  input_tokens: 40
  output_tokens: {TOKENS}
  tokenizer: {{file: \"{}\"}}
  system: {{count: {SYSTEMS}, tokens: {}}}
closed_loop: {{concurrency: [1], cell: {{calls: {CALLS}}}}}
blocks: 1
warmup: {{calls: 1}}
seed: 3
",
        tokenizer.display(),
        2 * BLOCK + 20
    )
}

/// Sums of vLLM's own histograms over some engines.
struct Own {
    calls: f64,
    ttft: f64,
    e2e: f64,
}

impl Own {
    fn of(engines: &[SocketAddr]) -> Self {
        let sum = |name: &str| engines.iter().map(|at| metric(*at, name)).sum();
        Self {
            calls: sum("vllm:time_to_first_token_seconds_count"),
            ttft: sum("vllm:time_to_first_token_seconds_sum"),
            e2e: sum("vllm:e2e_request_latency_seconds_sum"),
        }
    }

    /// Means of the calls since `before`, seconds.
    fn since(&self, before: &Self) -> (f64, f64, f64) {
        let calls = self.calls - before.calls;
        (
            calls,
            (self.ttft - before.ttft) / calls,
            (self.e2e - before.e2e) / calls,
        )
    }
}

/// Taps → vllm-router by `policy` → the engines, each behind a tap of its own, driven once; what the engines
/// say of that beside it.
fn routed(policy: &str, dir: &Path, engines: &[SocketAddr]) -> (Driven, (f64, f64, f64)) {
    let dir = dir.join(policy);
    let (outer, router, metrics) = (free(), free(), free());
    let inner: Vec<SocketAddr> = engines.iter().map(|_| free()).collect();
    let mut text = format!(
        "name: {policy}\nkind: gateway\nentry: http://{outer}\nmodel: m\ngateway: {{name: vllm-router, version: \"0.1.17\"}}\n\
         recipe: {{forward: header, tried: true, explain: it passes x-* headers on}}\ntaps:\n"
    );
    text += &tap("outer", "outer", outer, router);
    let mut scrape = "scrape:\n".to_owned();
    for (n, (inner, engine)) in inner.iter().zip(engines).enumerate() {
        text += &tap(&format!("inner{n}"), "inner", *inner, *engine);
        writeln!(
            scrape,
            "  - {{component: vllm{n}, kind: vllm, url: \"http://{engine}/metrics\", every: 1s}}"
        )
        .unwrap();
    }
    let chain = parsed(&(text + &scrape));
    let server = serve(&chain, &records(&dir), "tap");
    let environment = [
        ("POLICY", policy),
        ("METRICS_PORT", &metrics.port().to_string()),
    ];
    let running = start("vllm-router", &dir, router, &inner, &environment);
    ready("vllm-router", &dir, router, "/health");
    let before = Own::of(engines);
    let pids = vec![running.0.id()];
    let driven = drive(&dir, chain, server, &shared_prompts(policy), pids);
    let own = Own::of(engines).since(&before);
    (driven, own)
}

/// Every call was answered, paired and counted alike by all who count.
fn sound(driven: &Driven, engines: usize) {
    let Driven { run, calls, .. } = driven;
    assert_eq!(calls.len(), CALLS + 1);
    let template: HashSet<u32> = calls
        .iter()
        .map(|call| {
            assert_eq!(call.outcome, CallOutcome::Complete, "{:?}", call.fault);
            assert_eq!(call.usage_completion, Some(TOKENS));
            // Dummy weights also say tokens that are no text of their own.
            assert!(
                (TOKENS / 2..=TOKENS).contains(&call.text_events),
                "{call:?}"
            );
            call.usage_prompt.unwrap() - call.prompt_tokens
        })
        .collect();
    // With the model's own tokenizer both count alike, but for what its chat template adds to each.
    assert!(
        template.len() == 1 && template.iter().all(|n| *n <= 16),
        "{template:?}"
    );
    let mut used: HashSet<&str> = HashSet::new();
    for call in &driven.tapped {
        assert_eq!(
            (call.class, call.matched),
            (CallClass::Served, Some(MatchedBy::Header))
        );
        let (inner, legs) = (call.served_by().unwrap(), call.legs().unwrap());
        assert_eq!(legs.text, TextAgreement::Same);
        assert_eq!(identity_error(&call.outer, inner, &legs), Some(0));
        used.insert(&inner.tap);
    }
    assert_eq!(used.len(), engines, "{used:?} were used");
    let arm = &driven.report.arms[0];
    assert_eq!(
        (arm.strata.sent, arm.strata.pairing, arm.simulated),
        (CALLS, Some(1.0), false)
    );
    for file in ["calls.parquet", "exchanges.parquet", "scrapes.parquet"] {
        assert!(run.root().join(file).is_file(), "{file}");
    }
    let page = report::render::html(&driven.report);
    assert!(page.contains(&arm.chain) && page.contains("vllm:prefix_cache_hits_total"));
}

fn rate<'a>(driven: &'a Driven, name: &str) -> &'a HitRate {
    let side = &driven.report.arms[0].server;
    let mut rates = side.rates.iter();
    rates
        .find(|rate| rate.name == name)
        .unwrap_or_else(|| panic!("no {name} in {side:?}"))
}

/// The share of prompt tokens that came from the caches, which vLLM's counters and the answers' usage state alike.
fn cached(driven: &Driven) -> f64 {
    let sum = |of: fn(&ClientCall) -> Option<u32>| -> f64 {
        driven
            .calls
            .iter()
            .map(|call| f64::from(of(call).unwrap()))
            .sum()
    };
    let told = (sum(|c| c.usage_cached), sum(|c| c.usage_prompt));
    let counters = rate(driven, "KV cache");
    assert_eq!((counters.hits, counters.of), told);
    assert!(counters.whole, "{counters:?}");
    let client = rate(driven, "prompt cache, as the client is told");
    assert_eq!((client.hits, client.of), told);
    assert!(told.0 % f64::from(BLOCK) == 0.0, "{told:?}: whole blocks");
    counters.share().unwrap()
}

/// The taps' times hold vLLM's own, and the client's hold the taps'.
fn timed(driven: &Driven, (count, ttft, e2e): (f64, f64, f64)) {
    let inner = || driven.tapped.iter().map(|call| call.served_by().unwrap());
    assert_eq!(count, inner().count() as f64, "calls by vLLM's histogram");
    holds("TTFT", mean(inner().map(|e| seen(e).0)), ttft, 0.05);
    holds("E2E", mean(inner().map(|e| seen(e).1)), e2e, 0.05);
    let calls: HashMap<String, &ClientCall> =
        driven.calls.iter().map(|call| (call.key(), call)).collect();
    let mut compared = 0;
    for call in &driven.tapped {
        let key = call.outer.keys.client.as_deref();
        let Some(client) = key.and_then(|key| calls.get(key)) else {
            continue;
        };
        let (ttft, e2e) = seen(call.served_by().unwrap());
        assert!(
            client.ttft_choice().unwrap() as f64 / 1e9 > ttft,
            "{client:?}"
        );
        assert!(client.e2e().unwrap() as f64 / 1e9 > e2e, "{client:?}");
        compared += 1;
    }
    assert_eq!(compared, driven.calls.len());
}

#[test]
fn vllm_says_of_a_run_what_taps_and_client_say_and_a_router_that_knows_its_caches_hits_them() {
    let Some(_turn) = alone(&["vllm", "vllm-router"]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let engines = [free(), free()];
    let running: Vec<Running> = engines
        .iter()
        .map(|at| start("vllm", dir.path(), *at, &[], &[]))
        .collect();
    for at in engines {
        ready("vllm", dir.path(), at, "/health");
        // The first call loads more code.
        exchange(&mut connect(at), chat(4, "", "").as_bytes(), END);
    }
    let share = |policy: &str, used: usize| {
        let (driven, own) = routed(policy, dir.path(), &engines);
        sound(&driven, used);
        timed(&driven, own);
        cached(&driven)
    };
    // Each has prompts of its own, salted with the run's name: it finds nothing of the other's.
    let (aware, random) = (share("cache_aware", 1), share("random", 2));
    println!("cached share of prompt tokens: {aware:.3} by cache_aware, {random:.3} by random");
    // Of four calls with a prompt, three find it where the router sends them to the same engine; by chance the
    // other engine takes one of them first nearly always, and two find it.
    assert!(aware > random + 0.05, "{aware} against {random}");
    drop(running);
}

// --- llama.cpp

const STREAMED: u64 = 24;

#[test]
fn llama_cpp_is_answered_through_the_tap_although_it_hangs_up_and_its_timings_agree() {
    let Some(_turn) = alone(&["llama-cpp"]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (outer, engine) = (free(), free());
    let running = start("llama-cpp", dir.path(), engine, &[], &[]);
    ready("llama-cpp", dir.path(), engine, "/health");
    exchange(&mut connect(engine), chat(4, "", "").as_bytes(), END);
    let chain = || {
        let text =
            format!("name: llama-cpp\nkind: direct\nentry: http://{outer}\nmodel: m\ntaps:\n");
        parsed(&(text + &tap("outer", "outer", outer, engine)))
    };
    one_by_one(&dir.path().join("single"), &chain(), outer);
    let whole = dir.path().join("run");
    let server = serve(&chain(), &records(&whole), "tap");
    let counters = || {
        let of = |name: &str| metric(engine, &format!("llamacpp:{name}_seconds_total"));
        (of("prompt"), of("tokens_predicted"))
    };
    let before = counters();
    let scenario = format!(
        "
name: llama-cpp
number: 1
question: Is every call answered by an engine that closes its connections?
workload: {{input_tokens: 40, output_tokens: {TOKENS}}}
closed_loop: {{concurrency: [1], cell: {{calls: {STREAMED}}}}}
blocks: 1
controls: [direct]
warmup: {{calls: 2}}
seed: 1
"
    );
    let driven = drive(&whole, chain(), server, &scenario, Vec::new());
    let after = counters();
    assert_eq!(driven.calls.len() as u64, STREAMED + 2);
    for call in &driven.calls {
        assert_eq!(call.outcome, CallOutcome::Complete, "{:?}", call.fault);
        assert_eq!(call.usage_completion, Some(TOKENS));
        assert!((1..=TOKENS).contains(&call.text_events), "{call:?}");
    }
    let resent = driven.tapped.iter().filter(|c| c.outer.connection.resent);
    println!(
        "{} of {} requests sent again",
        resent.count(),
        driven.tapped.len()
    );
    // One call at a time waits for no other's batch, which the engine's clocks leave out.
    let count = driven.tapped.len() as f64;
    let (prompt, predicted) = (after.0 - before.0, after.1 - before.1);
    let times: Vec<(f64, f64)> = driven.tapped.iter().map(|c| seen(&c.outer)).collect();
    holds("TTFT", mean(times.iter().map(|t| t.0)), prompt / count, 0.1);
    holds(
        "E2E",
        mean(times.iter().map(|t| t.1)),
        (prompt + predicted) / count,
        0.1,
    );
    drop(running);
}

/// Calls one after the other, each held against the times that its own answer states.
fn one_by_one(dir: &Path, chain: &Chain, outer: SocketAddr) {
    let server = serve(chain, &records(dir), "tap");
    let timings: Vec<serde_json::Value> = (0..8)
        .map(|_| {
            let request = chat(TOKENS, "", ",\"ignore_eos\":true,\"cache_prompt\":false");
            let got = exchange(&mut connect(outer), request.as_bytes(), END);
            let got = String::from_utf8_lossy(&got).into_owned();
            let event = got.lines().find(|line| line.contains("\"timings\""));
            let event = event.unwrap_or_else(|| panic!("{got}"));
            let json: serde_json::Value =
                serde_json::from_str(event.trim_start_matches("data: ")).unwrap();
            json["timings"].clone()
        })
        .collect();
    server.stop(Duration::from_secs(2));
    let calls = pair(dir);
    assert_eq!(calls.len(), timings.len());
    for (call, own) in calls.iter().zip(&timings) {
        let (ttft, e2e) = seen(&call.outer);
        let prompt = own["prompt_ms"].as_f64().unwrap() / 1e3;
        let predicted = own["predicted_ms"].as_f64().unwrap() / 1e3;
        holds("TTFT of one", ttft, prompt, 0.1);
        holds("E2E of one", e2e, prompt + predicted, 0.1);
        assert_eq!(own["predicted_n"], TOKENS);
    }
}
