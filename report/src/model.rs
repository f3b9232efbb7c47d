//! The report as data: what the JSON form holds, and all that the other forms show.
//! Durations are nanoseconds.

mod compare;
mod course;
mod operation;
mod probe;

pub use compare::{Contrast, Difference, Perturbation};
pub use course::{Drift, Leak, LeakFinding};
pub use operation::{ExperimentRow, VariantRow, VariantSeen};
pub use probe::{
    CacheFinding, CacheShare, GuardrailFinding, LimitFinding, LimitVerdict, PolicyCount,
    ProbeFindings, SemanticFinding,
};

use record::agent::ToolFilter;
use record::manifest::{Calibration, ChainInfo, Drive, Host, ScenarioInfo, Workload};
use record::token_probe::TokenProbe;
use record::verdict::Verdict;
use serde::Serialize;
use std::path::PathBuf;

/// One printed statistic, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// The value; `few`: fewer than a hundred samples lie beyond it.
    Value {
        /// The value.
        value: f64,
        /// Rests on few samples.
        few: bool,
    },
    /// It is at least this: the rank falls on a call whose end was not seen.
    AtLeast(f64),
    /// Not printed, and why.
    Refused(String),
    /// Nothing was there to measure.
    NotMeasured,
}

impl Reading {
    /// The value, where there is one.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        if let Self::Value { value, .. } = self {
            Some(*value)
        } else {
            None
        }
    }
}

/// A statistic with its interval over blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The point.
    pub value: f64,
    /// 95 % over blocks; `None` with fewer than two.
    pub interval: Option<(f64, f64)>,
}

/// One leg of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LegRow {
    /// Its name, as in the definitions.
    pub leg: &'static str,
    /// Calls it was seen on.
    pub calls: usize,
    /// Values, over all of these calls.
    pub samples: usize,
    /// Median.
    pub p50: Reading,
    /// 95th percentile.
    pub p95: Reading,
    /// 99th percentile.
    pub p99: Reading,
    /// Mean of the values: what was lost is not in it.
    pub mean: Option<f64>,
    /// Median of the lower and of the upper bounds, by the same weights and losses as `p50`: how far it can be
    /// trusted. `None` where `p50` is no value.
    pub bounds: Option<(f64, f64)>,
    /// 95 % interval of the median over blocks; `None` where `p50` is no value. Its upper end is infinite, and
    /// null in JSON, where the medians of resamples fall on calls whose end was not seen.
    pub interval: Option<(f64, f64)>,
    /// Median of the same leg of the `relay` probe that ran in the same blocks.
    pub floor: Option<f64>,
    /// Values below zero.
    pub negative: usize,
}

/// The tasks of an agent. Cut or failed ones are lower bounds and rank at the top.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentRows {
    /// One turn: model call taken up → last byte, or the last tool's result. `None` of a black box.
    pub turn: Option<LegRow>,
    /// One whole task: first turn taken up → end of the last one.
    pub task: LegRow,
    /// Sum over a task's model calls. `None` of a black box.
    pub model: Option<LegRow>,
    /// Sum over a task's tool calls; `None` where the agent has no tools.
    pub tool: Option<LegRow>,
    /// TTFT and E2E of the calls that start a session of an agent service, and of those that find theirs there,
    /// apart; empty without sessions.
    pub sessions: Vec<LegRow>,
    /// Tool by tool.
    pub tools: Vec<ToolRow>,
}

/// One tool of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolRow {
    /// Its name.
    pub tool: String,
    /// How its calls ended.
    pub outcomes: Vec<(String, usize)>,
    /// From the hand-over to the MCP client to the result.
    pub latency: LegRow,
}

/// What became of the calls of an arm. Nothing is pooled silently.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Strata {
    /// Calls sent, warm-up apart.
    pub sent: usize,
    /// Calls that were due and not sent, since as many as may be were in flight: lower bounds in every figure
    /// of the client. `None` of a phase for which it is not known how many: those figures have no quantiles.
    pub unsent: Option<u64>,
    /// By client outcome.
    pub outcomes: Vec<(String, usize)>,
    /// By class of pairing; none of a chain without an inner tap.
    pub classes: Vec<(String, usize)>,
    /// Paired over pairable; `None` of a chain without an inner tap, or where nothing was pairable.
    pub pairing: Option<f64>,
    /// Calls that a tap had to send again: out of the legs.
    pub resent: usize,
    /// Calls whose text differs between the taps: no token legs.
    pub text_differs: usize,
    /// Text positions left out for back-pressure.
    pub pressured: u64,
    /// Calls on a fresh connection.
    pub fresh: usize,
    /// Calls for which the sum of legs is not the difference of the taps' durations: none, but for
    /// a mistake in the instrument.
    pub identity_broken: usize,
}

