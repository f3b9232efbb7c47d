//! The load generator on managed chains: Converse, spoken natively, and AgentCore's sessions, through taps to stand-ins.

mod agents;
mod exact;

use crate::rig::{chain, free, serve};
use config::{Api, Chain, Scenario};
use hopscope::tap::TapServer;
use loadgen::progress::Silent;
use loadgen::{LoadError, Plan, PlannedChain, PlannedTap, Stop};
use record::client::{CallOutcome, ClientCall};
use record::experiment::{Found, Quantity};
use record::rundir::RunDir;
use record::service::ServiceFault;
use sim::managed::ManagedOptions;
use sim::truth::Log;
use std::collections::BTreeMap;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const MODEL: &str = "us.meta.llama3-1-70b-instruct-v1:0";
/// Of a noisy machine nothing is asked that these runs do not need.
const LIMITS: &str =
    "limits: {schedule_lag_p99: 2s, schedule_lag_share_of_ttft: 1, generator_cpu_max: 1}\n";

/// A managed service, fast unless the options say otherwise.
fn managed(options: ManagedOptions) -> (Runtime, SocketAddr) {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(sim::managed::serve(
            listener,
            options,
            Log::off(),
            pending(),
        ));
        at
    });
    (runtime, at)
}

fn fast() -> ManagedOptions {
    ManagedOptions {
        ttft_us: 10_000,
        ttft_sigma: 0.0,
        tail_share: 0.0,
        prefill_token_us: 0,
        gap_us: 1_000,
        gap_jitter: 0.0,
        rpm: 0,
        tpm: 0,
        ..ManagedOptions::default()
    }
}

/// One tap before what listens at `at`, as a service that speaks Converse.
struct Service {
    chain: Chain,
    records: tempfile::TempDir,
    tap: Option<TapServer>,
}

impl Service {
    fn before(at: SocketAddr, change: impl FnOnce(&mut Chain)) -> Self {
        let mut chain = chain(&[("outer", free(), at)]);
        chain.name = "service".to_owned();
        chain.kind = config::ChainKind::Service;
        chain.gateway = serde_json::from_str(r#"{"name": "stand-in"}"#).unwrap();
        chain.api = Api::Converse;
        chain.model = MODEL.to_owned();
        change(&mut chain);
        let records = tempfile::tempdir().unwrap();
        let tap = serve(&chain, &records.path().join("taps/tap"), "tap");
        Self {
            chain,
            records,
            tap: Some(tap),
        }
    }

    /// Makes the run that `scenario` asks for, in a directory that lives as long as the first part.
    fn run(&self, scenario: &str) -> Result<(tempfile::TempDir, RunDir), LoadError> {
        let parsed = config::from_text::<Scenario>(Path::new("managed.yaml"), scenario)
            .unwrap_or_else(|error| panic!("{error}"));
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("run");
        let mut plan = Plan::new("managed", &out, parsed.into_inner(), scenario.to_owned());
        plan.chains.push(PlannedChain {
            chain: self.chain.clone(),
            text: "name: service".to_owned(),
            base: dir.path().to_owned(),
            pids: Vec::new(),
            injected: None,
        });
        plan.taps.push(PlannedTap {
            records: self.records.path().join("taps/tap"),
            pid: None,
        });
        let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default())?;
        Ok((dir, run))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(tap) = self.tap.take() {
            tap.stop(Duration::ZERO);
        }
    }
}

fn scenario(workload: &str, load: &str) -> String {
    format!(
        "name: managed\nnumber: 1\nquestion: What becomes of the calls?\nworkload: {workload}\n{load}\nblocks: 1\nwarmup: {{calls: 1}}\nseed: 7\n{LIMITS}"
    )
}

fn measured(run: &RunDir) -> Vec<ClientCall> {
    let (mut calls, losses) = run.read_calls().unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    calls.retain(|call| !call.warmup);
    calls.sort_by_key(|call| call.seq);
    calls
}

