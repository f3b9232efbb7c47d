//! The replay of a recorded course of calls.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::default_in_flight;
use crate::scalar::Period;

/// A recorded course of calls: each is sent when the trace says, whatever became of those before, with a prompt
/// and an answer as long as the trace says. The lengths of the workload do not hold for it, and nothing is
/// left out as warm-up. It is driven once a block, like every other cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The file, relative to the scenario's. `*.csv`: Azure's columns `TIMESTAMP`, `ContextTokens`,
    /// `GeneratedTokens`. Anything else: lines of JSON with Mooncake's fields `timestamp`, `input_length`,
    /// `output_length` and, where prompts share beginnings, `hash_ids`. Sorted by time.
    pub file: PathBuf,
    /// How much faster than the trace it is replayed. Default 1.
    #[serde(default = "default_speed")]
    #[schemars(range(min = 0.001, max = 100_000.0))]
    pub speed: f64,
    /// Leaves out what came within this time of the trace's first call. In the trace's own time, as `duration`. Default 0.
    #[serde(default)]
    pub from: Period,
    /// Ends so long after `from`. Absent: with the trace.
    #[serde(default)]
    pub duration: Option<Period>,
    /// The unit of `timestamp` in lines of JSON. Default `ms`, as in Mooncake's.
    #[serde(default)]
    pub time_unit: TimeUnit,
    /// Tokens of the block that one of `hash_ids` names; the last block of a prompt holds what is left. Default
    /// 512, as in Mooncake's.
    #[serde(default = "default_block")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub block_tokens: u32,
    /// The most calls in flight; a call beyond it is lost and counted, never delayed. Default 10000.
    #[serde(default = "default_in_flight")]
    #[schemars(range(min = 1))]
    pub in_flight_max: u32,
}

/// The unit of a time that is written as a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Milliseconds.
    #[default]
    Ms,
    /// Seconds.
    S,
}

fn default_speed() -> f64 {
    1.0
}

fn default_block() -> u32 {
    512
}
