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
    printed("clients", "clients/ask.py", &arguments, &[])
}

/// What a script prints, run by the Python of a component, with the keys for AWS of `environment` alone.
pub(super) fn printed(
    component: &str,
    name: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Vec<String> {
    let home = tempfile::tempdir().unwrap();
    let run = Command::new(target().join(format!("real/{component}/bin/python")))
        .arg(script(name))
        .args(arguments)
        .env_clear()
        .env("HOME", home.path())
        .envs(environment.iter().copied())
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
