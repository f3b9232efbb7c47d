//! What a user wants to serve: the decision guide leads from it to a configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::{Form, Report};

/// A workload, as its owner knows it before anything is built. Tokens of a call are those of the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Calls a second while there is traffic.
    #[schemars(range(min = 0.0001, max = 1_000_000.0))]
    pub rate: f64,
    /// Share of the prompt tokens that begin a prompt as an earlier one began: system prompts, history.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub repeated_prompt_share: f64,
    /// Tenants that must not see, or starve, each other.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tenants: u32,
    /// Each tenant needs a budget, permissions and limits of its own, below the account.
    #[serde(default)]
    pub tenant_governance: bool,
    /// Prompts may not leave one's own network, or there is none to leave by.
    #[serde(default)]
    pub data_sovereignty: bool,
    /// Scheduling, batching or quantisation of the engine must be one's own choice.
    #[serde(default)]
    pub engine_control: bool,
    /// New open models are wanted on the day they appear.
    #[serde(default)]
    pub newest_models: bool,
    /// The model is one's own, or fine-tuned.
    #[serde(default)]
    pub own_model: bool,
}

fn one() -> u32 {
    1
}

impl Form for Workload {
    const NAME: &'static str = "workload";

    fn check(&self, report: &mut Report<'_>) {
        if self.tenant_governance && self.tenants == 1 {
            report.add(
                "tenant_governance",
                "there is one tenant, so nothing is to be governed between tenants; set `tenants`, or leave this out"
                    .to_owned(),
            );
        }
    }
}