fn outcomes(calls: &[ClientCall]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call.outcome.name()).or_default() += 1;
    }
    counts
}

const LENGTHS: &str = "{input_tokens: 20, output_tokens: 16}";
const THIRTY: &str = "closed_loop: {concurrency: [1], cell: {calls: 30}}";

#[test]
fn quotas_of_requests_and_tokens_are_classes_of_their_own_and_nothing_is_asked_again() {
    let quotas = [
        (
            ManagedOptions { rpm: 10, ..fast() },
            ServiceFault::ThrottledRequests,
        ),
        // Each call reserves its prompt and `maxTokens`: 36 tokens.
        (
            ManagedOptions { tpm: 360, ..fast() },
            ServiceFault::ThrottledTokens,
        ),
    ];
    for (options, fault) in quotas {
        let (runtime, at) = managed(options);
        let service = Service::before(at, |_| ());
        let (_dir, run) = service.run(&scenario(LENGTHS, THIRTY)).unwrap();
        let calls = measured(&run);
        let counts = outcomes(&calls);
        assert_eq!(calls.len(), 30, "{counts:?}");
        // Preflight and warm-up took two of ten; a call or two may come back in a second of a busy machine.
        let refused = counts[fault.name()];
        assert!((18..=22).contains(&refused), "{counts:?}");
        assert_eq!(counts["complete"] + refused, 30, "{counts:?}");
        for call in calls.iter().filter(|c| c.outcome != CallOutcome::Complete) {
            assert_eq!(
                (call.status, call.outcome),
                (Some(429), CallOutcome::Service(fault))
            );
            assert_eq!(
                call.fault.as_deref(),
                Some("status 429: ThrottlingException")
            );
        }
        let (exchanges, _) = run.read_exchanges().unwrap();
        assert_eq!(
            exchanges.len(),
            31,
            "one exchange a call: nothing is tried twice"
        );
        let report = report::build(&[run.root().to_owned()]).unwrap();
        let said = format!("{refused} {}", fault.name());
        let markdown = report::render::markdown(&report);
        let spelt = [said, format!("{} {refused}", fault.name())];
        assert!(
            spelt.iter().any(|said| markdown.contains(said)),
            "{markdown}"
        );
        runtime.shutdown_background();
    }
}

#[test]
fn a_cache_point_behind_the_system_prompt_is_written_once_and_read_after() {
    let options = ManagedOptions {
        prompt_cache: true,
        ..fast()
    };
    let (runtime, at) = managed(options);
    let workload = "{input_tokens: 20, output_tokens: 16, system: {count: 1, tokens: 1200}}";
    let load = "closed_loop: {concurrency: [1], cell: {calls: 4}}";
    for (cached, from) in [(true, 5_000), (false, 50_000)] {
        let service = Service::before(at, |chain| chain.cache_system_from = Some(from));
        let (_dir, run) = service.run(&scenario(workload, load)).unwrap();
        let (mut calls, _) = run.read_calls().unwrap();
        calls.sort_by_key(|call| call.seq);
        assert_eq!(outcomes(&calls)["complete"], 5);
        let usage = |call: &ClientCall| (call.usage_cache_write, call.usage_cached);
        assert!(calls.iter().all(|call| call.usage_prompt == Some(1220)));
        if cached {
            assert_eq!(usage(&calls[0]), (Some(1200), Some(0)));
            assert!(
                calls[1..].iter().all(|c| usage(c) == (Some(0), Some(1200))),
                "{calls:?}"
            );
        } else {
            let none = |count: Option<u32>| count.is_none_or(|count| count == 0);
            assert!(
                calls
                    .iter()
                    .all(|c| none(c.usage_cached) && none(c.usage_cache_write))
            );
        }
    }
    runtime.shutdown_background();
}

