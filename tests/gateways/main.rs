//! Real programs between the taps and around them. One that is not installed is skipped, and said so; with
//! `HOPSCOPE_REQUIRE_REAL=1` that is a failure. `tests/real/install.sh NAME` installs it.

// Clippy's leave for tests covers test functions, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

mod aws;
mod aws_bearer;
mod aws_rig;
mod aws_sdk;
mod clients;
mod driven;
mod engines;
mod exports;
mod langgraph;
mod page;
mod prometheus;
mod referee;
#[path = "../sandwich/rig.rs"]
mod rig;
mod translation;

use hopscope::tap::TapServer;
use record::leg::{TextAgreement, identity_error};
use record::pairing::{Call, CallClass, Confirmed, MatchedBy};
use record::stamp::StampClass;
use rig::{END, chain, chat, connect, exchange, free, pair, serve};
use sim::engine::EngineOptions;
use sim::truth::Log;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// LiteLLM takes up to 40 s to import itself, two of vLLM a minute and a half, more on a busy machine.
const START: Duration = Duration::from_secs(300);
const KEY: &str = "sk-5f2d9c7be1a04836925d7c3b8e6fa01d";

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/real")
        .join(name)
}

/// Where `tests/real/place.sh` puts what is installed.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"),
        PathBuf::from,
    )
}

/// The tests run beside each other, but for those that start an engine: it takes all of a small machine, and
/// what the others measure would be its doing.
static TURN: RwLock<()> = RwLock::new(());

/// Leave to run beside others, where the component is there. Where it must be and is not, the test fails.
fn installed(name: &str) -> Option<RwLockReadGuard<'static, ()>> {
    there(name).then(|| TURN.read().unwrap_or_else(PoisonError::into_inner))
}

/// Leave to run alone, where all these components are there.
fn alone(names: &[&str]) -> Option<RwLockWriteGuard<'static, ()>> {
    let all = names.iter().all(|name| there(name));
    all.then(|| TURN.write().unwrap_or_else(PoisonError::into_inner))
}

fn there(name: &str) -> bool {
    let there = Command::new(script("install.sh"))
        .args(["--installed", name])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success();
    let required = std::env::var_os("HOPSCOPE_REQUIRE_REAL").is_some();
    assert!(
        there || !required,
        "{name} is not installed: tests/real/install.sh {name}"
    );
    if !there {
        println!("skipped: {name} is not installed; tests/real/install.sh {name}");
    }
    there
}

/// Ended, and waited for, also when a test fails. Asked first: a master that is killed outright leaves
/// its workers behind.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let asked = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process(asked, rustix::process::Signal::TERM);
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An engine stand-in of `runtime`.
fn engine(runtime: &tokio::runtime::Runtime) -> SocketAddr {
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let options = EngineOptions {
            ttft_us: 20_000,
            gap_us: 5_000,
            ..EngineOptions::default()
        };
        tokio::spawn(sim::engine::serve(
            listener,
            options,
            Log::off(),
            std::future::pending(),
        ));
        at
    })
}

/// What came of calls through a component.
struct Through {
    calls: Vec<Call>,
    /// Response heads as the client saw them.
    heads: Vec<String>,
}

/// Outer tap → a component → inner tap → engine stand-in, all of them up.
struct Standing {
    outer: SocketAddr,
    gateway: SocketAddr,
    heads: Vec<String>,
    dir: tempfile::TempDir,
    server: TapServer,
    running: Running,
    runtime: tokio::runtime::Runtime,
}

impl Standing {
    /// Starts `name`, with HTTP/2 on both of its sides where `http2` says so.
    fn up(
        http2: bool,
        name: &str,
        arguments: impl Fn(SocketAddr, SocketAddr, SocketAddr) -> Vec<String>,
        ready: &str,
    ) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let engine = engine(&runtime);
        let (outer, inner, gateway) = (free(), free(), free());
        let mut chain = chain(&[("outer", outer, gateway), ("inner", inner, engine)]);
        chain.taps[0].upstream.http2 = http2;
        chain.taps[1].http2 = http2;
        let dir = tempfile::tempdir().unwrap();
        let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        let child = Command::new(script(&format!("run/{name}.sh")))
            .arg(dir.path().join("work"))
            .args(arguments(gateway, inner, engine))
            .env("LITELLM_MASTER_KEY", KEY)
            .env("HTTP2", if http2 { "1" } else { "" })
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let running = Running(child);
        wait(gateway, ready, || {
            std::fs::read_to_string(dir.path().join("log")).unwrap_or_default()
        });
        Self {
            outer,
            gateway,
            heads: Vec::new(),
            dir,
            server,
            running,
            runtime,
        }
    }

    /// `count` streamed calls on one connection.
    fn drive(mut self, count: usize) -> Self {
        let mut socket = connect(self.outer);
        for _ in 0..count {
            let got = ask(&mut socket, "m");
            self.heads
                .push(got.split("\r\n\r\n").next().unwrap().to_lowercase());
        }
        self
    }

    /// Ends everything and gives what was recorded.
    fn down(self) -> Through {
        drop(self.running);
        self.server.stop(Duration::from_secs(2));
        self.runtime.shutdown_background();
        Through {
            calls: pair(self.dir.path()),
            heads: self.heads,
        }
    }
}

