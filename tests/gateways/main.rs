//! Real programs between the taps. One that is not installed is skipped, and said so; with
//! `HOPSCOPE_REQUIRE_REAL=1` that is a failure. `tests/real/install.sh NAME` installs it.

// Clippy's leave for tests covers test functions, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

#[path = "../sandwich/rig.rs"]
mod rig;

use record::leg::{TextAgreement, identity_error};
use record::pairing::{Call, CallClass, Confirmed, MatchedBy};
use record::stamp::StampClass;
use rig::{END, chain, chat, connect, exchange, free, pair, serve};
use sim::engine::EngineOptions;
use sim::truth::Log;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// LiteLLM takes up to 40 s to import itself, more on a busy machine.
const START: Duration = Duration::from_secs(150);
const KEY: &str = "sk-5f2d9c7be1a04836925d7c3b8e6fa01d";

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/real")
        .join(name)
}

/// Is the component there? Where it must be and is not, the test fails.
fn installed(name: &str) -> bool {
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

/// Ended, and waited for, also when a test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two models of one engine behind a component: what came of calls through it.
struct Through {
    calls: Vec<Call>,
    /// Response heads as the client saw them.
    heads: Vec<String>,
}

/// Runs `count` streamed calls through outer tap → `name` → inner tap → engine stand-in.
fn through(
    name: &str,
    arguments: impl Fn(SocketAddr, SocketAddr, SocketAddr) -> Vec<String>,
    ready: &str,
    count: usize,
) -> Through {
    through_over(false, name, arguments, ready, count)
}

/// The same, with HTTP/2 on both sides of the gateway where `http2` says so.
fn through_over(
    http2: bool,
    name: &str,
    arguments: impl Fn(SocketAddr, SocketAddr, SocketAddr) -> Vec<String>,
    ready: &str,
    count: usize,
) -> Through {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let engine = runtime.block_on(async {
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
    });
    let (outer, inner, gateway) = (free(), free(), free());
    let mut chain = chain(&[("outer", outer, gateway), ("inner", inner, engine)]);
    chain.taps[0].upstream.http2 = http2;
    chain.taps[1].http2 = http2;
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
    let work = dir.path().join("work");
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    let child = Command::new(script(&format!("run/{name}.sh")))
        .arg(&work)
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
    let fields = format!("Authorization: Bearer {KEY}\r\n");
    let mut heads = Vec::new();
    let mut socket = connect(outer);
    for _ in 0..count {
        let got = String::from_utf8_lossy(&exchange(
            &mut socket,
            chat(24, &fields, "").as_bytes(),
            END,
        ))
        .into_owned();
        assert!(got.starts_with("HTTP/1.1 200"), "{got}");
        heads.push(got.split("\r\n\r\n").next().unwrap().to_lowercase());
    }
    drop((socket, running));
    server.stop(Duration::from_secs(2));
    runtime.shutdown_background();
    Through {
        calls: pair(dir.path()),
        heads,
    }
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
    if !installed("litellm") {
        return;
    }
    let arguments = |gateway: SocketAddr, inner: SocketAddr, engine: SocketAddr| {
        vec![
            gateway.port().to_string(),
            inner.to_string(),
            engine.to_string(),
        ]
    };
    let found = through("litellm", arguments, "/health/liveliness", 30);
    sound(&found, 30);
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
}

/// A program that passes everything through: paired, sound, bodies and events untouched.
fn passes_everything(name: &str) {
    if !installed(name) {
        return;
    }
    let arguments = |gateway: SocketAddr, inner: SocketAddr, _: SocketAddr| {
        vec![gateway.port().to_string(), inner.to_string()]
    };
    let found = through(name, arguments, "/-/ready", 30);
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
    if !installed("envoy") {
        return;
    }
    let arguments = |gateway: SocketAddr, inner: SocketAddr, _: SocketAddr| {
        vec![gateway.port().to_string(), inner.to_string()]
    };
    let found = through_over(true, "envoy", arguments, "/-/ready", 30);
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
    if !installed("vllm-router") {
        return;
    }
    let arguments = |gateway: SocketAddr, inner: SocketAddr, _: SocketAddr| {
        vec![gateway.port().to_string(), inner.to_string()]
    };
    let found = through("vllm-router", arguments, "/health", 30);
    sound(&found, 30);
    println!(
        "vllm-router: measured added TTFT {:.3} ms",
        median(added_ttft_ms(&found))
    );
}
