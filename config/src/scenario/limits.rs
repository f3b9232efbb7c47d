//! What makes a run valid. Each limit is printed with the run, and a failed one is the report's first line.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::Period;

/// The limits of a run's verdict. Shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VerdictLimits {
    /// The most that the 99th percentile of the generator's lateness behind its schedule may be. Default 1 ms.
    pub schedule_lag_p99: Period,
    /// The same lateness as a share of the median TTFT. Default 0.01.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub schedule_lag_share_of_ttft: f64,
    /// The least share of scheduled calls that must have been sent. Default 1: all of them.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub sent_share_min: f64,
    /// The most CPU that the generator may use of what it owns. Default 0.8.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub generator_cpu_max: f64,
    /// The most CPU that the tap may use of what it owns. Default 0.8.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tap_cpu_max: f64,
    /// The most that the 99th percentile of the tap's own lateness may be of a leg's 99th percentile. Default 0.1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub lateness_share_of_leg_p99: f64,
    /// The least share of calls that must be paired; a lost record counts as unpaired. Default 0.999.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pairing_share_min: f64,
    /// The most records of the meter that may be lost. Default 0.
    pub records_lost_max: u64,
    /// By which factor the floor measured in a block may lie outside the calibrated floor's interval, at either end. Default 1.5.
    #[schemars(range(min = 1.0, max = 100.0))]
    pub floor_factor_max: f64,
    /// The most steps of the wall clock against the monotonic clock. Default 0.
    pub clock_steps_max: u64,
    /// A percentile q is printed only if the loss of every kind is below this share of 1 − q. Default 0.1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub loss_share_of_tail: f64,
    /// A percentile is printed only if so many samples lie beyond it. Default 10.
    pub samples_beyond_min: u64,
}

impl Default for VerdictLimits {
    fn default() -> Self {
        Self {
            schedule_lag_p99: Period::millis(1),
            schedule_lag_share_of_ttft: 0.01,
            sent_share_min: 1.0,
            generator_cpu_max: 0.8,
            tap_cpu_max: 0.8,
            lateness_share_of_leg_p99: 0.1,
            pairing_share_min: 0.999,
            records_lost_max: 0,
            floor_factor_max: 1.5,
            clock_steps_max: 0,
            loss_share_of_tail: 0.1,
            samples_beyond_min: 10,
        }
    }
}
