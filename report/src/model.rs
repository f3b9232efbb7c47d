//! The report as data: what the JSON form holds, and all that the other forms show.
//! Durations are nanoseconds.

mod probe;

pub use probe::{
    CacheFinding, GuardrailFinding, LimitFinding, LimitVerdict, PolicyCount, ProbeFindings,
};

use record::agent::ToolFilter;
use record::manifest::{Calibration, ChainInfo, Drive, Host, Workload};
use record::verdict::Verdict;
use serde::Serialize;

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
    /// Mean.
    pub mean: Option<f64>,
    /// Median of the lower and of the upper bounds: how far the median can be trusted.
    pub bounds: Option<(f64, f64)>,
    /// 95 % interval of the median over blocks.
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
    /// By client outcome.
    pub outcomes: Vec<(String, usize)>,
    /// By class of pairing.
    pub classes: Vec<(String, usize)>,
    /// Paired over pairable.
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
    /// TTFT from the intended send.
    pub ttft_intended: LegRow,
    /// E2E from the actual send.
    pub e2e: LegRow,
    /// TPOT.
    pub tpot: LegRow,
    /// Calls answered in full a second of the measured time.
    pub rate: Option<f64>,
    /// Completion tokens a second of the measured time, by the server's count.
    pub tokens_rate: Option<f64>,
    /// Calls a second that met the scenario's objective, each by itself; `None` where it has none.
    pub goodput: Option<f64>,
    /// Prompt tokens that the server served from a cache, of all prompt tokens; `None` where it does
    /// not say.
    pub cached_share: Option<f64>,
    /// Answers in which another tenant's secret stood; `None` where none was looked for.
    pub leaked: Option<u64>,
    /// Content events inner ÷ outer, mean over calls.
    pub merge_ratio: Option<f64>,
    /// Events that the outer tap itself joined, a hundredth of all.
    pub joined_percent: Option<f64>,
    /// CPU seconds of the gateway an answered call, warm-up in both.
    pub gateway_cpu: Option<f64>,
    /// Memory of the gateway at a cell's end, the largest of its cells, bytes.
    pub gateway_memory: Option<u64>,
    /// Median of what the gateway claims as its overhead.
    pub claimed: Option<f64>,
    /// Added E2E of whole agent tasks: the sum over their own calls.
    pub task_added: Option<LegRow>,
    /// Turns and tasks of an agent; `None` for arms of single calls.
    pub agent: Option<AgentRows>,
    /// Median prompt tokens as the server counted; arms that disagree are not compared.
    pub prompt_tokens: Option<f64>,
}

/// What inserting the taps did: E2E tapped − untapped, against what the taps account for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Perturbation {
    /// The name of its run.
    pub run: String,
    /// The chain.
    pub chain: String,
    /// The drive in words.
    pub label: String,
    /// Difference of the medians of E2E, with its interval.
    pub difference: Option<Estimate>,
    /// Taps' own delay and floor: what the difference should be.
    pub expected: Option<f64>,
    /// Difference − expected: the perturbation.
    pub excess: Option<f64>,
    /// Why it is not given.
    pub refused: Option<String>,
}

/// A figure over the phases of a steady course of load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// The name of its run.
    pub run: String,
    /// The chain.
    pub chain: String,
    /// What is looked at.
    pub figure: &'static str,
    /// Phases that it could be read in.
    pub phases: usize,
    /// By how much it changes an hour: nanoseconds, or a share.
    pub slope_per_hour: f64,
    /// Probability of as clear a trend where there is none.
    pub p: f64,
}

/// A run that the report is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunInfo {
    /// Its directory's name.
    pub name: String,
    /// Version of hopscope that made it.
    pub version: String,
    /// When.
    pub started: String,
    /// Where.
    pub host: Host,
    /// The parts of the chain had no CPUs of their own.
    pub shared_cpu: bool,
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
    /// What drifts, or does not, over long courses.
    pub drifts: Vec<Drift>,
    /// What could not be read or used.
    pub losses: Vec<String>,
}
