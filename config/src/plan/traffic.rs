//! The load of a plan, what the account allows, and what the plan believes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The traffic for which a bill is computed. Shares are of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Calls per second while there is traffic.
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    pub rate: f64,
    /// Tokens of a call's prompt, the system prompt included.
    #[schemars(range(min = 1.0, max = 10_000_000.0))]
    pub input_tokens: f64,
    /// Tokens of a call's answer.
    #[schemars(range(min = 1.0, max = 10_000_000.0))]
    pub output_tokens: f64,
    /// The share of the month with traffic. Default 1: always.
    #[serde(default = "one")]
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub duty: f64,
    /// Peak rate ÷ mean rate, for which replicas are kept. Default 1: no peaks.
    #[serde(default = "one")]
    #[schemars(range(min = 1.0, max = 10_000.0))]
    pub burst_ratio: f64,
    /// The share of prompt tokens that the managed service's prompt cache serves. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub prompt_cache_share: f64,
    /// The share of prompt tokens that are written to that cache. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub cache_write_share: f64,
    /// The share of calls that the gateway's semantic cache answers (`a2`, `b2`). Default 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub semantic_hit_share: f64,
    /// The share of prompt tokens found in the engine's KV cache (`b1`, `b2`). It acts on cost through
    /// measured capacity alone. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub kv_hit_share: f64,
    /// Model calls of one task of the agent. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1.0, max = 10_000.0))]
    pub calls_per_task: f64,
    /// Characters of a token, by which guardrails are billed. Default 4: usual for English.
    #[serde(default = "four")]
    #[schemars(range(min = 0.1, max = 100.0))]
    pub chars_per_token: f64,
}

/// What the account may use of the default model and of AgentCore. Defaults differ by account: read
/// yours in Service Quotas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Calls per minute of the default model.
    #[schemars(range(min = 0.0, max = 1e12))]
    pub requests_per_minute: Option<f64>,
    /// Tokens per minute of the default model.
    #[schemars(range(min = 0.0, max = 1e15))]
    pub tokens_per_minute: Option<f64>,
    /// The `max_tokens` that calls state, which the service reserves up front. Absent: the answer's length.
    #[schemars(range(min = 1.0, max = 1e7))]
    pub max_tokens: Option<f64>,
    /// Sessions of AgentCore Runtime that may be active at once.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub runtime_sessions: Option<f64>,
    /// Sessions of AgentCore Runtime that may begin in a minute.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub runtime_new_sessions_per_minute: Option<f64>,
    /// Calls per second of one agent on AgentCore Runtime.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub runtime_calls_per_second: Option<f64>,
    /// Tool calls per second of AgentCore Gateway.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub gateway_calls_per_second: Option<f64>,
    /// Where these figures come from.
    pub source: Option<String>,
}

/// What one self-built configuration is expected to serve within its objective.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Calls per second of the whole deployment, of the plan's token counts.
    #[schemars(range(min = 0.000_001, max = 1_000_000.0))]
    pub rate: f64,
    /// The least that is thought possible.
    #[schemars(range(min = 0.000_001, max = 1_000_000.0))]
    pub low: f64,
    /// The most that is thought possible.
    #[schemars(range(min = 0.000_001, max = 1_000_000.0))]
    pub high: f64,
    /// On what the expectation rests.
    pub source: String,
}

/// Figures that a plan states, in US dollars a month. Each is compared with what the price table gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stated {
    /// All GPU instances.
    #[schemars(range(min = 0.0, max = 1e12))]
    pub gpu_month_usd: Option<f64>,
    /// The control plane of EKS.
    #[schemars(range(min = 0.0, max = 1e12))]
    pub eks_month_usd: Option<f64>,
}

fn one() -> f64 {
    1.0
}

fn four() -> f64 {
    4.0
}
