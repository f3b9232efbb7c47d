//! Agents on managed chains: tools over Converse, and sessions of AgentCore's runtime.

use super::{LIMITS, Service, measured, outcomes};
use crate::rig;
use record::agent::ToolOutcome;
use record::client::CallOutcome;
use record::rundir::RunDir;
use record::service::ServiceFault;
use sim::agentcore::{AgentCoreOptions, Form};
use sim::engine::EngineOptions;
use sim::truth::Log;
use std::future::pending;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const COLD: u64 = 400_000_000;
const TASKS: usize = 4;

/// A run of an agent with tools over Converse: tool calls in the first and the third of four turns.
fn with_tools(call_tools: bool) -> (tempfile::TempDir, RunDir, Runtime) {
    let (runtime, engine) = rig::engine(EngineOptions {
        ttft_us: 5_000,
        gap_us: 500,
        call_tools,
        ..EngineOptions::default()
    });
    let tools = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(tools::serve(
            listener,
            tools::ToolsOptions::default(),
            pending(),
        ));
        at
    });
    let service = Service::before(engine, |_| ());
    let text = format!(
        "name: agents\nnumber: 5\nquestion: Does it get through?\nworkload: {{input_tokens: 20, output_tokens: 64}}\nblocks: 1\nwarmup: {{calls: 1}}\nseed: 7\nagent:\n  turns: 4\n  tasks: {TASKS}\n  tools:\n    server: http://{tools}/mcp\n    calls:\n      - {{turn: 1, tool: web_search, say: What does a gateway add?}}\n      - {{turn: 3, tool: calculate}}\n{LIMITS}"
    );
    let (dir, run) = service.run(&text).unwrap();
    (dir, run, runtime)
}

#[test]
fn an_agent_calls_its_tools_over_converse() {
    let (_dir, run, runtime) = with_tools(false);
    let calls = measured(&run);
    assert_eq!(
        outcomes(&calls).get("complete"),
        Some(&(4 * TASKS)),
        "{calls:?}"
    );
    let (uses, _) = run.read_tools().unwrap();
    let did: Vec<(u16, &str)> = uses.iter().map(|u| (u.turn, u.tool.as_str())).collect();
    assert_eq!(did, [(0, "web_search"), (2, "calculate")].repeat(TASKS));
    assert!(
        uses.iter().all(|one| one.outcome == ToolOutcome::Answered),
        "{uses:?}"
    );
    // Each turn says everything before it again.
    let prompts: Vec<u32> = calls.iter().filter_map(|c| c.usage_prompt).collect();
    assert!(
        prompts
            .chunks(4)
            .all(|task| task.is_sorted() && task[3] > task[0] + 20),
        "{prompts:?}"
    );
    runtime.shutdown_background();
}

#[test]
fn a_tool_that_is_called_unasked_is_not_followed_and_spoils_the_task() {
    let (_dir, run, runtime) = with_tools(true);
    assert_eq!(
        outcomes(&measured(&run)).get("complete"),
        Some(&(4 * TASKS))
    );
    let (uses, _) = run.read_tools().unwrap();
    let unasked: Vec<u16> = uses
        .iter()
        .filter(|one| one.outcome == ToolOutcome::Unusable)
        .map(|one| one.turn)
        .collect();
    assert_eq!(unasked, [1, 3].repeat(TASKS), "{uses:?}");
    let report = report::build(&[run.root().to_owned()]).unwrap();
    let rows = report.arms[0].agent.as_ref().unwrap();
    assert_eq!(
        rows.task.samples, 0,
        "no task is the one that was asked for"
    );
    runtime.shutdown_background();
}

fn agentcore(options: AgentCoreOptions) -> (Runtime, SocketAddr) {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(sim::agentcore::serve(
            listener,
            options,
            Log::off(),
            pending(),
        ));
        at
    });
    (runtime, at)
}

