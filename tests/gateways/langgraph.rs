//! A real agent, LangGraph with MCP tools, through the taps: its tools are called and its calls are paired.

use super::rig::{chain, connect, exchange, free, pair, serve};
use super::{Running, installed, script, wait};
use record::exchange::Outcome;
use record::pairing::Call;
use serde_json::{Value, json};
use sim::engine::EngineOptions;
use sim::truth::Log;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpListener;
use tools::ToolsOptions;

const TASKS: usize = 2;
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// An engine that calls every tool it is offered, and the bundled tool server.
fn behind(runtime: &tokio::runtime::Runtime) -> (SocketAddr, SocketAddr) {
    runtime.block_on(async {
        let (engine, server) = (
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
        );
        let at = (engine.local_addr().unwrap(), server.local_addr().unwrap());
        let options = EngineOptions {
            ttft_us: 5_000,
            gap_us: 500,
            call_tools: true,
            ..EngineOptions::default()
        };
        let forever = std::future::pending;
        tokio::spawn(sim::engine::serve(engine, options, Log::off(), forever()));
        tokio::spawn(tools::serve(server, ToolsOptions::default(), forever()));
        at
    })
}

fn start(work: &Path, port: u16, model: SocketAddr, tools: SocketAddr) -> Running {
    let log = std::fs::File::create(work.join("log")).unwrap();
    let child = Command::new(script("run/langgraph.sh"))
        .arg(work.join("work"))
        .args([port.to_string(), model.to_string(), tools.to_string()])
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Running(child)
}

/// One task of the agent.
fn task(agent: SocketAddr, body: &Value) -> (String, Value) {
    let body = body.to_string();
    let request = format!(
        "POST /run HTTP/1.1\r\nHost: agent\r\nContent-Type: application/json\r\nConnection: close\r\n\
         traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(&mut connect(agent), request.as_bytes(), b"no such end");
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap().to_owned();
    (status, serde_json::from_str(body).unwrap())
}

#[test]
fn a_langgraph_agent_calls_its_tools_and_every_model_call_is_paired() {
    let Some(_turn) = installed("langgraph") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (engine, tools) = behind(&runtime);
    let (outer, inner, agent) = (free(), free(), free());
    let chain = chain(&[("outer", outer, inner), ("inner", inner, engine)]);
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
    let running = start(dir.path(), agent.port(), outer, tools);
    let log = || std::fs::read_to_string(dir.path().join("log")).unwrap_or_default();
    wait(agent, "/health", log);
    for _ in 0..TASKS {
        let (status, said) = task(agent, &json!({"input": "What does a gateway add?"}));
        assert!(status.contains(" 200 "), "{status} {said}: {}", log());
        let did = |name: &str| json!({"name": name, "ok": true});
        let all: Vec<Value> = tools::TOOLS.iter().map(|name| did(name)).collect();
        assert_eq!(
            (&said["tool_calls"], &said["model_calls"]),
            (&all.into(), &4.into())
        );
        assert!(
            said["answer"].as_str().unwrap().split_whitespace().count() > 10,
            "{said}"
        );
    }
    assert!(task(agent, &json!({"output": 1})).0.contains(" 400 "));
    drop(running);
    server.stop(Duration::from_secs(2));
    runtime.shutdown_background();
    let calls = pair(dir.path());
    let of_the_model = |call: &&Call| call.outer.request.generation;
    let calls: Vec<&Call> = calls.iter().filter(of_the_model).collect();
    assert_eq!(calls.len(), 4 * TASKS);
    for call in calls {
        assert_eq!(call.outer.outcome, Outcome::Complete);
        assert!(call.paired() && call.legs().is_some());
        // The task's trace reached the model.
        assert_eq!(call.outer.keys.trace.as_deref(), Some(TRACE));
    }
}
