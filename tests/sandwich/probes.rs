//! Probes of tenants against gateways that know what they did: limits that hold and that race, caches that are
//! shared and that are not, guardrails that err. *Simulated*: it shows that the probes can tell.

use crate::rig::{free, metric, spawn_engine};
use config::{Chain, Scenario};
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, Stop};
use record::probe::{Fate, LimitRun, Probes};
use record::rundir::RunDir;
use report::{LimitVerdict, ProbeFindings, Report};
use sim::engine::{EngineOptions, ModelOptions};
use sim::gateway::{Dialect, GatewayOptions, KeyOptions, SemanticOptions};
use sim::truth::Log;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Of the limits, nanoseconds.
const WINDOW: u64 = 1_200_000_000;

const KEYS: &str = r#"{"keys": {
  "sk-a": {"tenant": "a", "guardrails": [{"name": "words", "on": "input", "words": ["forbidden"], "latency_us": 20000}]},
  "sk-b": {"tenant": "b"},
  "sk-rpm": {"tenant": "rpm", "rpm": 15},
  "sk-tpm": {"tenant": "tpm", "tpm": 200},
  "sk-usd": {"tenant": "usd", "budget_usd": 0.002, "usd_per_million_in": 10, "usd_per_million_out": 20},
  "sk-usd-10": {"tenant": "usd-10", "budget_usd": 0.002, "usd_per_million_in": 10, "usd_per_million_out": 20}
}}"#;

/// A scenario of two tenants with these probes and hardly any load.
fn scenario(probes: &str) -> String {
    format!(
        "name: probes\nnumber: 6\nquestion: What do tenants get, and what do they learn?\n\
         workload: {{input_tokens: 20, output_tokens: 16}}\n\
         tenants:\n  members:\n    - {{name: a, rate: 5, system_tokens: 5, headers: {{x-api-key: sk-a}}}}\n\
         \x20   - {{name: b, rate: 5, system_tokens: 5, headers: {{x-api-key: sk-b}}}}\n\
         \x20 cell: {{calls: 1}}\n  probes:\n{probes}\
         blocks: 1\nwarmup: {{calls: 1}}\nseed: 7\n"
    )
}

fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 10_000,
        gap_us: 500,
        ..EngineOptions::default()
    }
}

/// Gateways of a runtime, each before an engine of its own, and a run over them.
struct Bed {
    runtime: Runtime,
    dir: tempfile::TempDir,
    chains: Vec<PlannedChain>,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("keys.json"), KEYS).unwrap();
        Self {
            runtime: Runtime::new().unwrap(),
            dir,
            chains: Vec::new(),
        }
    }

    /// A chain through a gateway with the keys above; gives the gateway's address.
    fn gateway(&mut self, name: &str, engine: EngineOptions, keys: KeyOptions) -> SocketAddr {
        self.gateway_with(name, engine, keys, SemanticOptions::default())
    }

    fn gateway_with(
        &mut self,
        name: &str,
        engine: EngineOptions,
        mut keys: KeyOptions,
        semantic: SemanticOptions,
    ) -> SocketAddr {
        keys.keys = Some(self.dir.path().join("keys.json"));
        keys.keys_optional = true;
        keys.limit_window_ms = WINDOW / 1_000_000;
        let at = self.runtime.block_on(async {
            let options = GatewayOptions {
                upstream: spawn_engine(engine).await.to_string(),
                key_options: keys,
                semantic,
                ..GatewayOptions::default()
            };
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            tokio::spawn(sim::gateway::serve(
                listener,
                options,
                Log::off(),
                pending(),
            ));
            at
        });
        // Its tap is not started: the gateway itself listens where it would.
        let text = format!(
            "name: {name}\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{at}\nmodel: m\n\
             taps: [{{name: outer, position: outer, listen: \"{at}\", upstream: {{addresses: [\"{}\"]}}}}]\n",
            free()
        );
        let chain = config::from_text::<Chain>(Path::new("chain.yaml"), &text).unwrap();
        self.chains.push(PlannedChain {
            chain: chain.into_inner(),
            text,
            base: self.dir.path().to_owned(),
            pids: Vec::new(),
            injected: None,
        });
        at
    }

    /// Makes the run; what its probes saw, and the report.
    fn run(&self, probes: &str) -> (Probes, Report) {
        let text = scenario(probes);
        let scenario = config::from_text::<Scenario>(Path::new("probes.yaml"), &text).unwrap();
        let out = self.dir.path().join("run");
        let mut plan = Plan::new("probes", &out, scenario.into_inner(), text);
        plan.chains.clone_from(&self.chains);
        let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
        assert_eq!(run.manifest().unwrap().cells.len(), 4 * self.chains.len());
        let (calls, _) = run.read_calls().unwrap();
        assert!(
            calls.iter().all(|call| call.cell < 1_000),
            "no probe's call is in a cell"
        );
        let seen = RunDir::open(&out).unwrap().read_probes().unwrap();
        (seen, report::build(&[out]).unwrap())
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let runtime = std::mem::replace(&mut self.runtime, Runtime::new().unwrap());
        runtime.shutdown_background();
    }
}

