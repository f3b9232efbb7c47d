//! Experiments of operation, and variants of an engine.

use super::Reading;
use record::experiment::{Found, Setup};
use serde::Serialize;

/// One quantity of an experiment of operation, over its repetitions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentRow {
    /// The name of its run.
    pub run: String,
    /// The chain.
    pub chain: String,
    /// A part of the chain is a stand-in.
    pub simulated: bool,
    /// How it was made.
    pub setup: Setup,
    /// The command or request; `None` where load alone was the event.
    pub trigger: Option<String>,
    /// What was measured.
    pub quantity: &'static str,
    /// Repetitions.
    pub repetitions: usize,
    /// Of these, those that could tell it.
    pub told: usize,
    /// The median of these.
    pub median: Found,
    /// The smallest and the largest of them; `None` with fewer than two.
    pub range: Option<(Found, Found)>,
    /// Probability with which these two hold the true median.
    pub coverage: Option<f64>,
    /// How the calls due from the event on ended, over all repetitions.
    pub outcomes: Vec<(String, u64)>,
}

/// One variant of an engine on one service, driven one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantRow {
    /// The variant.
    pub variant: String,
    /// What kind of choice it is.
    pub kind: &'static str,
    /// What it sets.
    pub sets: String,
    /// The service.
    pub on: String,
    /// What is known of it.
    pub seen: VariantSeen,
}

/// What is known of a variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariantSeen {
    /// An arm of some run.
    Measured {
        /// How it was driven, in words.
        label: String,
        /// A part of its chain is a stand-in.
        simulated: bool,
        /// TTFT from the actual send, at the client.
        ttft_p50: Reading,
        /// TPOT.
        tpot_p50: Reading,
        /// Completion tokens a second, over all callers.
        tokens_rate: Option<f64>,
    },
    /// No run of the report has it.
    NotMeasured {
        /// What would measure it.
        command: String,
    },
    /// There is nothing to measure, and why.
    NotOffered(String),
}
