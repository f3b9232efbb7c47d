//! What an agent's tasks took: turns, whole tasks, model time and tool time, tool by tool.

use super::row::{Block, row};
use super::session;
use crate::gather::{Gathered, Joined};
use crate::model::{AgentRows, ToolRow};
use crate::quantile::Rules;
use record::agent::ToolUse;
use record::client::ClientCall;
use record::clock::Nanos;
use record::manifest::{Cell, Drive};
use std::collections::BTreeMap;

/// One turn: its model call, and the tool calls that followed from it.
struct Turn<'a> {
    call: &'a ClientCall,
    tools: Vec<&'a ToolUse>,
}

impl Turn<'_> {
    /// The answer was read in full, or the last result was there.
    fn end(&self) -> Nanos {
        self.tools
            .last()
            .map_or(self.call.end, |tool| tool.end.max(self.call.end))
    }

    /// Its model call and every tool call came to a proper end: times are values and no lower bounds.
    fn whole(&self) -> bool {
        !self.call.outcome.censored() && self.tools.iter().all(|tool| tool.outcome.ran())
    }

    fn model(&self) -> Nanos {
        self.call.end.saturating_sub(self.call.started)
    }

    fn tool(&self) -> Nanos {
        self.tools.iter().map(|tool| tool.latency()).sum()
    }
}

/// The turns of one cell, task by task, in their order.
fn tasks<'a>(calls: &'a [Joined], tools: &'a [ToolUse]) -> BTreeMap<u32, Vec<Turn<'a>>> {
    let mut by_call: BTreeMap<u64, Vec<&ToolUse>> = BTreeMap::new();
    for tool in tools {
        by_call.entry(tool.seq).or_default().push(tool);
    }
    for tools in by_call.values_mut() {
        tools.sort_by_key(|tool| tool.index);
    }
    let mut tasks: BTreeMap<u32, Vec<Turn<'_>>> = BTreeMap::new();
    for call in calls.iter().map(|joined| &joined.client) {
        if let Some((task, _)) = call.task {
            let tools = by_call.remove(&call.seq).unwrap_or_default();
            tasks.entry(task).or_default().push(Turn { call, tools });
        }
    }
    for turns in tasks.values_mut() {
        turns.sort_by_key(|turn| turn.call.seq);
    }
    tasks
}

/// The rows of one figure, a block a cell.
#[derive(Default)]
struct Figures {
    turn: Vec<Block>,
    task: Vec<Block>,
    model: Vec<Block>,
    tool: Vec<Block>,
}

impl Figures {
    fn add(&mut self, tasks: &BTreeMap<u32, Vec<Turn<'_>>>, turns: usize) {
        let [mut turn, mut task, mut model, mut tool] = [(); 4].map(|()| Block::default());
        for all in tasks.values() {
            for one in all {
                let lasted = one.end().saturating_sub(one.call.started);
                put(&mut turn, one.whole(), lasted);
            }
            // A task that was cut short has fewer turns: nothing of it is a value.
            let whole = all.len() == turns && all.iter().all(Turn::whole);
            let begin = all.first().map_or(0, |first| first.call.started);
            let end = all.last().map_or(0, Turn::end);
            put(&mut task, whole, end.saturating_sub(begin));
            put(&mut model, whole, all.iter().map(Turn::model).sum());
            put(&mut tool, whole, all.iter().map(Turn::tool).sum());
        }
        self.turn.push(turn);
        self.task.push(task);
        self.model.push(model);
        self.tool.push(tool);
    }
}

fn put(block: &mut Block, whole: bool, value: Nanos) {
    if whole {
        block.value(value as f64);
    } else {
        block.censor();
    }
}

/// The rows of an arm; `None` where it is not an agent's.
pub(super) fn rows(run: &Gathered, cells: &[&Cell], rules: &Rules) -> Option<AgentRows> {
    let Drive::Agent { turns, whole, .. } = cells.first()?.drive else {
        return None;
    };
    let mut figures = Figures::default();
    for cell in cells {
        let tasks = tasks(run.calls_of(cell.id), run.tools_of(cell.id));
        figures.add(&tasks, usize::from(turns));
    }
    let tools = tools(run, cells, rules);
    Some(AgentRows {
        // A black box shows neither its turns nor its model.
        turn: (!whole).then(|| row("turn", &figures.turn, rules)),
        task: row("task", &figures.task, rules),
        model: (!whole).then(|| row("model time of a task", &figures.model, rules)),
        tool: (!tools.is_empty()).then(|| row("tool time of a task", &figures.tool, rules)),
        sessions: session::rows(run, cells, rules),
        tools,
    })
}