fn findings(report: &Report) -> &ProbeFindings {
    report.runs[0].probes.as_ref().unwrap()
}

/// A figure of a tenant on the gateway's own page.
fn truth(gateway: SocketAddr, name: &str, tenant: &str) -> f64 {
    metric(
        gateway,
        &format!("sim_gateway_tenant_{name}{{tenant=\"{tenant}\"}}"),
    )
}

/// Calls that `run` saw let through, and refused, in its drive and after it.
fn seen(run: &LimitRun) -> (usize, usize) {
    let all = || run.calls.iter().chain(&run.tries);
    let admitted = all().filter(|c| c.answer.fate() == Fate::Admitted);
    let refused = all().filter(|c| matches!(c.answer.fate(), Fate::Refused(_)));
    (admitted.count(), refused.count())
}

#[test]
fn what_a_limit_lets_through_is_what_the_gateway_let_through() {
    let mut bed = Bed::new();
    let exact = bed.gateway(
        "exact",
        quick(),
        KeyOptions {
            dialect: Dialect::Bifrost,
            ..KeyOptions::default()
        },
    );
    // A call takes longer than the race: one caller alone cannot win it.
    let racing = KeyOptions {
        limit_race_ms: 15,
        ..KeyOptions::default()
    };
    let race = bed.gateway("race", quick(), racing);
    let (probes, report) = bed.run(
        "    limits:\n      - {name: rpm, headers: {x-api-key: sk-rpm}, limit: {requests: 15}, window: 1200ms, concurrency: [1, 10]}\n",
    );
    assert_eq!(probes.limits.len(), 4);
    for (chain, gateway) in [("exact", exact), ("race", race)] {
        let runs = probes.limits.iter().filter(|run| run.chain == chain);
        let sums = runs.map(seen).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let told = |name| truth(gateway, name, "rpm") as usize;
        assert_eq!(
            sums,
            (told("requests_total"), told("rate_limited_total")),
            "{chain}"
        );
    }
    for found in &findings(&report).limits {
        let run = probes
            .limits
            .iter()
            .find(|run| (&run.chain, run.concurrency) == (&found.chain, found.concurrency));
        let run = run.unwrap();
        let case = (found.chain.as_str(), found.concurrency);
        assert_eq!(
            (found.unclear, found.other, found.late),
            (0, 0, 0),
            "{case:?}"
        );
        assert!(found.refused >= 50, "{case:?}");
        if case == ("race", 10) {
            assert_eq!(found.verdict, LimitVerdict::Beyond);
            assert!(found.calls_beyond >= 1, "{found:?}");
        } else {
            assert_eq!(
                (found.verdict, found.calls_beyond),
                (LimitVerdict::Held, 0),
                "{found:?}"
            );
        }
        assert_eq!(found.admitted, 15 + found.calls_beyond, "{case:?}");
        // The gateway's window began when it decided on the first call.
        let (from, to) = found.passed_again.unwrap();
        let decided = run.calls.iter().filter_map(|call| call.head).min().unwrap();
        assert!(
            to >= WINDOW && from <= WINDOW + decided,
            "{case:?} {from} {to}"
        );
        assert!(found.first_refusal.unwrap() < WINDOW);
        let (low, high) = found.retry_after.unwrap();
        assert!((1.0..=2.0).contains(&low) && high <= 2.0, "whole seconds");
        let look = match found.chain.as_str() {
            "exact" => "429 request_limited (requests)",
            _ => "429 throttling_error requests (requests)",
        };
        assert_eq!(found.refusals[0].0, look);
    }
    let markdown = report::render::markdown(&report);
    for words in [
        "Precision of limits and budgets",
        "| race · rpm · simulated | 15 calls in 1200",
        "lets more through than its limit",
        "| holds |",
    ] {
        assert!(markdown.contains(words), "{words}: {markdown}");
    }
    assert!(report::render::html(&report).contains("Precision of limits and budgets"));
}