#[test]
fn requests_go_out_unsigned_and_the_tap_adds_the_key() {
    // Cargo sets it for every test; what is in it is of no importance.
    const KEY: &str = "CARGO_PKG_NAME";
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys.json");
    let key = std::env::var(KEY).unwrap();
    std::fs::write(&keys, format!(r#"{{"bearer": ["{key}"]}}"#)).unwrap();
    let mut options = fast();
    options.keys.aws_keys = Some(keys);
    let (runtime, at) = managed(options);
    let text = scenario(LENGTHS, "closed_loop: {concurrency: [1], cell: {calls: 3}}");
    let error = Service::before(at, |_| ())
        .run(&text)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("status 403") && error.contains("tap that signs"),
        "{error}"
    );
    let service = Service::before(at, |chain| {
        chain.taps[0].upstream.bearer_env = Some(KEY.parse().unwrap());
    });
    let (_dir, run) = service.run(&text).unwrap();
    assert_eq!(outcomes(&measured(&run))["complete"], 3);
    runtime.shutdown_background();
}

/// The shipped experiment, with times of a stand-in.
fn cold_start() -> String {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = home.join("config/experiments/cold-start-import.yaml");
    let mut text = std::fs::read_to_string(path).unwrap();
    for (from, to) in [
        (
            "input_tokens: 500, output_tokens: 100",
            "input_tokens: 20, output_tokens: 16",
        ),
        ("idle: 70m", "idle: 1500ms"),
        ("rate: 0.5", "rate: 20"),
        ("settle: 30s", "settle: 500ms\n  window: 400ms"),
        ("limit: 30m", "limit: 20s"),
        ("blocks: 5", "blocks: 2"),
        (
            "timeouts: {connect: 5s, first_byte: 30m, silence: 60s, total: 40m}",
            "timeouts: {connect: 5s, first_byte: 20s, silence: 20s, total: 30s}",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text + LIMITS
}

#[test]
fn the_cold_start_of_an_imported_copy_is_the_time_that_it_loads() {
    const LOADS: u64 = 900;
    let options = ManagedOptions {
        imported: true,
        cold_after_ms: 1_000,
        cold_start_ms: LOADS,
        copy_concurrency: 64,
        ..fast()
    };
    let (runtime, at) = managed(options);
    let arn = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456";
    let service = Service::before(at, |chain| chain.model = arn.to_owned());
    // The preflight finds it cold too, and waits until it is up.
    let (_dir, run) = service.run(&cold_start()).unwrap();
    let manifest = run.manifest().unwrap();
    assert_eq!(manifest.experiments.len(), 2);
    for experiment in &manifest.experiments {
        let found = experiment
            .measures
            .iter()
            .find(|measure| measure.quantity == Quantity::ColdStart);
        let Some(Found::Value { value, low, high }) = found.map(|measure| &measure.found) else {
            panic!("{experiment:?}");
        };
        println!(
            "cold start {} ms, between {} and {}",
            value / 1_000_000,
            low / 1_000_000,
            high / 1_000_000
        );
        // The copy loads from the first call on, and a call finds it within a spacing of the probe, on a machine that
        // may be busy.
        let ms = |nanos: &u64| nanos / 1_000_000;
        assert!(
            ms(high) + 20 >= LOADS && ms(value) < LOADS + 500,
            "{experiment:?}"
        );
        assert!(low <= value && value <= high);
        let refused = experiment
            .outcomes
            .iter()
            .find(|(name, _)| name == "model-not-ready");
        assert!(
            refused.is_some_and(|(_, count)| *count >= 10),
            "{experiment:?}"
        );
        assert!(
            experiment
                .outcomes
                .iter()
                .all(|(name, _)| !name.starts_with("status"))
        );
    }
    let report = report::build(&[run.root().to_owned()]).unwrap();
    let markdown = report::render::markdown(&report);
    assert!(
        markdown.contains("model-not-ready") && markdown.contains("simulated"),
        "{markdown}"
    );
    runtime.shutdown_background();
}
