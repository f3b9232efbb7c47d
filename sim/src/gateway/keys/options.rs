//! Options of virtual keys.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Whose errors a gateway answers with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// `LiteLLM`'s proxy: `{"error":{"message","type","param","code"}}`; 422 for a spent budget (1.110: its
    /// `budget_exceeded_status_code`), 403 for a model, 400 for a blocked word; a tool that is not allowed
    /// is refused.
    #[default]
    Litellm,
    /// Bifrost's governance: `{"type","status_code","error":{"message"}}`; 402 for a spent budget, 403 for a
    /// model; a tool that is not allowed is taken out of the request, as its MCP rules list only those of
    /// the key.
    Bifrost,
}

/// Virtual keys and their limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct KeyOptions {
    /// JSON file of virtual keys: `{"keys":{"sk-a":{"tenant":"a","rpm":60,"tpm":10000,"budget_usd":1,
    /// "usd_per_million_in":0.5,"usd_per_million_out":1.5,"models":["m"],"tools":["search"],
    /// "guardrails":[{"name":"words","on":"input","words":["secret"],"latency_us":5000}]}}}`. Only the tenant
    /// is required; what is absent is not limited. The upstream gets `Bearer sim` instead of a key.
    #[arg(long, value_name = "FILE")]
    pub keys: Option<PathBuf>,
    /// Lets those in who present no key at all, without any limit. A key that is not known is refused all
    /// the same.
    #[arg(long)]
    pub keys_optional: bool,
    /// Whose errors are answered.
    #[arg(long, value_enum, default_value_t = Dialect::default())]
    pub dialect: Dialect,
    /// Status for a spent budget instead of the dialect's own: `LiteLLM` answered 429 before 422, and 400
    /// earlier still.
    #[arg(long, value_parser = clap::value_parser!(u16).range(400..=499))]
    pub budget_status: Option<u16>,
    /// Requests, tokens and money count towards limits only so long after the answer, ms, as where spend is
    /// written in batches. 0 counts requests as they are let in, exactly.
    #[arg(long, default_value_t = Self::default().limit_lag_ms, value_parser = clap::value_parser!(u64).range(..=3_600_000))]
    pub limit_lag_ms: u64,
    /// A request counts only so long after it was let in, ms, as where the check and the count are two steps:
    /// those that come meanwhile pass too. 0 makes them one step. Without effect beside a lag.
    #[arg(long, default_value_t = Self::default().limit_race_ms, value_parser = clap::value_parser!(u64).range(..=60_000))]
    pub limit_race_ms: u64,
    /// Gives the upstream a `cache_salt` of the tenant's own, as vLLM reads it, so that no tenant's prompts
    /// are cached for another.
    #[arg(long)]
    pub salt_by_tenant: bool,
    /// Length of the minute of the per-minute limits, ms; shorter for quick tests. It begins with the first
    /// request after the last one ended.
    #[arg(long, default_value_t = Self::default().limit_window_ms, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub limit_window_ms: u64,
}

impl Default for KeyOptions {
    /// Everyone may ask.
    fn default() -> Self {
        Self {
            keys: None,
            keys_optional: false,
            dialect: Dialect::default(),
            budget_status: None,
            limit_lag_ms: 0,
            limit_race_ms: 0,
            salt_by_tenant: false,
            limit_window_ms: 60_000,
        }
    }
}