/// One chain, driven one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arm {
    /// The name of its run.
    pub run: String,
    /// The chain.
    pub chain: String,
    /// Its kind.
    pub kind: String,
    /// A part of the chain is a stand-in.
    pub simulated: bool,
    /// How it was driven.
    pub drive: Drive,
    /// The drive in words.
    pub label: String,
    /// Beyond its capacity: queueing is what is measured.
    pub saturated: bool,
    /// Blocks.
    pub blocks: usize,
    /// What became of the calls.
    pub strata: Strata,
    /// Legs; empty without an inner tap.
    pub legs: Vec<LegRow>,
    /// Legs of the calls that took several attempts, which are in no headline leg; empty without any.
    pub recovered: Vec<LegRow>,
    /// TTFT from the actual send, at the client.
    pub ttft: LegRow,
    /// Quantiles of TTFT from the actual send, rising: (share of calls, nanoseconds). Those that the rules of printing
    /// refuse, and those that fall on a call whose end was not seen, are left out.
    pub ttft_spread: Vec<(f64, f64)>,
    /// TTFT from the intended send.
    pub ttft_intended: LegRow,
    /// E2E from the actual send.
    pub e2e: LegRow,
    /// TPOT.
    pub tpot: LegRow,
    /// Calls answered in full a second of the measured time; where answers came more slowly than calls were
    /// due, of the time that they took.
    pub rate: Option<f64>,
    /// Completion tokens a second of that time, by the server's count.
    pub tokens_rate: Option<f64>,
    /// Calls a second that met the scenario's objective, each by itself; `None` where it has none.
    pub goodput: Option<f64>,
    /// Prompt tokens that the server served from a cache, of all prompt tokens, over the calls whose usage
    /// states both; `None` where none does.
    pub cached_share: Option<f64>,
    /// How many of the calls sent state both.
    pub cached_stated: u64,
    /// Answers in which another tenant's secret stood; `None` where none was looked for.
    pub leaked: Option<u64>,
    /// Content events inner ÷ outer, mean over calls.
    pub merge_ratio: Option<f64>,
    /// Events that the outer tap itself joined, a hundredth of all.
    pub joined_percent: Option<f64>,
    /// CPU seconds of the gateway an answered call, warm-up in both.
    pub gateway_cpu: Option<f64>,
    /// Memory of the gateway at a cell's end, the largest of its cells, bytes; `None` where it was not
    /// measured in every cell.
    pub gateway_memory: Option<u64>,
    /// Median of what the gateway claims as its overhead.
    pub claimed: Option<f64>,
    /// Added E2E of whole agent tasks: the sum over their own calls. A task that failed, is short of turns or
    /// has a call without a leg is a lower bound. `None` where no task has all of its legs.
    pub task_added: Option<LegRow>,
    /// Turns and tasks of an agent; `None` for arms of single calls.
    pub agent: Option<AgentRows>,
    /// What the components say of themselves.
    pub server: ServerSide,
    /// Median prompt tokens as the server counted.
    pub prompt_tokens: Option<f64>,
    /// A call of its first cell, in full; `None` where no tap saw it, and of a phase.
    pub sample: Option<SampledCall>,
}

/// The text of one call as it passed the taps: of its cell the one with the median TTFT.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampledCall {
    /// The call's key: cell and number.
    pub key: String,
    /// At the outer tap.
    pub outer: Vec<Passing>,
    /// At the inner one, of the request that served it; empty without.
    pub inner: Vec<Passing>,
}

/// So much text had come in by an instant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Passing {
    /// Nanoseconds since the request came in at the outer tap.
    pub since: f64,
    /// Bytes of text.
    pub bytes: u32,
}

/// What components say of themselves, beside what the taps and the calls' usage say.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServerSide {
    /// Hit rates, each with its source. Counters are of the whole cells, warm-up included.
    pub rates: Vec<HitRate>,
    /// The components whose metrics were read; empty where the chain names none.
    pub components: Vec<ComponentRow>,
    /// Calls that the counters counted: those of the cells, warm-up included. `None` of a phase.
    pub calls: Option<u64>,
    /// Calls of the floor probes beside them, which counters hold too where the probe leads to the same
    /// component.
    pub probes: Option<u64>,
    /// What there is for caches to serve; `None` of a phase, and where prompts are not the scenario's own
    /// (agents, traces).
    pub repetition: Option<Repetition>,
}