/// A row for each tool.
fn tools(run: &Gathered, cells: &[&Cell], rules: &Rules) -> Vec<ToolRow> {
    let all = || cells.iter().flat_map(|cell| run.tools_of(cell.id));
    let mut outcomes: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for tool in all() {
        let of = outcomes.entry(tool.tool.as_str()).or_default();
        *of.entry(tool.outcome.name()).or_default() += 1;
    }
    let latency = |name: &str| {
        let block = |cell: &&Cell| {
            let mut block = Block::default();
            for tool in run.tools_of(cell.id).iter().filter(|t| t.tool == name) {
                put(&mut block, tool.outcome.ran(), tool.latency());
            }
            block
        };
        let blocks: Vec<Block> = cells.iter().map(block).collect();
        row("tool call", &blocks, rules)
    };
    outcomes
        .into_iter()
        .map(|(name, counts)| ToolRow {
            tool: name.to_owned(),
            outcomes: counts.into_iter().map(|(k, n)| (k.to_owned(), n)).collect(),
            latency: latency(name),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::agent::ToolOutcome;
    use record::client::CallOutcome;

    /// A call of 10 ns every 100 ns; turn 0 of each task is followed by two tool calls of 20 and 30 ns.
    fn call(task: u32, turn: u16) -> Joined {
        let seq = u64::from(task) * 2 + u64::from(turn);
        let started = 1_000 * u64::from(task) + 100 * u64::from(turn);
        Joined {
            client: ClientCall {
                task: Some((task, turn)),
                sent: Some(started),
                end: started + 10,
                status: Some(200),
                outcome: CallOutcome::Complete,
                ..ClientCall::unanswered(0, seq, started, started)
            },
            taps: None,
        }
    }

    fn tool(call: &ClientCall, index: u16, begin: u64, end: u64, outcome: ToolOutcome) -> ToolUse {
        ToolUse {
            cell: 0,
            seq: call.seq,
            task: call.task.unwrap().0,
            turn: 0,
            index,
            tool: "t".to_owned(),
            begin,
            end,
            outcome,
            fault: None,
            argument_bytes: None,
            result_bytes: None,
        }
    }

    #[test]
    fn turns_and_tasks_hold_their_tool_time_and_what_is_cut_is_no_value() {
        let mut calls: Vec<Joined> = (0..6).flat_map(|n| [call(n, 0), call(n, 1)]).collect();
        let mut tools = Vec::new();
        for joined in calls.iter().filter(|j| j.client.task.unwrap().1 == 0) {
            let at = joined.client.end;
            let last = match joined.client.task {
                Some((4, _)) => ToolOutcome::TimedOut,
                _ => ToolOutcome::ToolError,
            };
            tools.push(tool(&joined.client, 1, at + 25, at + 55, last));
            tools.push(tool(
                &joined.client,
                0,
                at + 2,
                at + 22,
                ToolOutcome::Answered,
            ));
        }
        // The last task never came to its second turn.
        calls.pop();
        let tasks = tasks(&calls, &tools);
        let mut figures = Figures::default();
        figures.add(&tasks, 2);
        let rules = Rules::default();
        let value = |blocks: &[Block]| row("x", blocks, &rules);
        let task = value(&figures.task);
        assert_eq!((task.samples, task.calls), (4, 4), "two of six were cut");
        assert_eq!(task.mean, Some(110.0));
        assert_eq!(value(&figures.model).mean, Some(20.0));
        assert_eq!(value(&figures.tool).mean, Some(50.0));
        let turn = value(&figures.turn);
        // Five of the first turns with their tools, five of the second ones without.
        assert_eq!(
            (turn.samples, turn.mean),
            (10, Some((5.0 * 65.0 + 5.0 * 10.0) / 10.0))
        );
    }
}
