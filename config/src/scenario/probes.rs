//! Probes of tenants: what limits let through, what one can learn of another, what guardrails do.
//!
//! They run once for each chain before anything else is measured, one after the other, and never beside a
//! cell.

mod check;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::{EnvName, HeaderName, Period};

pub(super) use check::check;

/// What is tried with tenants' keys, apart from load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Probes {
    /// Keys that are driven beyond a limit.
    pub limits: Vec<LimitProbe>,
    /// Whether a tenant can tell that another's prompt is cached.
    pub cache_timing: Vec<CacheTimingProbe>,
    /// Whether guardrails block what they must, and only that, and what they cost.
    pub guardrails: Vec<GuardrailProbe>,
    /// Whether a cache that goes by meaning knows what it should, and only that.
    pub semantic: Vec<SemanticProbe>,
}

/// A key that is driven beyond its limit: how much more is let through than the limit says.
///
/// For each number of callers the key rests for one window, is driven until it was refused so often or the
/// window is over, and is then tried until it passes again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitProbe {
    /// Its name in results. Letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The chains it is for: names of those whose gateway holds the limit. Default: every chain that is no control.
    #[serde(default)]
    pub chains: Vec<String>,
    /// The environment variable that holds the key, in place of the chain's. Give the probe a key of its
    /// own: what it uses up is gone for whoever shares it.
    #[serde(default)]
    pub key_env: Option<EnvName>,
    /// Headers in addition to the chain's. Never secrets.
    #[serde(default)]
    pub headers: BTreeMap<HeaderName, String>,
    /// The limit, as the gateway is configured.
    pub limit: Limit,
    /// The time for which the limit is: a minute for requests or tokens a minute, the time after which a
    /// budget is renewed. Absent: a budget that is never renewed, which can be used up once.
    #[serde(default)]
    pub window: Option<Period>,
    /// How many callers at once, one drive each.
    #[schemars(length(min = 1), inner(range(min = 1, max = 1000)))]
    pub concurrency: Vec<u32>,
    /// A drive ends after so many refusals. Default 50.
    #[serde(default = "default_refusals")]
    #[schemars(range(min = 1, max = 10_000))]
    pub refusals: u32,
    /// The longest that a drive lasts; a window that is shorter ends it. Default 60 s.
    #[serde(default = "default_lasts")]
    pub lasts: Period,
    /// How long from one try to the next, after the drive, until a call passes again: the resolution of that
    /// time. Default: a fiftieth of the window.
    #[serde(default)]
    pub poll: Option<Period>,
}

/// What a key may use.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Calls in each window.
    Requests(#[schemars(range(min = 1, max = 1_000_000))] u64),
    /// Prompt and completion tokens in each window, as the answers' usage counts them.
    Tokens(#[schemars(range(min = 1, max = 1_000_000_000))] u64),
    /// Money, by the prices at which the gateway counts.
    Usd(Budget),
}

/// A budget, and what tokens cost in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// USD.
    pub amount: f64,
    /// USD for a million prompt tokens.
    pub per_million_in: f64,
    /// USD for a million completion tokens.
    pub per_million_out: f64,
}

/// Two tenants: one has a long prompt answered, the other sends the same prompt and one that nobody has
/// ever sent, in random order, and compares the times to the first token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheTimingProbe {
    /// The chains it is for. Default: every chain that is no control.
    #[serde(default)]
    pub chains: Vec<String>,
    /// The tenant whose prompts are looked for.
    pub primer: String,
    /// The tenant that looks.
    pub observer: String,
    /// Tokens of each prompt under the scenario's tokenizer.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub prompt_tokens: u32,
    /// Pairs of calls. A small difference needs many.
    #[schemars(range(min = 8, max = 2_000))]
    pub pairs: u32,
    /// How sure it must be before a difference counts as shown, below 1. Default 0.99.
    #[serde(default = "default_confidence")]
    pub confidence: f64,
}

/// A tenant with guardrails, prompts that they must block and prompts that they must let pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GuardrailProbe {
    /// The chains it is for. Default: every chain that is no control.
    #[serde(default)]
    pub chains: Vec<String>,
    /// The tenant under the policy.
    pub tenant: String,
    /// A tenant of the same chain without guardrails: what the policy costs is told against it, and a
    /// refusal that the gateway does not name is a block only where this one's call passes. Absent: neither.
    #[serde(default)]
    pub unguarded: Option<String>,
    /// Prompts that must be blocked.
    #[serde(default)]
    pub block: Vec<String>,
    /// Prompts that must pass.
    #[serde(default)]
    pub pass: Vec<String>,
    /// How often each prompt is sent. Default 3.
    #[serde(default = "default_repeats")]
    #[schemars(range(min = 1, max = 1000))]
    pub repeats: u32,
}

/// Prompts for a semantic cache. Which answer came from it is told by the response id, which a cache gives back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SemanticProbe {
    /// The chains it is for. Default: every chain that is no control.
    #[serde(default)]
    pub chains: Vec<String>,
    /// The tenant that asks.
    pub tenant: String,
    /// What is asked.
    #[schemars(length(min = 1))]
    pub sets: Vec<SemanticSet>,
    /// How long before each prompt a cache may take to remember the one before it. Default 500 ms.
    #[serde(default = "default_wait")]
    pub wait: Period,
}

/// A prompt, others that mean the same, and near misses that look alike and want another answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SemanticSet {
    /// Asked first: its answer is to be remembered.
    pub ask: String,
    /// Prompts that may be answered from the cache.
    #[serde(default)]
    pub same: Vec<String>,
    /// Prompts that must not: another number, name, negation.
    #[serde(default)]
    pub near: Vec<String>,
}

fn default_wait() -> Period {
    Period::millis(500)
}

fn default_refusals() -> u32 {
    50
}

fn default_lasts() -> Period {
    Period::secs(60)
}

fn default_confidence() -> f64 {
    0.99
}

fn default_repeats() -> u32 {
    3
}