fn options() -> AgentCoreOptions {
    AgentCoreOptions {
        cold_start_ms: COLD / 1_000_000,
        cold_start_sigma: 0.0,
        first_us: 10_000,
        gap_us: 1_000,
        pieces: 16,
        ..AgentCoreOptions::default()
    }
}

fn sessions(stream: bool) -> String {
    format!(
        "name: sessions\nnumber: 5\nquestion: What does a cold session cost?\nworkload: {{input_tokens: 20, output_tokens: 16, stream: {stream}}}\nblocks: 1\nwarmup: {{calls: 1}}\nseed: 7\nagent:\n  turns: 3\n  tasks: {TASKS}\n  concurrency: 2\n  endpoint:\n    agentcore: {{runtime: \"arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/my_agent-AbCdEf1234\"}}\n    body: '{{\"prompt\": \"{{prompt}}\"}}'\n{LIMITS}"
    )
}

#[test]
fn cold_and_warm_sessions_are_told_apart() {
    for (form, stream) in [
        (Form::Strings, true),
        (Form::Strands, true),
        (Form::Json, false),
    ] {
        let (runtime, at) = agentcore(AgentCoreOptions {
            agent: form,
            ..options()
        });
        let service = Service::before(at, |_| ());
        let (_dir, run) = service.run(&sessions(stream)).unwrap();
        let calls = measured(&run);
        assert_eq!(
            outcomes(&calls).get("complete"),
            Some(&(3 * TASKS)),
            "{form:?} {calls:?}"
        );
        let cold: Vec<Option<bool>> = calls.iter().map(|call| call.cold).collect();
        assert_eq!(cold, [Some(true), Some(false), Some(false)].repeat(TASKS));
        // By the service's own count; the preflight's session is one more.
        assert_eq!(
            rig::metric(at, "sim_agentcore_cold_starts_total"),
            (TASKS + 1) as f64
        );
        assert_eq!(
            rig::metric(at, "sim_agentcore_refused_total"),
            0.0,
            "one call of a session at a time"
        );
        for call in &calls {
            let (first, whole) = (call.ttft().unwrap(), call.e2e().unwrap());
            assert_eq!(first >= COLD, call.cold == Some(true), "{form:?} {call:?}");
            assert!(first <= whole);
        }
        let report = report::build(&[run.root().to_owned()]).unwrap();
        let rows = &report.arms[0].agent.as_ref().unwrap().sessions;
        let p50 = |name: &str| {
            let row = rows.iter().find(|row| row.leg == name).unwrap();
            (row.samples, row.p50.value().unwrap())
        };
        let (colds, cold) = p50("TTFT, cold session");
        let (warms, warm) = p50("TTFT, warm session");
        assert_eq!((colds, warms), (TASKS, 2 * TASKS));
        let apart = cold - warm;
        assert!((0.9..1.6).contains(&(apart / COLD as f64)), "{apart}");
        let markdown = report::render::markdown(&report);
        assert!(markdown.contains("E2E, warm session"), "{markdown}");
        assert!(report::render::html(&report).contains("TTFT, cold session"));
        runtime.shutdown_background();
    }
}

#[test]
fn a_session_that_is_refused_is_no_warm_one() {
    // The preflight's session and two more: those of the other tasks are refused, call by call.
    let (runtime, at) = agentcore(AgentCoreOptions {
        max_sessions: 3,
        ..options()
    });
    let service = Service::before(at, |_| ());
    let (_dir, run) = service.run(&sessions(true)).unwrap();
    let calls = measured(&run);
    let counts = outcomes(&calls);
    assert_eq!(counts.get("complete"), Some(&6), "{counts:?}");
    assert_eq!(counts.get("quota-exceeded"), Some(&6), "{counts:?}");
    for call in calls.iter().filter(|c| c.outcome != CallOutcome::Complete) {
        assert_eq!(call.outcome, CallOutcome::Service(ServiceFault::Quota));
        assert_eq!(call.status, Some(402));
        assert_ne!(call.cold, Some(false), "{call:?}");
    }
    runtime.shutdown_background();
}
