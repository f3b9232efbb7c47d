//! Experiments of operation, held against what was really done to stand-ins.

use crate::rig::{free, metric};
use config::Scenario;
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, Stop};
use record::clock::{Nanos, now};
use record::experiment::{Experiment, Found, Quantity};
use record::rundir::RunDir;
use sim::engine::{EngineOptions, ModelOptions};
use sim::router::{Policy, RouterOptions, ScaleOptions};
use sim::truth::{Log, Mark};
use std::future::pending;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const MS: i64 = 1_000_000;
const HOPSCOPE: &str = env!("CARGO_BIN_EXE_hopscope");

/// Of a noisy machine nothing is asked that these experiments do not need.
const LIMITS: &str =
    "limits: {schedule_lag_p99: 2s, schedule_lag_share_of_ttft: 1, generator_cpu_max: 1}\n";

fn scenario(experiment: &str) -> String {
    format!(
        "name: ops\nnumber: 2\nquestion: How long?\nworkload: {{input_tokens: 20, output_tokens: 16}}\n\
         experiment: {experiment}\nblocks: 1\nwarmup: {{calls: 1}}\nseed: 7\n{LIMITS}"
    )
}

fn chain(at: SocketAddr) -> String {
    format!(
        "name: rig\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{at}\nmodel: m\n\
         taps: [{{name: outer, position: outer, listen: \"{at}\", upstream: {{addresses: [\"127.0.0.1:9\"]}}}}]\n"
    )
}

fn found(experiment: &Experiment, quantity: Quantity) -> &Found {
    let one = experiment.measures.iter().find(|m| m.quantity == quantity);
    &one.unwrap_or_else(|| panic!("{experiment:?}")).found
}

/// Value and bounds.
fn value(experiment: &Experiment, quantity: Quantity) -> [i64; 3] {
    match found(experiment, quantity) {
        Found::Value { value, low, high } => [*value, *low, *high].map(u64::cast_signed),
        other => panic!("{quantity:?}: {other:?}"),
    }
}

fn since(event: Nanos, at: Nanos) -> i64 {
    at.cast_signed() - event.cast_signed()
}

// ---------------------------------------------------------------- an engine that is killed

/// An engine process, and whichever one a trigger starts in its place.
struct Engine {
    at: SocketAddr,
    child: Child,
    dir: tempfile::TempDir,
}