/// One streamed call for `model`, answered in full.
fn ask(socket: &mut std::net::TcpStream, model: &str) -> String {
    let fields = format!("Authorization: Bearer {KEY}\r\n");
    let request = chat(24, &fields, "");
    // Names of one length would keep the length; the control's is longer.
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let body = body.replace("\"m\"", &format!("\"{model}\""));
    let head: Vec<&str> = head
        .lines()
        .filter(|l| !l.to_lowercase().starts_with("content-length"))
        .collect();
    let request = format!(
        "{}\r\nContent-Length: {}\r\n\r\n{body}",
        head.join("\r\n"),
        body.len()
    );
    let got = String::from_utf8_lossy(&exchange(socket, request.as_bytes(), END)).into_owned();
    assert!(got.starts_with("HTTP/1.1 200"), "{got}");
    got
}

fn wait(at: SocketAddr, path: &str, log: impl Fn() -> String) {
    let until = Instant::now() + START;
    loop {
        if std::net::TcpStream::connect(at).is_ok() {
            let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            if exchange(&mut connect(at), request.as_bytes(), b"\r\n\r\n")
                .starts_with(b"HTTP/1.1 200")
            {
                return;
            }
        }
        assert!(Instant::now() < until, "not ready on {at}{path}: {}", log());
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Every call has its pair, the same text on both sides, and legs that add up.
fn sound(found: &Through, count: usize) {
    let generations: Vec<&Call> = found
        .calls
        .iter()
        .filter(|c| c.outer.request.generation)
        .collect();
    assert_eq!(generations.len(), count);
    for call in &generations {
        assert_eq!(
            (call.class, call.matched),
            (CallClass::Served, Some(MatchedBy::Header))
        );
        assert_ne!(
            call.confirmed,
            Confirmed::No,
            "the exchange id or the response id came back"
        );
        let legs = call.legs().unwrap();
        assert_eq!(legs.text, TextAgreement::Same);
        assert_eq!(
            identity_error(&call.outer, call.served_by().unwrap(), &legs),
            Some(0)
        );
        assert!(legs.added_ttft.is_some() && legs.added_text.is_some());
    }
    for head in &found.heads {
        assert!(
            !head.contains("hopscope"),
            "the client sees nothing of ours: {head}"
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn added_ttft_ms(found: &Through) -> Vec<f64> {
    let of = |c: &Call| {
        c.legs()
            .and_then(|l| l.added_ttft)
            .map(|s| s.value as f64 / 1e6)
    };
    found.calls.iter().filter_map(of).collect()
}

#[test]
fn litellm_keeps_the_call_id_and_its_own_figure_is_below_what_it_adds() {
    let Some(_turn) = installed("litellm") else {
        return;
    };
    let arguments = |gateway: SocketAddr, inner: SocketAddr, engine: SocketAddr| {
        vec![
            gateway.port().to_string(),
            inner.to_string(),
            engine.to_string(),
        ]
    };
    let standing = Standing::up(false, "litellm", arguments, "/health/liveliness").drive(30);
    let difference = tapped_less_untapped(&standing);
    let found = standing.down();
    sound(&found, 30 + PAIRS);
    let claimed = |head: &String| {
        let line = head
            .lines()
            .find_map(|l| l.strip_prefix("x-litellm-overhead-duration-ms: "))?;
        line.trim().parse::<f64>().ok()
    };
    let claimed = median(found.heads.iter().filter_map(claimed).collect());
    let measured = median(added_ttft_ms(&found));
    println!(
        "LiteLLM: claims {claimed:.1} ms (handler start to the upstream's response head), measured added TTFT {measured:.1} ms (request + first token)"
    );
    // The header leaves out the accept queue before and the first token behind: it cannot be more.
    assert!(
        measured > claimed * 0.8,
        "measured {measured} ms, claimed {claimed} ms"
    );
    // What inserting the taps did must be what they account for, as far as two shared cores tell.
    let own = median(found.calls.iter().filter_map(own_delay_ms).collect());
    println!("tapped less untapped {difference:.2} ms, the taps' own delay {own:.2} ms");
    assert!(
        (difference - own).abs() < (measured * 0.25).max(3.0),
        "tapped less untapped {difference} ms, own delay {own} ms"
    );
}

/// Calls with and without the taps, in turn.
const PAIRS: usize = 40;

/// Difference of the medians of E2E, milliseconds: through the taps, and straight through the same
/// process to the same engine.
fn tapped_less_untapped(standing: &Standing) -> f64 {
    let (mut tapped, mut untapped) = (connect(standing.outer), connect(standing.gateway));
    let time = |socket: &mut std::net::TcpStream, model: &str| {
        let begin = Instant::now();
        ask(socket, model);
        begin.elapsed().as_secs_f64() * 1e3
    };
    for _ in 0..5 {
        time(&mut untapped, "m-untapped");
    }
    // Each goes first as often as the other.
    let (with, without): (Vec<f64>, Vec<f64>) = (0..PAIRS)
        .map(|n| {
            if n % 2 == 0 {
                let with = time(&mut tapped, "m");
                (with, time(&mut untapped, "m-untapped"))
            } else {
                let without = time(&mut untapped, "m-untapped");
                (time(&mut tapped, "m"), without)
            }
        })
        .unzip();
    median(with) - median(without)
}

/// Both taps' own delay on the request and on the last text, milliseconds.
fn own_delay_ms(call: &Call) -> Option<f64> {
    let mut sum = 0;
    for exchange in [&call.outer, call.served_by()?] {
        for passage in [exchange.marks.request?, exchange.stream.marks.last_text?] {
            sum += passage
                .departure?
                .end
                .saturating_sub(passage.arrival.latest());
        }
    }
    Some(sum as f64 / 1e6)
}

/// A program that passes everything through: paired, sound, bodies and events untouched.
fn passes_everything(name: &str) {
    let Some(_turn) = installed(name) else {
        return;
    };
    let arguments = |gateway: SocketAddr, inner: SocketAddr, _: SocketAddr| {
        vec![gateway.port().to_string(), inner.to_string()]
    };
    let found = Standing::up(false, name, arguments, "/-/ready")
        .drive(30)
        .down();
    sound(&found, 30);
    println!(
        "{name}: measured added TTFT {:.3} ms",
        median(added_ttft_ms(&found))
    );
    for call in found.calls.iter().filter(|c| c.outer.request.generation) {
        let inner = call.served_by().unwrap();
        assert_eq!(
            call.outer.request.body_hash, inner.request.body_hash,
            "{name} leaves the body alone"
        );
        assert_eq!(call.legs().unwrap().merge_ratio, Some(1.0));
    }
}

#[test]
fn envoy_passes_everything_and_adds_little() {
    passes_everything("envoy");
}

#[test]
fn nginx_passes_everything_and_adds_little() {
    passes_everything("nginx");
}

#[test]
fn haproxy_passes_everything_and_adds_little() {
    passes_everything("haproxy");
}

#[test]
fn envoy_over_http2_on_both_sides_is_measured_in_a_class_of_its_own() {
    let Some(_turn) = installed("envoy") else {
        return;
    };
    let arguments = |gateway: SocketAddr, inner: SocketAddr, _: SocketAddr| {
        vec![gateway.port().to_string(), inner.to_string()]
    };
    let found = Standing::up(true, "envoy", arguments, "/-/ready")
        .drive(30)
        .down();
    sound(&found, 30);
    println!(
        "Envoy over HTTP/2: measured added TTFT {:.3} ms",
        median(added_ttft_ms(&found))
    );
    for call in found.calls.iter().filter(|c| c.outer.request.generation) {
        let inner = call.served_by().unwrap();
        assert_eq!(call.outer.connection.upstream_class, StampClass::H2);
        assert_eq!(inner.connection.client_class, StampClass::H2);
        assert_eq!(call.outer.request.body_hash, inner.request.body_hash);
    }
}

#[test]
fn vllm_router_keeps_the_call_id() {
    let Some(_turn) = installed("vllm-router") else {
        return;
    };
    let arguments = |gateway: SocketAddr, inner: SocketAddr, _: SocketAddr| {
        vec![gateway.port().to_string(), inner.to_string()]
    };
    let found = Standing::up(false, "vllm-router", arguments, "/health")
        .drive(30)
        .down();
    sound(&found, 30);
    println!(
        "vllm-router: measured added TTFT {:.3} ms",
        median(added_ttft_ms(&found))
    );
}
