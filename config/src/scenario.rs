//! A scenario: what load is put on a chain, in which order, and what makes a run valid.

mod agent;
mod check;
mod experiment;
mod limits;
mod probes;
mod profile;
mod tenants;
mod trace;
mod workload;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use agent::{Agent, AgentCall, AgentCore, AgentEndpoint, AgentTools, FilterCheck};
pub use experiment::{Action, ActionMethod, ActionRequest, Experiment, ExperimentKind, RaisedLoad};
pub use limits::VerdictLimits;
pub use probes::{
    Budget, CacheTimingProbe, GuardrailProbe, Limit, LimitProbe, Probes, SemanticProbe, SemanticSet,
};
pub use profile::{Profile, ProfilePhase};
pub use tenants::{Flood, Tenant, Tenants};
pub use trace::{TimeUnit, Trace};
pub use workload::{Prompts, SystemPrompts, Timeouts, Tokenizer, UsageProbe, Workload};

use crate::chain::ChainKind;
use crate::scalar::Period;

/// One scenario of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The name under which results are stored and shown. Letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The scenario's number in the plan, 1 to 9.
    #[schemars(range(min = 1, max = 9))]
    pub number: u8,
    /// The question that the scenario answers, in one sentence.
    pub question: String,
    /// What a call asks for.
    pub workload: Workload,
    /// The search for each chain's capacity, before anything else. Required by shares of capacity.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// Calls that arrive at a rate, whatever the chain does with them: the headline.
    #[serde(default)]
    pub open_loop: Option<OpenLoop>,
    /// A fixed number of callers, each of which waits for its answer. Cells beyond capacity are titled *saturated*.
    #[serde(default)]
    pub closed_loop: Option<ClosedLoop>,
    /// A course of load over time: bursts, ramps, long runs. Driven once a block, like every other cell.
    #[serde(default)]
    pub profile: Option<Profile>,
    /// The replay of a recorded course of calls. Driven once a block, like every other cell.
    #[serde(default)]
    pub trace: Option<Trace>,
    /// Several tenants at once: isolation, and what a noisy neighbour does.
    #[serde(default)]
    pub tenants: Option<Tenants>,
    /// How often the whole series is repeated, each time in a new random order. Fewer than ten: no interval is printed, and that is said.
    #[serde(default = "default_blocks")]
    #[schemars(range(min = 1, max = 1000))]
    pub blocks: u32,
    /// Load before each cell that is not counted: connections, caches, lazy imports.
    pub warmup: CellLength,
    /// The controls that are interleaved with the measured chains.
    #[serde(default)]
    pub controls: Vec<ChainKind>,
    /// The probe that measures the floor inside every block. Absent: no floor is printed, and the verdict says so.
    #[serde(default)]
    pub floor_probe: Option<FloorProbe>,
    /// The agent whose calls accumulate overhead. Absent: not measured.
    #[serde(default)]
    pub agent: Option<Agent>,
    /// An experiment of operation. Alone: nothing else may be measured while something happens to a chain.
    #[serde(default)]
    pub experiment: Option<Experiment>,
    /// When the client gives up.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Seeds arrivals, prompts and the order of cells. The same seed gives the same schedule.
    pub seed: u64,
    /// What makes a run valid.
    #[serde(default)]
    pub limits: VerdictLimits,
}

/// The search for the highest rate that a chain serves within its objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// What must hold at a rate for the rate to count as served.
    pub slo: Slo,
    /// The first rate, in calls per second.
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub start_rate: f64,
    /// The factor from one rate to the next while the objective holds; then the interval is halved.
    #[schemars(range(min = 1.01, max = 10.0))]
    pub step: f64,
    /// The rate at which the search ends, in calls per second; the capacity then is *at least* that.
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub max_rate: f64,
    /// How long each rate is held. Long enough for a queue to show.
    pub hold: Period,
    /// The search ends when the interval is this small a share of the rate.
    #[serde(default = "default_precision")]
    #[schemars(range(min = 0.01, max = 0.5))]
    pub precision: f64,
}

/// A service-level objective. Every part that is given must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// Bound of the 95th percentile of TTFT (first content-bearing event, from the intended send).
    #[serde(default)]
    pub ttft_p95: Option<Period>,
    /// Bound of the 95th percentile of added TTFT.
    #[serde(default)]
    pub added_ttft_p95: Option<Period>,
    /// Bound of the 95th percentile of a call's TPOT.
    #[serde(default)]
    pub tpot_p95: Option<Period>,
    /// The largest share of calls that may fail.
    #[serde(default = "default_errors")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_share_max: f64,
}

/// Load at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenLoop {
    /// Rates as shares of the chain's own capacity, above 0 and below 1.
    #[serde(default)]
    pub shares: Vec<f64>,
    /// A rate in calls per second that all chains get alike. Absent: none.
    #[serde(default)]
    pub common_rate: Option<f64>,
    /// Further rates in calls per second, one cell each: the steps of a break-even.
    #[serde(default)]
    pub rates: Vec<f64>,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How long one cell lasts.
    pub cell: CellLength,
    /// The most calls in flight; a call beyond it is lost and counted, never delayed. Default 10000.
    #[serde(default = "default_in_flight")]
    #[schemars(range(min = 1))]
    pub in_flight_max: u32,
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Independent: exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps. Hides queues; for instruments, not for headlines.
    Uniform,
    /// Gamma-distributed gaps: burstier than independent callers, or smoother.
    Gamma {
        /// Coefficient of variation of the gaps: 1 is Poisson, above it arrivals come in clusters.
        #[schemars(range(min = 0.05, max = 20.0))]
        cv: f64,
    },
}

/// Load by a fixed number of callers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// The numbers of callers, one cell each.
    #[schemars(length(min = 1), inner(range(min = 1, max = 100_000)))]
    pub concurrency: Vec<u32>,
    /// How long one cell lasts.
    pub cell: CellLength,
    /// How long a caller waits after its answer before it asks again. Default 0: at once.
    #[serde(default)]
    pub think: Period,
}

/// When a cell ends: after so much time or so many calls, whichever comes first. At least one is given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CellLength {
    /// No call starts after this time.
    pub duration: Option<Period>,
    /// No call starts after so many.
    pub calls: Option<u64>,
}

/// The probe that measures the floor on the same tap threads while a cell is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FloorProbe {
    /// The name of the chain of kind `relay` that is probed.
    pub chain: String,
    /// Calls per second; low, so that the probe does not become the load.
    #[schemars(range(min = 0.01, max = 1000.0))]
    pub rate: f64,
}

fn default_blocks() -> u32 {
    10
}

fn default_precision() -> f64 {
    0.1
}

fn default_errors() -> f64 {
    0.01
}

fn default_in_flight() -> u32 {
    10_000
}