#[test]
fn tokens_and_money_beyond_a_limit_are_those_of_the_gateway() {
    let mut bed = Bed::new();
    let gateway = bed.gateway("c", quick(), KeyOptions::default());
    let budget = "limit: {usd: {amount: 0.002, per_million_in: 10, per_million_out: 20}}";
    let (probes, report) = bed.run(&format!(
        "    limits:\n      - {{name: tpm, headers: {{x-api-key: sk-tpm}}, limit: {{tokens: 200}}, window: 1200ms, concurrency: [1]}}\n\
         \x20     - {{name: usd, headers: {{x-api-key: sk-usd}}, {budget}, concurrency: [1]}}\n\
         \x20     - {{name: usd-10, headers: {{x-api-key: sk-usd-10}}, {budget}, concurrency: [10]}}\n"
    ));
    let [tokens, alone, ten] = findings(&report).limits.as_slice() else {
        panic!("{probes:?}");
    };
    // What it tried after the drive passed once more.
    let again = probes.limits[0].tries.last().unwrap().tokens.unwrap();
    let spent = truth(gateway, "tokens_total", "tpm") - f64::from(again.0 + again.1);
    assert_eq!((tokens.used, tokens.without_usage), (spent, 0));
    assert_eq!(tokens.refusals[0].0, "429 throttling_error tokens (tokens)");
    for (found, tenant) in [(alone, "usd"), (ten, "usd-10")] {
        let spent = truth(gateway, "spend_usd", tenant);
        assert!((found.used - spent).abs() < 1e-9, "{} {spent}", found.used);
        assert_eq!(found.refusals[0].0, "422 budget_exceeded (budget)");
        assert!(found.passed_again.is_none() && !found.tried_again);
        assert_eq!(found.verdict, LimitVerdict::Beyond);
    }
    // One after the other, only the last call reaches over the limit; ten at once are all on their way.
    for found in [tokens, alone] {
        let one = found.used / found.admitted as f64;
        assert_eq!(found.calls_beyond, 0);
        assert!(found.beyond > 0.0 && found.beyond < one, "{found:?}");
    }
    assert!(
        ten.beyond > 2.0 * alone.beyond && ten.admitted >= 10,
        "{ten:?}"
    );
}

#[test]
fn a_cache_that_tenants_share_is_told_by_its_times_and_one_of_ones_own_is_not() {
    let mut bed = Bed::new();
    let engine = || EngineOptions {
        model_options: ModelOptions {
            modelled: true,
            time_scale: 20.0,
            ..ModelOptions::default()
        },
        ..EngineOptions::default()
    };
    bed.gateway("shared", engine(), KeyOptions::default());
    let salted = KeyOptions {
        salt_by_tenant: true,
        ..KeyOptions::default()
    };
    bed.gateway("salted", engine(), salted);
    let (probes, report) = bed.run(
        "    cache_timing:\n      - {primer: a, observer: b, prompt_tokens: 512, pairs: 24, confidence: 0.9999}\n",
    );
    let [shared, salted] = findings(&report).cache_timing.as_slice() else {
        panic!("{probes:?}");
    };
    let first = |n: usize| {
        probes.cache_timing[n]
            .pairs
            .iter()
            .filter(|p| p.probe_first)
    };
    assert!((1..24).contains(&first(0).count()), "drawn by lot");
    assert_eq!((shared.pairs, salted.pairs, shared.lost), (24, 24, 0));
    assert_eq!(shared.by_time, Some(true), "{shared:?}");
    // 512 prompt tokens take 36 ms.
    let faster = shared.difference.unwrap();
    assert!((15e6..80e6).contains(&faster), "{shared:?}");
    assert!(shared.advantage.unwrap() > 0.8);
    assert_eq!((shared.usage_pairs, shared.by_usage), (24, 24));
    assert_eq!(salted.by_time, Some(false), "{salted:?}");
    assert_eq!(salted.by_usage, 0);
    let markdown = report::render::markdown(&report);
    assert!(markdown.contains("distinguishable by time (at 99.99 %); usage tells it"));
    assert!(
        markdown.contains("not shown by time at 24 pairs"),
        "{markdown}"
    );
}

