//! A course of load over time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrivals, default_in_flight};
use crate::scalar::Period;

/// Phases of load, one after the other without a pause. Calls come at a rate, whatever the chain
/// does with them; nothing is left out as warm-up, so let the first phase be one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The phases, in order.
    #[schemars(length(min = 1))]
    pub phases: Vec<ProfilePhase>,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// The most calls in flight; a call beyond it is lost and counted, never delayed. Default 10000.
    #[serde(default = "default_in_flight")]
    #[schemars(range(min = 1))]
    pub in_flight_max: u32,
}

/// One phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfilePhase {
    /// Its name in results. Letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// Calls per second at its begin.
    #[schemars(range(min = 0.0001, max = 1_000_000.0))]
    pub rate: f64,
    /// Calls per second at its end: a ramp. Absent: the rate stays.
    #[serde(default)]
    #[schemars(range(min = 0.0001, max = 1_000_000.0))]
    pub to: Option<f64>,
    /// How long it lasts.
    pub duration: Period,
}
