//! What an agent has in its hands: the offered tools, which turn calls which, and the doing of it.

use super::session::{Done, NoSession, Server, Session};
use crate::LoadError;
use crate::api::Api;
use crate::client::{CalledTool, Cut};
use crate::lanes::Lanes;
use config::scenario::{AgentTools, Timeouts};
use record::agent::{ToolOutcome, ToolUse};
use record::clock::now;
use rmcp::model::{JsonObject, Tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a turn does with tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) tool: String,
    pub(crate) say: Option<String>,
}

/// The tools of a cell's agents.
pub(crate) struct Kit {
    server: Server,
    /// The tools as a request offers them.
    pub(crate) offer: Value,
    steps: BTreeMap<u32, Step>,
}

/// Which model call a tool call belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) cell: u32,
    pub(crate) seq: u64,
    pub(crate) task: u32,
    pub(crate) turn: u16,
}

impl Kit {
    /// Lists the server's tools once and checks that those of the script are among them.
    pub(crate) fn prepare(
        tools: &AgentTools,
        timeouts: &Timeouts,
        lanes: &Lanes,
        api: Api,
    ) -> Result<Arc<Self>, LoadError> {
        let server = Server::new(tools, tools.key_env.as_ref(), timeouts)?;
        let asked = server.clone();
        let listed = lanes.block_on(async move { list(&asked).await });
        let listed = listed.unwrap_or_else(|| Err("the thread that asks is gone".to_owned()));
        let listed = listed.map_err(|what| server.failed(&what))?;
        if let Some(call) = tools
            .calls
            .iter()
            .find(|call| listed.iter().all(|tool| tool.name != call.tool))
        {
            let names: Vec<&str> = listed.iter().map(|tool| tool.name.as_ref()).collect();
            return Err(LoadError::Plan(format!(
                "tool server {}: offers no `{}` to this key, but [{}]; correct `agent.tools.calls`, or the key",
                server.url,
                call.tool,
                names.join(", ")
            )));
        }
        let step = |call: &config::scenario::AgentCall| Step {
            tool: call.tool.clone(),
            say: call.say.clone(),
        };
        Ok(Arc::new(Self {
            server,
            offer: api.offer(&listed),
            steps: tools.calls.iter().map(|c| (c.turn - 1, step(c))).collect(),
        }))
    }

    /// What turn `turn`, from 0, does with tools.
    pub(crate) fn step(&self, turn: u32) -> Option<&Step> {
        self.steps.get(&turn)
    }

    /// Opens a session for one worker. Without one its tool calls fail, each for itself.
    pub(crate) async fn hands(&self) -> Hands {
        Hands(Session::open(&self.server).await.map_err(|why| match why {
            NoSession::Denied => "no session: the key was refused".to_owned(),
            NoSession::Failed(_) => "no session".to_owned(),
        }))
    }
}

/// The tools that the server shows to its key.
pub(super) async fn list(server: &Server) -> Result<Vec<Tool>, String> {
    let session = Session::open(server).await.map_err(|why| match why {
        NoSession::Denied => "refuses the key".to_owned(),
        NoSession::Failed(what) => what,
    })?;
    let tools = session.list().await?;
    tools.ok_or_else(|| "refuses the list of its tools".to_owned())
}

/// One worker's session, or why there is none.
pub(crate) struct Hands(Result<Session, String>);

impl Hands {
    /// Does what the model asked for in a turn that was to call `step`'s tool: the rows, and the results for
    /// the model by the ids of its calls. One after the other, in the model's order.
    pub(crate) async fn work(
        &self,
        cut: &Cut,
        place: Place,
        step: &Step,
        calls: &[CalledTool],
    ) -> (Vec<ToolUse>, Vec<(String, String)>) {
        let (mut uses, mut results) = (Vec::new(), Vec::new());
        if calls.is_empty() {
            let done = nothing(ToolOutcome::NotCalled, "the model called no tool");
            uses.push(row(place, 0, &step.tool, &done, None));
        }
        for (index, call) in (0..).zip(calls) {
            let done = self.one(cut, step, call).await;
            let bytes = call.arguments.len() as u64;
            uses.push(row(place, index, &step.tool, &done, Some(bytes)));
            let text = done
                .text
                .unwrap_or_else(|| "the tool gave no result".to_owned());
            results.push((call.id.clone(), text));
        }
        (uses, results)
    }

    /// The rows of calls that the model made in a turn that was to call nothing: they are not followed, and such a
    /// turn is not the one that was asked for.
    pub(crate) fn unasked(place: Place, calls: &[CalledTool]) -> Vec<ToolUse> {
        let row = |(index, call): (u16, &CalledTool)| {
            let done = nothing(ToolOutcome::Unusable, "the model called a tool unasked");
            let bytes = call.arguments.len() as u64;
            row(place, index, &call.name, &done, Some(bytes))
        };
        (0..).zip(calls).map(row).collect()
    }

    async fn one(&self, cut: &Cut, step: &Step, call: &CalledTool) -> Done {
        if call.name != step.tool {
            return nothing(ToolOutcome::Unusable, "the model called another tool");
        }
        let Ok(arguments) = serde_json::from_str::<JsonObject>(&call.arguments) else {
            return nothing(ToolOutcome::Unusable, "the arguments are no JSON object");
        };
        match &self.0 {
            Ok(session) => session.call(cut, &step.tool, arguments).await,
            Err(why) => nothing(ToolOutcome::Transport, why),
        }
    }
}

/// A call of which nothing was sent.
fn nothing(outcome: ToolOutcome, fault: &str) -> Done {
    let at = now();
    Done {
        begin: at,
        end: at,
        outcome,
        fault: Some(fault.to_owned()),
        text: None,
    }
}

fn row(place: Place, index: u16, tool: &str, done: &Done, arguments: Option<u64>) -> ToolUse {
    ToolUse {
        cell: place.cell,
        seq: place.seq,
        task: place.task,
        turn: place.turn,
        index,
        tool: tool.to_owned(),
        begin: done.begin,
        end: done.end,
        outcome: done.outcome,
        fault: done.fault.clone(),
        argument_bytes: arguments,
        result_bytes: done.text.as_ref().map(|text| text.len() as u64),
    }
}