#[test]
fn guardrails_that_miss_and_that_block_too_much_are_found_with_what_they_cost() {
    let mut bed = Bed::new();
    bed.gateway("c", quick(), KeyOptions::default());
    let (_, report) = bed.run(
        "    guardrails:\n      - tenant: a\n        unguarded: b\n        repeats: 4\n\
         \x20       block: [say the forbidden thing, \"FORBIDDEN?\", say the thing that is not allowed]\n\
         \x20       pass: [good morning, which words are forbidden, what is the time, how are you]\n",
    );
    let found = &findings(&report).guardrails[0];
    let (block, pass) = (&found.block, &found.pass);
    assert_eq!((block.prompts, block.wrong_prompts), (3, 1));
    assert_eq!((block.calls, block.wrong), (12, 4));
    assert_eq!((pass.prompts, pass.wrong_prompts), (4, 1));
    assert_eq!((pass.calls, pass.wrong), (16, 4));
    assert_eq!((found.inferred, found.unclear, found.failed), (0, 0, 0));
    // Twelve that pass, and the four that are missed.
    assert_eq!(found.pairs, 16);
    let (low, high) = found.added_ttft_interval.unwrap();
    let added = found.added_ttft.unwrap();
    assert!((20e6..60e6).contains(&added), "{found:?}");
    assert!(low <= added && added <= high && low > 10e6, "{found:?}");
    let markdown = report::render::markdown(&report);
    assert!(
        markdown.contains("lets through what it must block, and blocks what must pass"),
        "{markdown}"
    );
}

/// Ten words; of each near miss nine are the same.
const RIVERS: &str = r#"    semantic:
      - tenant: a
        wait: 10ms
        sets:
          - ask: how long is the river Rhine from source to mouth
            same: [from source to mouth how long is the river Rhine]
            near: [how long is the river Rhone from source to mouth, how wide is the river Rhine from source to mouth]
          - ask: name three towns on the upper course of this valley
            same: [on the upper course of this valley name three towns]
            near: [name four towns on the upper course of this valley]
"#;

#[test]
fn false_hits_of_a_semantic_cache_are_found_and_a_strict_one_has_none() {
    let mut bed = Bed::new();
    let cache = |threshold| SemanticOptions {
        semantic_cache: true,
        semantic_threshold: threshold,
        ..SemanticOptions::default()
    };
    bed.gateway_with("strict", quick(), KeyOptions::default(), cache(0.95));
    bed.gateway_with("loose", quick(), KeyOptions::default(), cache(0.85));
    bed.gateway("none", quick(), KeyOptions::default());
    let (seen, report) = bed.run(RIVERS);
    assert!(seen.semantic.iter().all(|run| run.calls.len() == 7));
    let counts = |chain: &str| {
        let all = findings(&report).semantic.iter();
        let found = all.clone().find(|found| found.chain == chain).unwrap();
        assert_eq!(
            (
                found.same.prompts,
                found.near.prompts,
                found.failed,
                found.nameless
            ),
            (2, 3, 0, 0)
        );
        (found.same.hits, found.near.hits)
    };
    assert_eq!(counts("strict"), (2, 0));
    assert_eq!(counts("loose"), (2, 3));
    assert_eq!(counts("none"), (0, 0));
    let page = report::render::markdown(&report);
    for told in [
        "strict · a · simulated | 2 of 2",
        "no false hit among these prompts",
        "gives answers to other questions",
        "no cache by meaning was seen at work",
    ] {
        assert!(page.contains(told), "{told}");
    }
}
