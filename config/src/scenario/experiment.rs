//! An experiment of operation: something happens to the chain, and a steady probe watches.

mod check;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) use check::check;

use super::default_in_flight;
use crate::scalar::{EnvName, HeaderName, HttpUrl, Period};

/// An event, a steady probe, and a condition: how long until the chain serves as it should. The probe's
/// calls are evenly spaced, and what it cannot see between two of them is printed with each result. Each
/// block is one repetition; chains take turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What is looked for.
    pub kind: ExperimentKind,
    /// Brings the chain into the state from which the experiment begins. Runs to its end before each
    /// repetition, and is no part of what is measured.
    #[serde(default)]
    pub prepare: Option<Action>,
    /// Time without any call before each repetition, after `prepare`: until a service has scaled to zero. Default 0.
    #[serde(default)]
    pub idle: Period,
    /// The event. Absent: the load itself is the event, its first call (`cold-start`) or its step (`scale-out`).
    #[serde(default)]
    pub trigger: Option<Action>,
    /// Steady load before the event, whose median TTFT is the latency to come back to. Not for `cold-start`.
    #[serde(default)]
    pub before: Option<Period>,
    /// Calls per second of the probe: results are as fine as the time between two.
    #[schemars(range(min = 0.001, max = 10_000.0))]
    pub rate: f64,
    /// More load: from the event on (`scale-out`), or as a burst before it (`queue-drain`).
    #[serde(default)]
    pub raised: Option<RaisedLoad>,
    /// The model that the probe asks for in place of the chain's: a name that only the new version answers to
    /// (`model-update`), or the one that is started (`cold-start`).
    #[serde(default)]
    pub model: Option<String>,
    /// How long service must hold to count as restored: longer than the pauses between two effects of one event.
    pub settle: Period,
    /// Over which the rolling median of TTFT is taken. Default 10 s.
    #[serde(default = "default_window")]
    pub window: Period,
    /// Latency is restored when the rolling median of TTFT is at most this many times that of before. Default 1.25.
    #[serde(default = "default_within")]
    #[schemars(range(min = 1.01, max = 100.0))]
    pub ttft_within: f64,
    /// How long after the event the experiment waits. What is not over then is reported as longer than that.
    pub limit: Period,
    /// The most calls in flight; a call beyond it is lost and counted, never delayed. Default 10000.
    #[serde(default = "default_in_flight")]
    #[schemars(range(min = 1))]
    pub in_flight_max: u32,
}

/// What an experiment looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentKind {
    /// From nothing to the first answer.
    ColdStart,
    /// From the command to the answers of the new version.
    ModelUpdate,
    /// From a loss to steady service: error window, degraded window, time to steady.
    Recovery,
    /// From more load, or the command to grow, to the latency of before.
    ScaleOut,
    /// From the end of a burst to the latency of before.
    QueueDrain,
}

/// Something that is done to the chain: exactly one of a command and a request. What it says is kept in the
/// run directory; a non-zero exit or a status other than 2xx ends the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// A command and its arguments, run where hopscope was started, without a shell.
    #[serde(default)]
    pub run: Option<Vec<String>>,
    /// A request.
    #[serde(default)]
    pub http: Option<ActionRequest>,
}

/// One HTTP request, cleartext HTTP/1.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// Its method. Default `POST`.
    #[serde(default)]
    pub method: ActionMethod,
    /// Where it goes.
    pub url: HttpUrl,
    /// Headers of its own. Never secrets.
    #[serde(default)]
    pub headers: BTreeMap<HeaderName, String>,
    /// The environment variable that holds the key, sent as `Authorization: Bearer`. Absent: none is sent.
    #[serde(default)]
    pub key_env: Option<EnvName>,
    /// Its body, as it stands. Default: empty.
    #[serde(default)]
    pub body: String,
}

/// The method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum ActionMethod {
    /// GET.
    Get,
    /// POST.
    #[default]
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl ActionMethod {
    /// As it stands in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Load above the probe's rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RaisedLoad {
    /// Calls per second.
    #[schemars(range(min = 0.001, max = 1_000_000.0))]
    pub rate: f64,
    /// How long: of a burst (`queue-drain`). Absent: until the experiment ends (`scale-out`).
    #[serde(default)]
    pub duration: Option<Period>,
}

fn default_window() -> Period {
    Period::secs(10)
}

fn default_within() -> f64 {
    1.25
}
