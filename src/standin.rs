//! From a stand-in's script in a configuration file to the command line of its process.

use config::standin::{EngineScript, GatewayScript, StreamMode};
use std::net::SocketAddr;
use std::path::Path;

fn micros(period: config::Period) -> String {
    (period.nanos() / 1_000).to_string()
}

fn common(role: &str, listen: SocketAddr, truth: &Path) -> Vec<String> {
    let truth = truth.to_string_lossy().into_owned();
    [
        "sim",
        role,
        "--listen",
        &listen.to_string(),
        "--truth",
        &truth,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// `hopscope sim engine …` for a script.
#[must_use]
pub fn engine(script: &EngineScript, listen: SocketAddr, truth: &Path) -> Vec<String> {
    let mut line = common("engine", listen, truth);
    let jitter = script.jitter.to_string();
    let seed = script.seed.to_string();
    for (flag, value) in [
        ("--ttft-us", micros(script.ttft)),
        ("--gap-us", micros(script.gap)),
        ("--end-gap-us", micros(script.end_gap)),
        ("--gap-jitter", jitter),
        ("--seed", seed),
    ] {
        line.extend([flag.to_owned(), value]);
    }
    line
}

/// `hopscope sim gateway …` for a script.
#[must_use]
pub fn gateway(
    script: &GatewayScript,
    listen: SocketAddr,
    upstream: &str,
    truth: &Path,
) -> Vec<String> {
    let mut line = common("gateway", listen, truth);
    for (flag, value) in [
        ("--upstream", upstream.to_owned()),
        ("--request-delay-us", micros(script.request_delay)),
        ("--first-token-delay-us", micros(script.first_token_delay)),
        ("--token-delay-us", micros(script.token_delay)),
        ("--finish-delay-us", micros(script.finish_delay)),
    ] {
        line.extend([flag.to_owned(), value]);
    }
    if let Some(workers) = script.workers {
        line.extend(["--workers".to_owned(), workers.to_string()]);
    }
    match script.mode {
        StreamMode::Pass => {}
        StreamMode::Reserialise => line.push("--reserialize".to_owned()),
        StreamMode::Merge => line.extend([
            "--merge".to_owned(),
            script.merge_every.unwrap_or(4).to_string(),
        ]),
    }
    for (flag, set) in [
        ("--cpu-delay", script.busy),
        ("--hold-head", script.hold_head),
    ] {
        if set {
            line.push(flag.to_owned());
        }
    }
    line
}

/// `hopscope sim relay …`.
#[must_use]
pub fn relay(listen: SocketAddr, upstream: &str, truth: &Path) -> Vec<String> {
    let mut line = common("relay", listen, truth);
    line.extend(["--upstream".to_owned(), upstream.to_owned()]);
    line
}

/// What a gateway's script injects, in words for a reader.
#[must_use]
pub fn injected(script: &GatewayScript) -> String {
    let mut parts = vec![format!("{} on the request", script.request_delay)];
    for (delay, what) in [
        (script.first_token_delay, "more on the first token"),
        (script.token_delay, "on every token"),
        (script.finish_delay, "on the end"),
    ] {
        if !delay.is_zero() {
            parts.push(format!("{delay} {what}"));
        }
    }
    if script.busy {
        parts.push(format!(
            "spent as work of {} worker(s)",
            script.workers.unwrap_or(1)
        ));
    }
    format!("{}; {}", script.mode.as_str(), parts.join(", "))
}
