//! The scripts of stand-ins: what a simulated engine and a simulated gateway are asked to do.
//! What they did is in their own logs; a script is only the wish.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::{HostPort, Listen, Period};

/// The script of an engine stand-in's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineScript {
    /// From the last byte of the request to the first content.
    pub ttft: Period,
    /// Between two content events.
    pub gap: Period,
    /// Between the pieces after the last content: usage, `[DONE]`, the end of the body. Default 0:
    /// back to back, as engines write them.
    #[serde(default)]
    pub end_gap: Period,
    /// The most by which a gap differs from `gap`, either way, as a share of it. Default 0.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub jitter: f64,
    /// Seeds jitter and text.
    #[serde(default)]
    pub seed: u64,
}

/// A gateway stand-in: one process between two addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewayStandIn {
    /// The name of the chain in which it stands.
    pub chain: String,
    /// Where it listens.
    pub listen: Listen,
    /// Where it sends requests.
    pub upstream: HostPort,
    /// What it does to them.
    pub script: GatewayScript,
}

/// What a gateway stand-in does to what it forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayScript {
    /// How it forwards a stream.
    pub mode: StreamMode,
    /// Content events that `merge` joins into one. Default 4.
    #[schemars(range(min = 2, max = 1000))]
    pub merge_every: Option<u32>,
    /// From the last byte of the request to sending it on. Default 0.
    pub request_delay: Period,
    /// Added to the first content event alone. Default 0.
    pub first_token_delay: Period,
    /// Added to every content event. Default 0.
    pub token_delay: Period,
    /// Added to the finish and to the end of the stream. Default 0.
    pub finish_delay: Period,
    /// Spend the delays as work of a CPU, as an interpreter does, instead of waiting. On a small
    /// machine this takes time from everything else that runs there.
    pub busy: bool,
    /// How many delays pass at a time over all calls, so that the gateway saturates at `workers ÷ (a
    /// call's delays)` calls per second. Absent: no limit; with `busy` 1.
    #[schemars(range(min = 1, max = 1024))]
    pub workers: Option<u32>,
    /// Hold the response head until the first event, as LiteLLM does.
    pub hold_head: bool,
}

/// How a gateway stand-in forwards a stream.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum StreamMode {
    /// The bytes as they came.
    #[default]
    Pass,
    /// Each event decoded and written anew, as gateways with typed bodies do.
    Reserialise,
    /// Several content events joined into one.
    Merge,
}

impl StreamMode {
    /// The name as it is written in a file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Reserialise => "reserialise",
            Self::Merge => "merge",
        }
    }
}
