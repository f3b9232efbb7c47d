//! A plan: what is to be built and measured, before money is spent. `hopscope plan` judges it.

mod benchmark;
mod check;
mod setup;
mod traffic;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::load::{Checked, from_text};

pub use benchmark::Benchmark;
pub use setup::{
    Agent, Commitment, Guardrail, Hardware, Import, KvType, Models, Parallelism, Provisioned,
    Purchase, Quantisation, Runtime, SelfHosted, Tier, Warm,
};
pub use traffic::{Expected, Quotas, Stated, Traffic};

/// A plan of the six configurations. Names of models and instances are those of the geometry table
/// (`config/geometry.yaml`) and of the price table (`config/prices/`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The AWS Region whose prices hold.
    pub region: String,
    /// The models.
    pub models: Models,
    /// The machines of the self-built configurations.
    pub hardware: Hardware,
    /// The traffic for which bills are computed.
    pub traffic: Traffic,
    /// The imported model of `baseline-plus`.
    pub import: Import,
    /// Provisioned Throughput of `baseline`. Absent: on demand.
    #[serde(default)]
    pub provisioned: Option<Provisioned>,
    /// The guardrail policies that each call passes. Default: none.
    #[serde(default)]
    pub guardrails: Vec<Guardrail>,
    /// The agent that makes the calls on AgentCore Runtime. Absent: calls are made without it.
    #[serde(default)]
    pub agent: Option<Agent>,
    /// The named set of fixed monthly prices: `plan` means the prices whose ids begin with `plan.`.
    pub fixed: String,
    /// The rates, in calls per second, at which bills are shown: rising.
    #[schemars(length(min = 1), inner(range(min = 0.0001, max = 1_000_000.0)))]
    pub rates: Vec<f64>,
    /// What the account may use. Absent parts are not checked, and that is said.
    #[serde(default)]
    pub quotas: Quotas,
    /// What `baseline-plus`, `a1`, `a2`, `b1` and `b2` are each expected to serve, until it is measured. Predictions that rest on it are marked as assumed. Absent: no prediction.
    #[serde(default)]
    pub expected: BTreeMap<String, Expected>,
    /// Figures that the plan states, to be held against the price table.
    #[serde(default)]
    pub stated: Stated,
    /// The measurements themselves. Absent: neither their time nor their cost is estimated.
    #[serde(default)]
    pub benchmark: Option<Benchmark>,
}

impl Plan {
    /// The plan that is part of the program: the one that this project was begun with, faults and all.
    ///
    /// # Errors
    /// None but by a mistake in the program: a test reads it.
    pub fn shipped() -> Result<Checked<Self>, ConfigError> {
        from_text("config/plan.yaml", include_str!("../plan.yaml"))
    }
}
