//! Agents with tools: five turns, three of which call the bundled tool server, through taps and a gateway.

use crate::rig::{Rig, chain, free};
use config::Scenario;
use loadgen::progress::Silent;
use loadgen::{LoadError, Plan, PlannedChain, PlannedTap, Stop};
use record::agent::ToolOutcome;
use record::client::CallOutcome;
use record::rundir::RunDir;
use report::{AgentRows, Report};
use sim::engine::EngineOptions;
use sim::gateway::GatewayOptions;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tools::ToolsOptions;

// Cargo sets these for every test; what is in them is of no importance.
const KEY: &str = "CARGO_PKG_NAME";
const RESTRICTED: &str = "CARGO_PKG_VERSION";
const TASKS: usize = 4;

fn restricted(latency_ms: u64) -> ToolsOptions {
    let line = |variable: &str, tools: &str| {
        let key = std::env::var(variable).unwrap();
        format!("{key}={tools}").parse().unwrap()
    };
    ToolsOptions {
        allow: vec![
            line(KEY, "web_search,database_query,calculate"),
            line(RESTRICTED, "web_search,calculate"),
        ],
        latency_ms,
        ..ToolsOptions::default()
    }
}

/// A tool server on the runtime.
fn tools(runtime: &tokio::runtime::Runtime, options: ToolsOptions) -> SocketAddr {
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(tools::serve(listener, options, std::future::pending()));
        at
    })
}

fn scenario(server: SocketAddr, second: &str) -> String {
    format!(
        "
name: agents
number: 5
question: Is tool time apart from model time?
workload: {{input_tokens: 20, output_tokens: 64}}
blocks: 1
warmup: {{calls: 1}}
agent:
  turns: 5
  tasks: {TASKS}
  tools:
    server: http://{server}/mcp
    key_env: {KEY}
    calls:
      - {{turn: 1, tool: web_search, say: What does a gateway add?}}
      - {{turn: 2, tool: {second}}}
      - {{turn: 4, tool: calculate}}
    filter_check: {{key_env: {RESTRICTED}, may_not: [database_query]}}
seed: 7
"
    )
}

/// A run, in a directory that lives as long as the first part.
fn run(server: SocketAddr, second: &str) -> Result<(tempfile::TempDir, RunDir), LoadError> {
    let engine = EngineOptions {
        ttft_us: 5_000,
        gap_us: 1_000,
        ..EngineOptions::default()
    };
    let rig = Rig::start(engine, GatewayOptions::default());
    let dir = tempfile::tempdir().unwrap();
    let text = scenario(server, second);
    let scenario = config::from_text::<Scenario>(Path::new("agents.yaml"), &text).unwrap();
    let out = dir.path().join("run");
    let mut plan = Plan::new("agents", &out, scenario.into_inner(), text);
    let mut driven = chain(&[("outer", rig.outer, free()), ("inner", free(), free())]);
    driven.name = "rig".to_owned();
    plan.chains.push(PlannedChain {
        chain: driven,
        text: "name: rig".to_owned(),
        base: dir.path().to_owned(),
        pids: vec![std::process::id()],
        injected: None,
    });
    plan.taps.push(PlannedTap {
        records: rig.records.path().join("taps/tap"),
        pid: None,
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default())?;
    Ok((dir, run))
}

fn agent(report: &Report) -> &AgentRows {
    report.arms[0].agent.as_ref().unwrap()
}

#[test]
fn tool_time_is_told_apart_from_model_time() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut tasks = Vec::new();
    for latency_ms in [0, 50] {
        let server = tools(&runtime, restricted(latency_ms));
        let (_dir, run) = run(server, "database_query").unwrap();
        every_turn_is_there(&run, latency_ms);
        let report = report::build(&[run.root().to_owned()]).unwrap();
        assert!(report.losses.is_empty(), "{:?}", report.losses);
        let rows = agent(&report);
        let p50 = |row: &report::LegRow| row.p50.value().unwrap() / 1e6;
        let (turn, model) = (rows.turn.as_ref().unwrap(), rows.model.as_ref().unwrap());
        assert_eq!((rows.task.samples, turn.samples), (TASKS, 5 * TASKS));
        assert_eq!(report.arms[0].task_added.as_ref().unwrap().samples, TASKS);
        let tool = rows.tool.as_ref().unwrap();
        // Four tasks carry no tail.
        assert!(rows.task.p95.value().is_none() && tool.p99.value().is_none());
        assert_eq!(rows.tools.len(), 3);
        let markdown = report::render::markdown(&report);
        assert!(markdown.contains("holds: a key that may not use database_query saw 2 of 3 tools"));
        assert!(markdown.contains("tool time of a task") && markdown.contains("Tool `calculate`"));
        assert!(report::render::html(&report).contains("tool time of a task"));
        tasks.push((p50(&rows.task), p50(model), p50(tool)));
    }
    let ((task, model, tool), (slow_task, slow_model, slow_tool)) = (tasks[0], tasks[1]);
    // Three calls of 50 ms each; other work on the machine moves all of them.
    assert!(slow_tool >= 150.0 && slow_tool - tool > 130.0, "{tasks:?}");
    assert!((slow_model - model).abs() < 75.0, "{tasks:?}");
    for (task, model, tool) in [(task, model, tool), (slow_task, slow_model, slow_tool)] {
        assert!(
            task >= model.max(tool) && task < (model + tool) * 1.5 + 20.0,
            "{tasks:?}"
        );
    }
    runtime.shutdown_background();
}