impl Engine {
    fn start() -> Self {
        let at = free();
        let dir = tempfile::tempdir().unwrap();
        let child = Command::new(HOPSCOPE).args(Self::line(at)).spawn().unwrap();
        std::fs::write(dir.path().join("pid"), child.id().to_string()).unwrap();
        let engine = Self { at, child, dir };
        let until = now() + 20_000_000_000;
        while TcpStream::connect(at).is_err() {
            assert!(now() < until, "the engine does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        engine
    }

    fn line(at: SocketAddr) -> Vec<String> {
        format!("sim engine --listen {at} --ttft-us 20000 --gap-us 500")
            .split(' ')
            .map(str::to_owned)
            .collect()
    }

    /// A script that kills it, and starts another after `down` seconds, if any.
    fn kill(&self, down: Option<f64>) -> String {
        let pid = self.dir.path().join("pid");
        let pid = pid.display();
        let mut script = format!("kill -9 $(cat {pid})\necho killed\n");
        if let Some(down) = down {
            let line = Self::line(self.at).join(" ");
            script += &format!("sleep {down}\n{HOPSCOPE} {line} &\necho $! > {pid}\n");
        }
        let path = self.dir.path().join("kill.sh");
        std::fs::write(&path, script).unwrap();
        path.display().to_string()
    }

    /// Runs an experiment on it with the command line.
    fn load(&self, experiment: &str) -> (Output, RunDir) {
        let path = |name: &str| self.dir.path().join(name);
        std::fs::write(path("chain.yaml"), chain(self.at)).unwrap();
        std::fs::write(path("scenario.yaml"), scenario(experiment)).unwrap();
        let output = Command::new(HOPSCOPE)
            .args(["load", "--quiet", "--scenario"])
            .arg(path("scenario.yaml"))
            .arg("--chain")
            .arg(path("chain.yaml"))
            .arg("--out")
            .arg(path("run"))
            .output()
            .unwrap();
        (output, RunDir::open(&path("run")).unwrap())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The one that a trigger started is no child of this process.
        if let Ok(pid) = std::fs::read_to_string(self.dir.path().join("pid")) {
            let _ = Command::new("kill").args(["-9", pid.trim()]).output();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The truth: when nobody listened at `at`, by trying every other millisecond.
struct Outage {
    over: Arc<AtomicBool>,
    thread: JoinHandle<(Option<Nanos>, Option<Nanos>)>,
}

impl Outage {
    fn of(at: SocketAddr) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = over.clone();
        let thread = std::thread::spawn(move || {
            let (mut down, mut up) = (None, None);
            while !stop.load(Ordering::Relaxed) {
                match (TcpStream::connect(at).is_ok(), down) {
                    (false, None) => down = Some(now()),
                    (true, Some(_)) if up.is_none() => up = Some(now()),
                    _ => {}
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            (down, up)
        });
        Self { over, thread }
    }

    fn told(self) -> (Nanos, Nanos) {
        self.over.store(true, Ordering::Relaxed);
        let (down, up) = self.thread.join().unwrap();
        (down.unwrap(), up.unwrap())
    }
}

#[test]
fn an_engine_that_is_killed_and_restarted_gives_the_outage_that_there_was() {
    let engine = Engine::start();
    let truth = Outage::of(engine.at);
    let script = engine.kill(Some(1.2));
    let (output, run) = engine.load(&format!(
        "{{kind: recovery, trigger: {{run: [sh, {script}]}}, before: 1500ms, rate: 20, settle: 1s, window: 400ms, ttft_within: 5, limit: 15s}}"
    ));
    let (down, up) = truth.told();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    let manifest = run.manifest().unwrap();
    let [experiment] = &manifest.experiments[..] else {
        panic!("{:?}", manifest.experiments);
    };
    let trigger = experiment.trigger.as_ref().unwrap();
    assert!(trigger.failed.is_none() && trigger.begin == experiment.event);
    assert!(trigger.end.unwrap() - trigger.begin > 1_100_000_000);
    let said = std::fs::read_to_string(run.root().join(&trigger.log)).unwrap();
    // What the engine says that the script starts stands behind it.
    assert!(said.starts_with("killed\n"), "{said}");

    // What the truth itself does not know: it looks every other millisecond, on a machine that may be busy.
    let slack = 150 * MS;
    let [window, low, high] = value(experiment, Quantity::ErrorWindow);
    let outage = since(down, up);
    println!(
        "outage {} ms; error window {} ms, between {} and {}",
        outage / MS,
        window / MS,
        low / MS,
        high / MS
    );
    assert!(outage > 1_100 * MS);
    assert!((low - slack..=high + slack).contains(&outage));
    // Twice the time between two calls, and the call that the kill caught.
    assert!(
        high - low <= 150 * MS,
        "the bounds are as wide as the probe is coarse"
    );
    let [steady, low, high] = value(experiment, Quantity::TimeToSteady);
    let truth = since(experiment.event, up);
    println!(
        "up after {} ms; steady after {} ms, between {} and {}",
        truth / MS,
        steady / MS,
        low / MS,
        high / MS
    );
    assert!((low - slack..=high + slack).contains(&truth));
    let failed: u64 = experiment
        .outcomes
        .iter()
        .filter(|(name, _)| name != "complete")
        .map(|(_, n)| n)
        .sum();
    assert!(failed >= 15, "{:?}", experiment.outcomes);

    let report = report::build(&[run.root().to_owned()]).unwrap();
    assert_eq!((report.experiments.len(), report.arms.len()), (3, 0));
    let (page, markdown) = (
        report::render::html(&report),
        report::render::markdown(&report),
    );
    for text in [&page, &markdown] {
        assert!(text.contains("Experiments of operation") && text.contains("error window"));
        assert!(text.contains("one repetition: no interval") && text.contains("simulated"));
    }
}

#[test]
fn a_trigger_that_fails_is_an_error_with_what_it_said() {
    let engine = Engine::start();
    let (output, run) = engine.load(
        "{kind: recovery, trigger: {run: [sh, -c, 'echo no such pod >&2; exit 3']}, before: 1s, rate: 20, settle: 500ms, window: 400ms, limit: 15s}",
    );
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("exit status: 3") && error.contains("no such pod"),
        "{error}"
    );
    let manifest = run.manifest().unwrap();
    let trigger = manifest.experiments[0].trigger.as_ref().unwrap();
    assert!(trigger.failed.is_some() && manifest.experiments[0].measures.is_empty());
    let said = std::fs::read_to_string(run.root().join(&trigger.log)).unwrap();
    assert_eq!(said.trim(), "no such pod");
    let (calls, _) = run.read_calls().unwrap();
    assert!(calls.len() >= 20, "what was measured before it is kept");
}

#[test]
fn what_is_not_over_at_the_limit_is_a_bound_and_the_exit_code_says_so() {
    let engine = Engine::start();
    let script = engine.kill(None);
    let (output, run) = engine.load(&format!(
        "{{kind: recovery, trigger: {{run: [sh, {script}]}}, before: 1s, rate: 20, settle: 500ms, window: 400ms, limit: 2s}}"
    ));
    let said = text(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{said}{}",
        text(&output.stderr)
    );
    assert!(
        said.contains("NOT MET time to steady of rig, repetition 1: longer than 2.0 s"),
        "{said}"
    );
    let manifest = run.manifest().unwrap();
    assert!(
        manifest.verdict.unwrap().valid(),
        "the bound itself is sound"
    );
    let experiment = &manifest.experiments[0];
    let limit = Found::LongerThan(2_000_000_000);
    assert_eq!(*found(experiment, Quantity::TimeToSteady), limit);
    assert!(matches!(
        found(experiment, Quantity::ErrorWindow),
        Found::LongerThan(_)
    ));
    let report = report::build(&[run.root().to_owned()]).unwrap();
    assert!(report::render::markdown(&report).contains("| > 2000.0 ms |"));
}

// ---------------------------------------------------------------- load that is too much

/// A modelled engine that answers one call after the other: each in about half a second ÷ `time_scale`.
fn one_by_one(time_scale: f64) -> EngineOptions {
    EngineOptions {
        model_options: ModelOptions {
            modelled: true,
            max_num_seqs: 1,
            time_scale,
            ..ModelOptions::default()
        },
        ..EngineOptions::default()
    }
}

async fn engine(time_scale: f64, truth: Log) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(sim::engine::serve(
        listener,
        one_by_one(time_scale),
        truth,
        pending(),
    ));
    at
}

/// Makes the experiment on what listens at `at`.
fn make(experiment: &str, at: SocketAddr) -> Experiment {
    let text = scenario(experiment);
    let parsed = config::from_text::<Scenario>(Path::new("ops.yaml"), &text)
        .unwrap_or_else(|error| panic!("{error}"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let mut plan = Plan::new("ops", &out, parsed.into_inner(), text);
    plan.chains.push(PlannedChain {
        chain: config::from_text::<config::Chain>(Path::new("chain.yaml"), &chain(at))
            .unwrap_or_else(|error| panic!("{error}"))
            .into_inner(),
        text: String::new(),
        base: dir.path().to_owned(),
        pids: Vec::new(),
        injected: None,
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    let mut manifest = run.manifest().unwrap();
    manifest.experiments.pop().unwrap()
}

/// A gauge of the stand-in's page of metrics, as nanoseconds.
fn gauge(at: SocketAddr, name: &str) -> Nanos {
    (metric(at, name) * 1e9) as Nanos
}

#[test]
fn the_scale_out_delay_is_that_of_the_replica_that_was_launched() {
    let runtime = Runtime::new().unwrap();
    let router = runtime.block_on(async {
        // The first answers ten calls a second. The second alone answers all of them, and the router sends
        // them where the least is in flight: latency is back with the replica, not with the first one's queue.
        let upstreams = [
            engine(5.0, Log::off()).await,
            engine(40.0, Log::off()).await,
        ];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let options = RouterOptions {
            upstreams: upstreams.map(|at| at.to_string()).to_vec(),
            policy: Policy::Prefix,
            scale: ScaleOptions {
                min_replicas: 1,
                scale_above: 3,
                launch_ms: 400,
                pull_ms: 700,
                load_ms: 400,
                idle_ms: 60_000,
            },
            ..RouterOptions::default()
        };
        tokio::spawn(sim::router::serve(listener, options, Log::off(), pending()));
        at
    });
    let experiment = make(
        "{kind: scale-out, before: 4s, rate: 4, raised: {rate: 15}, settle: 1s, window: 800ms, ttft_within: 5, limit: 15s}",
        router,
    );
    let decided = since(
        experiment.event,
        gauge(router, "sim_router_last_launch_seconds"),
    );
    let truth = since(
        experiment.event,
        gauge(router, "sim_router_last_ready_seconds"),
    );
    let [delay, low, high] = value(&experiment, Quantity::ScaleOutDelay);
    println!(
        "launched after {} ms, ready after {}; scale-out delay {} ms, between {} and {}",
        decided / MS,
        truth / MS,
        delay / MS,
        low / MS,
        high / MS
    );
    assert!(decided > 0 && (truth - decided - 1_500 * MS).abs() < MS);
    // Latency comes back with the first calls to the new replica: not before it is there, and within the window
    // over which the median is taken.
    assert!(delay > truth - 150 * MS && delay < truth + 1_000 * MS);
    assert!(low <= delay && delay <= high);
    runtime.shutdown_background();
}

#[test]
fn a_queue_is_drained_when_the_engine_has_as_few_calls_as_before() {
    let runtime = Runtime::new().unwrap();
    let log = Log::memory(10_000);
    let at = runtime.block_on(engine(5.0, log.clone()));
    let experiment = make(
        "{kind: queue-drain, before: 3s, rate: 4, raised: {rate: 30, duration: 1s}, settle: 1s, window: 1s, ttft_within: 5, limit: 20s}",
        at,
    );
    // The engine's own stamps: a call is in it from its last request byte to its last response byte.
    let mut changes: Vec<(Nanos, i32)> = Vec::new();
    for truth in log.take() {
        let came = truth.mark(Mark::RequestBody).and_then(|m| m.read_at);
        let left = truth.mark(Mark::End).and_then(|m| m.write_end);
        let (came, left) = (came.unwrap(), left.unwrap());
        changes.extend([(came, 1), (left, -1)]);
    }
    changes.sort_unstable();
    let mut count = 0;
    let drained = changes.iter().find(|(at, change)| {
        count += change;
        *at >= experiment.event && count <= 1
    });
    let truth = since(experiment.event, drained.unwrap().0);
    let [by_flight, ..] = value(&experiment, Quantity::InFlightDrain);
    let [by_ttft, low, high] = value(&experiment, Quantity::QueueDrain);
    println!(
        "drained after {} ms; by calls in flight {} ms, by TTFT {} ms, between {} and {}",
        truth / MS,
        by_flight / MS,
        by_ttft / MS,
        low / MS,
        high / MS
    );
    assert!(truth > 1_000 * MS, "there was a queue");
    assert!((by_flight - truth).abs() < 150 * MS);
    // A call that was due with others still before it is slow: latency is back a few calls around that.
    assert!((by_ttft - truth).abs() < 800 * MS);
    runtime.shutdown_background();
}
