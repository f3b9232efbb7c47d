//! A real Prometheus scrapes a tap: every family arrives, classic and native, and counts what was done.

use super::rig::{END, chain, chat, connect, exchange, free, serve};
use super::{Running, engine, installed, script, target, wait};
use hopscope::telemetry::{Endpoints, serve_telemetry};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: usize = 12;

pub(super) fn get(at: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let got = exchange(&mut connect(at), request.as_bytes(), b"never");
    String::from_utf8_lossy(&got).into_owned()
}

/// The samples of an instant query: values as text.
fn query(prometheus: SocketAddr, expression: &str) -> Vec<f64> {
    let encoded: String = expression.bytes().map(|b| format!("%{b:02x}")).collect();
    let answer = get(prometheus, &format!("/api/v1/query?query={encoded}"));
    // Prometheus sends short answers whole; chunks would stand between head and body otherwise.
    let at = answer
        .find("{\"status\"")
        .unwrap_or_else(|| panic!("{answer}"));
    let mut values = serde_json::Deserializer::from_str(&answer[at..]).into_iter();
    let json: serde_json::Value = values.next().unwrap().unwrap();
    assert_eq!(json["status"], "success", "{expression}: {json}");
    let samples = json["data"]["result"].as_array().unwrap();
    samples
        .iter()
        .map(|s| s["value"][1].as_str().unwrap().parse().unwrap())
        .collect()
}

/// A Prometheus that scrapes `telemetry`, once it is ready.
fn scraping(dir: &tempfile::TempDir, telemetry: SocketAddr, native: &str) -> (SocketAddr, Running) {
    let port = free();
    let child = Command::new(script("run/prometheus.sh"))
        .args([dir.path().join(native).as_os_str()])
        .args([port.port().to_string(), telemetry.to_string()])
        .env("NATIVE", native)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let running = Running(child);
    wait(port, "/-/ready", || "prometheus".to_owned());
    (port, running)
}

/// The text as Prometheus' own linter sees it. Debian puts it beside the server; one that was on PATH
/// may come without.
fn promtool(text: &str) {
    let unpacked = target().join("real/prometheus/root/usr/bin/promtool");
    let program = if unpacked.is_file() {
        unpacked
    } else {
        "promtool".into()
    };
    let started = Command::new(program)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = started else {
        println!("skipped: no promtool beside this Prometheus");
        return;
    };
    let body = text.split_once("\r\n\r\n").map_or(text, |(_, body)| body);
    child
        .stdin
        .take()
        .unwrap()
        .write_all(body.as_bytes())
        .unwrap();
    let said = child.wait_with_output().unwrap();
    let all = [said.stdout, said.stderr].concat();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&all));
}

#[test]
fn prometheus_reads_every_family_and_both_kinds_of_histogram() {
    let Some(_turn) = installed("prometheus") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let at = engine(&runtime);
    let (outer, inner) = (free(), free());
    let chain = chain(&[("outer", outer, inner), ("inner", inner, at)]);
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
    let telemetry = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(serve_telemetry(listener, Endpoints::of(server.meter())));
        at
    });
    let mut socket = connect(outer);
    for _ in 0..CALLS {
        assert!(exchange(&mut socket, chat(16, "", "").as_bytes(), END).ends_with(END));
    }
    let (port, native) = scraping(&dir, telemetry, "on");
    let (classic_port, classic) = scraping(&dir, telemetry, "off");
    // Pairing settles a call after a second, and a scrape comes each second.
    let until = Instant::now() + Duration::from_secs(30);
    let calls = "sum(hopscope_calls_total{class=\"served\"})";
    while query(port, calls) != [CALLS as f64] {
        assert!(Instant::now() < until, "{:?}", query(port, calls));
        std::thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(query(port, "up"), [1.0]);
    assert_eq!(
        query(port, "sum(hopscope_exchanges_total{tap=\"outer\"})"),
        [CALLS as f64]
    );
    // With its native histograms on, Prometheus asks for protobuf and keeps that form only.
    let legs = query(
        port,
        "histogram_count(hopscope_leg_seconds{leg=\"added-ttft\"})",
    );
    assert_eq!(legs, [CALLS as f64], "native");
    let median = query(
        port,
        "histogram_quantile(0.5, hopscope_leg_seconds{leg=\"added-ttft\"})",
    );
    assert!(median[0] > 1e-6 && median[0] < 1.0, "{median:?}");
    // The other reads text and has the classic buckets, of the same calls.
    let until = Instant::now() + Duration::from_secs(30);
    let count = "hopscope_leg_seconds_count{leg=\"added-ttft\"}";
    while query(classic_port, count) != [CALLS as f64] {
        assert!(Instant::now() < until, "{:?}", query(classic_port, count));
        std::thread::sleep(Duration::from_millis(300));
    }
    let by_buckets = query(
        classic_port,
        "histogram_quantile(0.5, hopscope_leg_seconds_bucket{leg=\"added-ttft\"})",
    );
    let ratio = by_buckets[0] / median[0];
    assert!(
        (0.3..3.0).contains(&ratio),
        "classic {by_buckets:?}, native {median:?}"
    );
    let text = get(telemetry, "/metrics");
    promtool(&text);
    let mut missing = BTreeSet::new();
    for line in text.lines().filter(|l| l.starts_with("# TYPE ")) {
        let mut words = line.split(' ').skip(2);
        let (name, kind) = (words.next().unwrap(), words.next().unwrap());
        let has_samples = text
            .lines()
            .any(|l| l.starts_with(name) && !l.starts_with('#'));
        let named = if kind == "counter" && !name.ends_with("_total") {
            format!("{name}_total")
        } else {
            name.to_owned()
        };
        if has_samples && query(port, &format!("count({named})")).is_empty() {
            missing.insert(named);
        }
    }
    assert!(missing.is_empty(), "{missing:?} never arrived");
    drop((native, classic));
    server.stop(Duration::from_secs(2));
    runtime.shutdown_background();
}