/// Calls, tool calls and what went over the wire agree with the script and with each other.
fn every_turn_is_there(run: &RunDir, latency_ms: u64) {
    let (mut calls, _) = run.read_calls().unwrap();
    calls.retain(|call| call.task.is_some());
    calls.sort_by_key(|call| call.seq);
    assert_eq!(calls.len(), 5 * TASKS);
    assert!(
        calls.iter().all(|c| c.outcome == CallOutcome::Complete),
        "{calls:?}"
    );
    let (uses, lost) = run.read_tools().unwrap();
    assert!(lost.is_empty() && run.root().join("tools.parquet").is_file());
    let script = [(0, "web_search"), (1, "database_query"), (3, "calculate")];
    for task in 0..u32::try_from(TASKS).unwrap() {
        let of: Vec<_> = uses.iter().filter(|one| one.task == task).collect();
        let did: Vec<(u16, &str)> = of.iter().map(|u| (u.turn, u.tool.as_str())).collect();
        assert_eq!(did, script);
    }
    let (exchanges, _) = run.read_exchanges().unwrap();
    let bytes = |seq: u64| {
        let key = format!("{}-{seq}", calls[0].cell);
        let of = |e: &&record::exchange::Exchange| e.keys.client.as_ref() == Some(&key);
        exchanges.iter().find(of).unwrap().request.bytes
    };
    for one in &uses {
        assert_eq!((one.outcome, &one.fault), (ToolOutcome::Answered, &None));
        assert!(one.latency() >= latency_ms * 1_000_000, "{one:?}");
        let at = usize::try_from(one.seq).unwrap();
        let (call, next) = (&calls[at], &calls[at + 1]);
        assert_eq!(call.task, Some((one.task, one.turn)));
        assert!(call.end <= one.begin && one.end <= next.started, "{one:?}");
        // The next turn's request holds the result.
        let more = bytes(one.seq + 1).saturating_sub(bytes(one.seq));
        assert!(more > one.result_bytes.unwrap(), "{more} {one:?}");
    }
}

#[test]
fn a_filter_that_does_not_work_is_found_out() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let broken = ToolsOptions {
        ignore_allow: true,
        ..restricted(0)
    };
    let (_dir, run) = run(tools(&runtime, broken), "database_query").unwrap();
    let filter = run.manifest().unwrap().tool_filter.unwrap();
    assert!(!filter.holds());
    assert_eq!((filter.offered, filter.seen), (3, Some(3)));
    assert_eq!(
        (&filter.listed, &filter.ran),
        (&filter.may_not, &filter.may_not)
    );
    let report = report::build(&[run.root().to_owned()]).unwrap();
    assert!(report::render::markdown(&report).contains("FAILS: a key that may not use"));
    runtime.shutdown_background();
}

#[test]
fn tools_that_are_not_there_end_the_run_before_anything_is_measured() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = tools(&runtime, restricted(0));
    let error = run(server, "shell").unwrap_err().to_string();
    assert!(
        error.contains("offers no `shell`") && error.contains("web_search"),
        "{error}"
    );
    let error = run(free(), "calculate").unwrap_err().to_string();
    assert!(error.contains("is it started"), "{error}");
    runtime.shutdown_background();
}

const BLACK_BOX: &str = "
name: black-box
number: 5
question: How long does a task of this agent take?
workload: {input_tokens: 20, output_tokens: 16}
blocks: 1
warmup: {calls: 1}
agent: {turns: 1, tasks: 5, endpoint: {path: /run, body: '{\"input\": \"{prompt}\"}'}}
seed: 7
";

#[test]
fn an_agent_of_its_own_is_measured_as_a_black_box() {
    use std::io::Write as _;
    let (at, seen) = crate::rig::upstream(|socket, _| {
        std::thread::sleep(std::time::Duration::from_millis(60));
        let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{\"answer\":\"so\"}";
        socket.write_all(answer.as_bytes()).unwrap();
    });
    let dir = tempfile::tempdir().unwrap();
    let scenario = config::from_text::<Scenario>(Path::new("box.yaml"), BLACK_BOX).unwrap();
    let out = dir.path().join("run");
    let mut plan = Plan::new("box", &out, scenario.into_inner(), BLACK_BOX.to_owned());
    // Its taps are not started: the agent itself listens where the outer one would.
    let chain = chain(&[("outer", at, free()), ("inner", free(), free())]);
    plan.chains.push(PlannedChain {
        chain,
        text: "name: rig".to_owned(),
        base: dir.path().to_owned(),
        pids: Vec::new(),
        injected: None,
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    let report = report::build(&[run.root().to_owned()]).unwrap();
    assert_eq!(report.arms[0].label, "agent as a black box, 1 at once");
    let rows = agent(&report);
    // Neither turns nor the model nor tools can be seen from outside.
    assert!(rows.turn.is_none() && rows.model.is_none() && rows.tools.is_empty());
    assert_eq!(rows.task.samples, 5);
    let task = rows.task.p50.value().unwrap() / 1e6;
    assert!((60.0..400.0).contains(&task), "{task}");
    assert!(!run.root().join("tools.parquet").exists());
    let asked: Vec<(String, Vec<u8>)> = seen.try_iter().collect();
    assert_eq!(asked.len(), 6, "the preflight and five tasks");
    for (head, body) in asked {
        assert!(head.starts_with("POST /run HTTP/1.1"), "{head}");
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(body["input"].as_str().unwrap().split(' ').count() >= 16);
    }
}
