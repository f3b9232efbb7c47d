//! The measurements that a plan wants, and what they may cost.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The runs to be made, and how fast the services are thought to answer. `hopscope plan` estimates from it how long
/// they take and what they cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Benchmark {
    /// The matrix of runs. Relative to this file.
    pub matrix: PathBuf,
    /// Seconds to a call's first token, for calls of a fixed number of callers.
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub ttft_seconds: f64,
    /// Tokens of one answer per second after it.
    #[schemars(range(min = 0.01, max = 1_000_000.0))]
    pub tokens_per_second: f64,
    /// What the runs may cost, in US dollars. Absent: a cost is told and not judged.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e12))]
    pub budget_usd: Option<f64>,
    /// How many days they may take. Absent: a time is told and not judged.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub days: Option<f64>,
    /// On what the two speeds rest.
    pub source: String,
}
