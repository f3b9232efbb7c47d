//! Experiments of operation: how long a service takes to come back, to change, to grow, as a steady probe
//! sees it. `docs/metrics.md` has the definitions at length; [`measure()`] computes them.

mod lasting;
mod measure;

pub use measure::{Probe, Watched, measure};

use crate::clock::Nanos;
use serde::{Deserialize, Serialize};

/// What an experiment looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// From nothing to the first answer.
    ColdStart,
    /// From the command to the new version's answers.
    ModelUpdate,
    /// From a loss to steady service.
    Recovery,
    /// From more load, or the command to grow, to the latency of before.
    ScaleOut,
    /// From the end of a burst to the latency of before.
    QueueDrain,
}

impl Kind {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ColdStart => "cold start",
            Self::ModelUpdate => "model update",
            Self::Recovery => "recovery",
            Self::ScaleOut => "scale-out",
            Self::QueueDrain => "queue drain",
        }
    }
}

/// Load above the probe's rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Raised {
    /// Calls a second.
    pub rate: f64,
    /// How long, nanoseconds; `None`: until the experiment ends.
    pub lasts: Option<Nanos>,
}

/// How an experiment was made. Times are nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// What it looks for.
    pub looks_for: Kind,
    /// Calls a second of the probe, evenly spaced.
    pub rate: f64,
    /// Steady load before the event.
    pub before: Nanos,
    /// More load.
    pub raised: Option<Raised>,
    /// The probe asks for a name that only the new version answers to.
    pub renamed: bool,
    /// How long a state must hold to count as reached.
    pub settle: Nanos,
    /// Over which the rolling median of TTFT is taken.
    pub window: Nanos,
    /// The median is *back* at no more than this many times that of before.
    pub ttft_within: f64,
    /// How long after the event the experiment waits.
    pub limit: Nanos,
}

/// What a trigger did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triggered {
    /// The command or request, in words.
    pub what: String,
    /// It was started.
    pub begin: Nanos,
    /// It had ended; `None`: it still ran when the experiment was over, and was killed.
    pub end: Option<Nanos>,
    /// Why it counts as failed; `None`: it succeeded, or was killed.
    pub failed: Option<String>,
    /// The file of the run directory with what it said.
    pub log: String,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Event → end of the first answer in full.
    ColdStart,
    /// Event → end of the first answer in full by the new version behind which none failed.
    Turnaround,
    /// First failed call → the one from which on none failed.
    ErrorWindow,
    /// From there (or from the first slow call, where none failed) → latency of before.
    DegradedWindow,
    /// Event → latency of before, without failures.
    TimeToSteady,
    /// More load, or the command → latency of before, without failures.
    ScaleOutDelay,
    /// End of the burst → latency of before, without failures.
    QueueDrain,
    /// End of the burst → as few calls in flight as before it.
    InFlightDrain,
}

impl Quantity {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ColdStart => "cold start",
            Self::Turnaround => "update turnaround",
            Self::ErrorWindow => "error window",
            Self::DegradedWindow => "degraded window",
            Self::TimeToSteady => "time to steady",
            Self::ScaleOutDelay => "scale-out delay",
            Self::QueueDrain => "queue drain (TTFT)",
            Self::InFlightDrain => "queue drain (calls in flight)",
        }
    }
}

/// What was found of a quantity. Nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// It took `value`; between `low` and `high`, since the probe looks only so often.
    Value {
        /// As the probe saw it.
        value: Nanos,
        /// At least.
        low: Nanos,
        /// At most.
        high: Nanos,
    },
    /// It was not over when the experiment ended: it takes longer than this.
    LongerThan(Nanos),
    /// The probe saw nothing of it: if it was there, it was shorter than this.
    ShorterThan(Nanos),
    /// It cannot be told, and why.
    NotMeasured(String),
}

/// One quantity of one experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// What.
    pub quantity: Quantity,
    /// What was found.
    pub found: Found,
}

/// One experiment on one chain: a repetition, whose calls are those of its cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Its cell.
    pub cell: u32,
    /// The chain.
    pub chain: String,
    /// Which repetition.
    pub block: u32,
    /// How it was made.
    pub setup: Setup,
    /// The event from which is counted: the trigger's start, the step in load, the end of the burst.
    pub event: Nanos,
    /// What the trigger did; `None` where load alone is the event.
    pub trigger: Option<Triggered>,
    /// What was found.
    pub measures: Vec<Measure>,
    /// How the calls due from the event on ended, by outcome and status.
    pub outcomes: Vec<(String, u64)>,
}

impl Experiment {
    /// Quantities that were not over when the experiment ended.
    pub fn unmet(&self) -> impl Iterator<Item = &Measure> {
        let open = |m: &&Measure| matches!(m.found, Found::LongerThan(_));
        self.measures.iter().filter(open)
    }
}
