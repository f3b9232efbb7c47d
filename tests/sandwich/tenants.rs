//! What one tenant is told of another: a gateway that leaks is caught, and one that does not is not.

use crate::rig::{Rig, spawn_engine};
use record::rundir::RunDir;
use sim::engine::EngineOptions;
use sim::gateway::GatewayOptions;
use sim::truth::Log;
use std::future::pending;
use std::process::{Command, Stdio};
use tokio::runtime::Runtime;

const SCENARIO: &str = "
name: leak
number: 6
question: Does one tenant hear another's secret?
workload: {input_tokens: 20, output_tokens: 64, prompts: same}
tenants:
  members:
    - {name: one, rate: 10, system_tokens: 20, key_env: ONE_KEY}
    - {name: two, rate: 10, system_tokens: 20, key_env: TWO_KEY}
  cell: {duration: 2s}
blocks: 1
warmup: {calls: 1}
seed: 7
";

/// Answers with another tenant's secret, of two tenants before a gateway with a semantic cache.
fn leaked(leak: bool) -> u64 {
    let runtime = Runtime::new().unwrap();
    let gateway = runtime.block_on(async {
        let engine = spawn_engine(EngineOptions {
            ttft_us: 5_000,
            gap_us: 500,
            echo_system: true,
            ..EngineOptions::default()
        });
        let mut options = GatewayOptions {
            upstream: engine.await.to_string(),
            ..GatewayOptions::default()
        };
        options.semantic.semantic_cache = true;
        options.semantic.leak_across_tenants = leak;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(sim::gateway::serve(
            listener,
            options,
            Log::off(),
            pending(),
        ));
        at
    });
    let rig = Rig::around(gateway);
    let outer = rig.outer;
    let dir = tempfile::tempdir().unwrap();
    let chain = format!(
        "name: rig\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{outer}\nmodel: m\n\
         taps: [{{name: outer, position: outer, listen: \"{outer}\", upstream: {{addresses: [\"{gateway}\"]}}}}]\n"
    );
    std::fs::write(dir.path().join("chain.yaml"), chain).unwrap();
    std::fs::write(dir.path().join("scenario.yaml"), SCENARIO).unwrap();
    let out = dir.path().join("run");
    let status = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(["load", "--quiet", "--scenario"])
        .arg(dir.path().join("scenario.yaml"))
        .arg("--chain")
        .arg(dir.path().join("chain.yaml"))
        .arg("--out")
        .arg(&out)
        .env("ONE_KEY", "key-of-one")
        .env("TWO_KEY", "key-of-two")
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.code().is_some_and(|code| code < 2));
    let cells = RunDir::open(&out).unwrap().manifest().unwrap().cells;
    assert_eq!(cells.len(), 4, "each alone, and both together");
    assert!(cells.iter().all(|cell| cell.sent > 10));
    runtime.shutdown_background();
    cells.iter().map(|cell| cell.leaked.unwrap()).sum()
}

#[test]
fn an_answer_from_another_tenants_cache_is_caught() {
    let count = leaked(true);
    assert!(count > 5, "only {count} leaks were seen");
    assert_eq!(leaked(false), 0);
}