/// How much of a workload's prompts came before, by the recipe that they were made by: tokens under the
/// scenario's tokenizer, of all calls of the cells, warm-up included; what other cells had counts for nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Repetition {
    /// Prompt tokens.
    pub tokens: u64,
    /// Of these, tokens of a beginning that an earlier prompt of the cell had: what a prefix cache can serve.
    pub prefix_tokens: u64,
    /// Calls.
    pub calls: u64,
    /// Of these, calls whose whole prompt an earlier one of the cell had: what a cache of answers can serve.
    pub equal_calls: u64,
}

/// A share of what a cache served.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HitRate {
    /// Which cache, and by whom it is told.
    pub name: &'static str,
    /// Served from it.
    pub hits: f64,
    /// Of so many.
    pub of: f64,
    /// What both count.
    pub unit: &'static str,
    /// From where the numbers are.
    pub source: String,
    /// Nothing of the arm is missing from it: no look failed at a cell's begin or end, nothing started anew,
    /// no call kept its usage to itself.
    pub whole: bool,
    /// Calls or requests whose usage states both numbers, and all of them; `None` of what is counted otherwise.
    pub stated: Option<(u64, u64)>,
    /// Its 95 % interval, by resampling blocks; `None` of one block.
    pub interval: Option<(f64, f64)>,
}

impl HitRate {
    /// Hits ÷ all; `None` of none.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.of > 0.0).then(|| self.hits / self.of)
    }
}

/// What changes from one look to the next, within the measured windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gauge {
    /// Mean over the looks.
    pub mean: f64,
    /// The largest of them: what lay between two looks was not seen.
    pub max: f64,
    /// Looks.
    pub looks: usize,
}

/// One component by its own metrics. What its page had not is `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComponentRow {
    /// Its name in the chain.
    pub component: String,
    /// The product.
    pub kind: String,
    /// Requests that it counted; those that it passed on where it counts no other.
    pub requests: Option<f64>,
    /// Requests that lost their KV blocks.
    pub preemptions: Option<f64>,
    /// Requests being served.
    pub running: Option<Gauge>,
    /// Requests in the queue.
    pub waiting: Option<Gauge>,
    /// Share of the KV blocks in use.
    pub kv_usage: Option<Gauge>,
    /// Looks at it.
    pub looks: usize,
    /// Looks that failed: nothing is known of them.
    pub gaps: usize,
    /// Restarts seen.
    pub restarts: Option<u32>,
    /// The longest look, nanoseconds.
    pub longest_look: Option<f64>,
}

/// A run that the report is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunInfo {
    /// Its directory's name; its path where another run of the report has that name.
    pub name: String,
    /// Its directory: in no output.
    #[serde(skip)]
    pub path: PathBuf,
    /// Version of hopscope that made it.
    pub version: String,
    /// When.
    pub started: String,
    /// Where.
    pub host: Host,
    /// The parts of the chain had no CPUs of their own.
    pub shared_cpu: bool,
    /// The scenario that it was made by; `None` where neither its manifest nor its scenario file tells.
    pub scenario: Option<ScenarioInfo>,
    /// What was asked for.
    pub workload: Workload,
    /// The chains.
    pub chains: Vec<ChainInfo>,
    /// Its verdict.
    pub verdict: Option<Verdict>,
    /// The calibration it rests on.
    pub calibration: Option<Calibration>,
    /// What the check of a tool filter found; `None` where none was asked for.
    pub tool_filter: Option<ToolFilter>,
    /// What the usage probe found, one for each reference; empty where none was asked for.
    pub token_probes: Vec<TokenProbe>,
    /// CPU seconds of the load generator that reading the components' metrics took; `None` where none was
    /// named.
    pub scrape_cpu: Option<f64>,
    /// What probes of tenants showed; `None` where none were made.
    pub probes: Option<ProbeFindings>,
}

/// The report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this form.
    pub format: u32,
    /// Some figure is of a stand-in.
    pub simulated: bool,
    /// The runs.
    pub runs: Vec<RunInfo>,
    /// Every arm, gateways first.
    pub arms: Vec<Arm>,
    /// What the taps' insertion did.
    pub perturbations: Vec<Perturbation>,
    /// How chains differ, two by two.
    pub contrasts: Vec<Contrast>,
    /// What drifts, or does not, over long courses.
    pub drifts: Vec<Drift>,
    /// Experiments of operation.
    pub experiments: Vec<ExperimentRow>,
    /// Variants of an engine; empty where no table of them was given.
    pub variants: Vec<VariantRow>,
    /// What a component keeps over long courses, or does not.
    pub leaks: Vec<Leak>,
    /// What could not be read or used.
    pub losses: Vec<String>,
}
