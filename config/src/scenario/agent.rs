//! An agent: tasks of several turns, some of which call a tool.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Report;
use crate::scalar::{EnvName, HttpUrl};

/// An agent that calls the model several times in sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// Calls of one task, each after the answer of the one before. Default 5.
    #[serde(default = "default_turns")]
    #[schemars(range(min = 1, max = 1000))]
    pub turns: u32,
    /// Tasks per block.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tasks: u32,
    /// Tasks at a time. Default 1.
    #[serde(default = "default_at_once")]
    #[schemars(range(min = 1, max = 10_000))]
    pub concurrency: u32,
    /// The tools that the agent calls, over MCP. Absent: it calls the model only.
    #[serde(default)]
    pub tools: Option<Box<AgentTools>>,
    /// The chain's entry is an agent itself, and a task is one request to it. Absent: the entry is a model's API.
    #[serde(default)]
    pub endpoint: Option<AgentEndpoint>,
}

/// An agent that is measured from outside, as a black box: AgentCore Runtime, a LangGraph server. Its
/// answer may be JSON or an event stream of any kind; a call of it is over with its last byte. It has `path` or
/// `agentcore`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentEndpoint {
    /// The path at the chain's entry, in place of the chain's own, such as `/invocations` or `/run`. A task is one call.
    #[serde(default)]
    pub path: Option<String>,
    /// The agent is one of AgentCore's runtime. A task is a session of `turns` calls, one after the other; the first
    /// starts it cold. Cold and warm calls are told apart.
    #[serde(default)]
    pub agentcore: Option<AgentCore>,
    /// The body, as JSON; `{prompt}` in it becomes the prompt's words. Such as `{"prompt": "{prompt}"}`.
    pub body: String,
}

/// An agent of Bedrock AgentCore's runtime. Requests go out unsigned, as with `api: converse`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentCore {
    /// Its ARN, such as `arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/my_agent-AbCdEf1234`.
    pub runtime: String,
    /// The endpoint of the runtime, or its version. Default `DEFAULT`.
    #[serde(default = "default_qualifier")]
    pub qualifier: String,
}

/// The tools of an agent. Every request offers all that the server lists to the run's key. In the turns
/// named here the model is told which tool to call (`tool_choice`), in the others to call none, so that
/// every chain runs the same number of calls; the arguments are the model's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentTools {
    /// The MCP server (streamable HTTP, in the clear), with its path: a gateway for tools, or
    /// `http://ADDR/mcp` of `hopscope sim tools`.
    pub server: HttpUrl,
    /// The environment variable that holds the key of the server; sent as `Authorization: Bearer`. Absent: no key is sent.
    #[serde(default)]
    pub key_env: Option<EnvName>,
    /// The turns that call a tool.
    #[schemars(length(min = 1))]
    pub calls: Vec<AgentCall>,
    /// The check that a key which may not use some tools neither sees nor calls them. Absent: not checked.
    #[serde(default)]
    pub filter_check: Option<FilterCheck>,
}

/// One turn that calls a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentCall {
    /// The turn, from 1; not the last one, which would never read the tool's result.
    #[schemars(range(min = 1, max = 1000))]
    pub turn: u32,
    /// The tool's name, as the server lists it.
    pub tool: String,
    /// What the user says before the prompt's words, so that a model knows what to ask the tool for. Absent: nothing.
    #[serde(default)]
    pub say: Option<String>,
}

/// A key and what it may not use. Checked once, before anything is measured: each of the tools is looked
/// for in the key's list, and called by name with the examples of its schema as arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterCheck {
    /// The environment variable that holds the restricted key. Absent: no key is sent.
    #[serde(default)]
    pub key_env: Option<EnvName>,
    /// The tools that this key may not use.
    #[schemars(length(min = 1))]
    pub may_not: Vec<String>,
}

fn default_qualifier() -> String {
    "DEFAULT".to_owned()
}

fn default_turns() -> u32 {
    5
}

fn default_at_once() -> u32 {
    1
}

/// What must hold between the parts of an agent.
pub(super) fn check(agent: &Agent, report: &mut Report<'_>) {
    if let Some(endpoint) = &agent.endpoint {
        check_endpoint(agent, endpoint, report);
    }
    let Some(tools) = &agent.tools else { return };
    if tools.server.tls() {
        report.add(
            "agent.tools.server",
            "the load generator speaks cleartext HTTP only; put a tap or proxy with TLS on its upstream side before the server".to_owned(),
        );
    }
    for (at, call) in tools.calls.iter().enumerate() {
        let place = format!("agent.tools.calls[{at}].turn");
        if call.turn >= agent.turns {
            report.add(
                &place,
                format!(
                    "no turn after {} reads the tool's result: the task has {}; name an earlier turn, or raise `turns`",
                    call.turn, agent.turns
                ),
            );
        }
        if tools.calls[..at]
            .iter()
            .any(|other| other.turn == call.turn)
        {
            report.add(
                &place,
                format!(
                    "turn {} calls two tools; give each a turn of its own",
                    call.turn
                ),
            );
        }
    }
}

fn check_endpoint(agent: &Agent, endpoint: &AgentEndpoint, report: &mut Report<'_>) {
    if agent.tools.is_some() || (agent.turns != 1 && endpoint.agentcore.is_none()) {
        report.add(
            "agent.endpoint",
            "a black box takes its turns and calls its tools itself; write `turns: 1` and leave out `tools`"
                .to_owned(),
        );
    }
    if endpoint.path.is_some() == endpoint.agentcore.is_some() {
        report.add(
            "agent.endpoint",
            "an endpoint has either `path` or `agentcore`; write one of them".to_owned(),
        );
    }
    if let Some(path) = endpoint.path.as_ref().filter(|path| !path.starts_with('/')) {
        report.add(
            "agent.endpoint.path",
            format!("`{path}` is no path; begin it with /"),
        );
    }
    if let Some(agentcore) = &endpoint.agentcore {
        check_agentcore(agentcore, report);
    }
    let filled = endpoint.body.replace("{prompt}", "word");
    if serde_json::from_str::<serde_json::Value>(&filled).is_err() || filled == endpoint.body {
        report.add(
            "agent.endpoint.body",
            "the body is no JSON with `{prompt}` in it; write for example '{\"prompt\": \"{prompt}\"}'"
                .to_owned(),
        );
    }
}

fn check_agentcore(agent: &AgentCore, report: &mut Report<'_>) {
    let runtime = &agent.runtime;
    let parts: Vec<&str> = runtime.splitn(6, ':').collect();
    let named = match parts[..] {
        [
            "arn",
            partition,
            "bedrock-agentcore",
            region,
            account,
            resource,
        ] => {
            partition.starts_with("aws")
                && ![region, account].contains(&"")
                && resource.strip_prefix("runtime/").is_some_and(plain)
        }
        _ => false,
    };
    if !named {
        report.add(
            "agent.endpoint.agentcore.runtime",
            format!("`{runtime}` is no runtime of AgentCore; write its ARN (arn:aws:bedrock-agentcore:REGION:ACCOUNT:runtime/NAME)"),
        );
    }
    if !plain(&agent.qualifier) {
        report.add(
            "agent.endpoint.agentcore.qualifier",
            format!(
                "`{}` is no name of an endpoint; write for example DEFAULT",
                agent.qualifier
            ),
        );
    }
}

/// Letters, digits, `-` and `_`, at least one.
fn plain(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    !name.is_empty() && name.chars().all(allowed)
}
