//! What counts as good enough: the thresholds by which a report answers its questions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::load::{Checked, Form, Report, from_text};
use crate::scalar::Period;

/// The thresholds of the ten answers. They are a choice and no measurement: set your own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Objectives {
    /// Single calls.
    pub serving: Serving,
    /// Whole tasks of an agent.
    pub agent: AgentObjective,
    /// A burst of calls.
    pub burst: BurstObjective,
    /// Tenants beside each other.
    pub tenants: TenantObjective,
    /// From which size on an added latency matters.
    pub overhead: OverheadObjective,
    /// What counts as stable.
    pub stability: StabilityObjective,
    /// From when on routing by cached prefixes is worth a look.
    pub routing: RoutingObjective,
}

/// What single calls must reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Serving {
    /// Callers at once at which this must hold. Where it was not driven, the next higher number that was counts.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub concurrency: u32,
    /// 95th percentile of TTFT, at most.
    pub ttft_p95: Period,
    /// Tokens a second of one stream after its first token, at least: 1 ÷ median TPOT.
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub tokens_per_second: f64,
    /// Share of calls without a complete answer, at most.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_share: f64,
}

/// What tasks of an agent must reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentObjective {
    /// Median time of a whole task, at most.
    pub task_p50: Period,
    /// Share of calls of an agent without a complete answer, at most.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_share: f64,
}

/// What a burst may do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstObjective {
    /// Share of the burst's calls without a complete answer, at most.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_share: f64,
    /// Median TTFT during the burst ÷ before it, at most.
    #[schemars(range(min = 1.0, max = 1_000_000.0))]
    pub ttft_ratio: f64,
}

/// What one tenant may do to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantObjective {
    /// What a limit may let through beyond it, as a share of the limit, at most.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub beyond_share: f64,
}

/// From which size on an added latency matters: both must be exceeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OverheadObjective {
    /// Difference of the medians of two chains.
    pub difference: Period,
    /// The same as a share of the slower chain's median.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
}

/// What counts as stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StabilityObjective {
    /// Share of calls without a complete answer, at most.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_share: f64,
    /// Calls below which nothing is said.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub calls: u64,
}

/// From when on routing by cached prefixes is worth a look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingObjective {
    /// Share of the prompt tokens that begin a prompt as an earlier one began, at least.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub repeated_prompt_share: f64,
}

impl Objectives {
    /// The thresholds that are part of the program, `config/objectives.yaml`.
    ///
    /// # Errors
    /// None but by a mistake in the program: a test reads it.
    pub fn shipped() -> Result<Checked<Self>, ConfigError> {
        from_text("config/objectives.yaml", include_str!("../objectives.yaml"))
    }
}

impl Form for Objectives {
    const NAME: &'static str = "objectives";

    fn check(&self, _: &mut Report<'_>) {}
}
