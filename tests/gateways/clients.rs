//! Real clients through a tap get what they get without one.

use super::rig::{chain, free, pair, serve};
use super::{engine, installed, script, target};
use record::exchange::Outcome;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

/// What the script prints of its calls to `base`: one line of JSON a call.
fn answers(base: SocketAddr, ways: &[&str]) -> Vec<String> {
    let base = base.to_string();
    let arguments: Vec<&str> = std::iter::once(&*base)
        .chain(ways.iter().copied())
        .collect();
    printed("clients/ask.py", &arguments)
}

fn printed(name: &str, arguments: &[&str]) -> Vec<String> {
    let run = Command::new(target().join("real/clients/bin/python"))
        .arg(script(name))
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}");
    String::from_utf8_lossy(&run.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn clients_get_through_the_taps_what_they_get_without_them() {
    let Some(_turn) = installed("clients") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let at = engine(&runtime);
    let (outer, inner) = (free(), free());
    let mut chain = chain(&[("outer", outer, inner), ("inner", inner, at)]);
    chain.taps[0].http2 = true;
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
    let all = ["openai", "openai-async", "httpx", "aiohttp", "errors"];
    let (with, without) = (answers(outer, &all), answers(at, &all));
    assert!(with.len() >= 10, "{with:?}");
    assert_eq!(with, without);
    // The stand-in speaks no HTTP/2: what the client gets over it is compared with HTTP/1.
    let over = answers(outer, &["httpx-http2"]);
    assert_eq!(over, answers(at, &["httpx"]));
    server.stop(Duration::from_secs(2));
    let calls = pair(dir.path());
    let complete = calls
        .iter()
        .filter(|c| c.outer.outcome == Outcome::Complete && c.outer.request.generation)
        .count();
    assert!(complete >= 9, "{complete} complete calls recorded");
    runtime.shutdown_background();
}

#[test]
fn boto3_gets_through_a_tap_what_it_gets_without_it() {
    let Some(_turn) = installed("clients") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let at = engine(&runtime);
    let outer = free();
    let dir = tempfile::tempdir().unwrap();
    let server = serve(
        &chain(&[("outer", outer, at)]),
        &dir.path().join("taps/tap"),
        "tap",
    );
    let told = |at: SocketAddr| printed("clients/bedrock.py", &[&format!("http://{at}")]);
    let (with, without) = (told(outer), told(at));
    assert_eq!(with, without);
    for (line, says) in [
        (0, "\"stop\": \"max_tokens\""),
        (1, "\"toolUse\""),
        (2, "\"kinds\": [\"messageStart\", \"contentBlockDelta\""),
        (4, "\"input\": \"{\\\"x\\\":1}\""),
        (5, "ThrottlingException"),
        (6, "ServiceUnavailableException"),
        (7, "internalServerException"),
        (8, "\"kind\": \"ChecksumMismatch\""),
    ] {
        assert!(with[line].contains(says), "{says} in {}", with[line]);
    }
    server.stop(Duration::from_secs(2));
    let found: Vec<Outcome> = pair(dir.path())
        .iter()
        .map(|call| call.outer.outcome)
        .collect();
    use Outcome::{Complete, ErrorInStream, Refused, Truncated};
    assert_eq!(
        found[..8],
        [
            Complete,
            Complete,
            Complete,
            Complete,
            Complete,
            Refused,
            Refused,
            ErrorInStream
        ]
    );
    // The client hangs up at a frame that it cannot read, or the stream was over before.
    assert!(matches!(found[8], Outcome::Aborted | Complete), "{found:?}");
    assert_eq!(found[9], Truncated);
    let calls = pair(dir.path());
    let model = |at: usize| calls[at].outer.request.model.as_deref();
    assert_eq!(model(2), Some("us.meta.llama3-1-70b-instruct-v1:0"));
    assert_eq!(
        model(3),
        Some("arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456")
    );
    runtime.shutdown_background();
}
