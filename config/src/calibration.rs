//! What `calibrate` runs, and the bound beyond which the instrument is not fit.

mod check;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::Period;
use crate::standin::{EngineScript, StreamMode};

/// One calibration: a gateway stand-in with known delays between two taps, measured and compared with its own log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// The numbers of streams at once, one series each.
    #[schemars(length(min = 1), inner(range(min = 1, max = 10_000)))]
    pub streams: Vec<u32>,
    /// How the stand-in forwards, one series each.
    #[schemars(length(min = 1))]
    pub modes: Vec<StreamMode>,
    /// Content events that the mode `merge` joins into one.
    #[serde(default = "default_merge")]
    #[schemars(range(min = 2, max = 1000))]
    pub merge_every: u32,
    /// The delays that are injected, on the request and on every token, for slope and intercept. At least five.
    pub delays: Vec<Period>,
    /// How often the whole series is repeated, each time in a new random order with the floor among it.
    #[schemars(range(min = 1, max = 1000))]
    pub blocks: u32,
    /// Tokens of one answer.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub output_tokens: u32,
    /// Calls of each stream in one cell.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub calls_per_stream: u32,
    /// The least calls of one cell, so that a cell of one stream holds enough of them.
    #[serde(default = "default_calls_min")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub calls_min: u32,
    /// The script of the engine stand-in.
    pub engine: EngineScript,
    /// The most tokens a second over all streams. Where the engine's gap would give more, the gap is
    /// widened: beyond what the host can carry, a series would measure its queue and no instrument.
    #[serde(default = "default_token_rate_max")]
    #[schemars(range(min = 1, max = 10_000_000))]
    pub token_rate_max: u32,
    /// The host's load from elsewhere while it is measured, one series each: 0 is idle, 0.8 keeps
    /// four fifths of every CPU busy.
    #[serde(default = "default_host_load")]
    #[schemars(length(min = 1), inner(range(min = 0.0, max = 0.95)))]
    pub host_load: Vec<f64>,
    /// Add a series with a client that reads slowly: its back-pressure must not become gateway delay.
    #[serde(default)]
    pub slow_client: bool,
    /// Seeds order and text.
    pub seed: u64,
    /// What the instrument must keep.
    pub bounds: Bounds,
}

/// The bound of the instrument. Beyond any of it `calibrate` ends with a non-zero exit code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The most that the median instrument error may be, either way, on an idle host.
    pub error_p50: Period,
    /// The most that its 99th percentile may be, either way, on an idle host.
    pub error_p99: Period,
    /// The number of streams up to which `error_p50` and `error_p99` bind; more streams are printed without a bound.
    #[schemars(range(min = 1))]
    pub error_streams_max: u32,
    /// The most by which the slope over the injected delays may differ from 1, beyond its interval.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub slope_error: f64,
    /// The least share of calls that must be paired.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pairing_share_min: f64,
    /// The most by which the measured merge ratio may differ from the true one, as a share of it.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub merge_ratio_error: f64,
}

fn default_merge() -> u32 {
    4
}

fn default_token_rate_max() -> u32 {
    5_000
}

fn default_calls_min() -> u32 {
    20
}

fn default_host_load() -> Vec<f64> {
    vec![0.0]
}
