//! What differs: chains of one run, and a chain with its taps from itself without.

use super::Estimate;
use record::manifest::Drive;
use serde::Serialize;

/// What inserting the taps did: E2E tapped − untapped, against what the taps account for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Perturbation {
    /// The name of its run.
    pub run: String,
    /// The chain.
    pub chain: String,
    /// A part of it is a stand-in.
    pub simulated: bool,
    /// The drive in words.
    pub label: String,
    /// Difference of the medians of E2E, with its interval.
    pub difference: Option<Estimate>,
    /// Taps' own delay and floor: what the difference should be.
    pub expected: Option<f64>,
    /// Difference − expected: the perturbation.
    pub excess: Option<f64>,
    /// Why it is not given.
    pub refused: Option<String>,
}

/// How two chains of one run differ where they were driven in one way. What is compared is paired over blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// The name of its run.
    pub run: String,
    /// The one.
    pub a: String,
    /// The other.
    pub b: String,
    /// A part of either is a stand-in.
    pub simulated: bool,
    /// One of them was driven beyond its capacity.
    pub saturated: bool,
    /// How they were driven: as the first was.
    pub drive: Drive,
    /// The drive in words.
    pub label: String,
    /// Blocks in which both were driven.
    pub blocks: usize,
    /// Figure by figure.
    pub differences: Vec<Difference>,
    /// Why there are none.
    pub refused: Option<String>,
}

/// A quantile of one figure in both chains, nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What is compared.
    pub figure: &'static str,
    /// Which quantile of it.
    pub quantile: f64,
    /// That of the one.
    pub a: Option<f64>,
    /// That of the other.
    pub b: Option<f64>,
    /// The other − the one.
    pub difference: Option<f64>,
    /// 95 % of that over blocks; `None` with fewer than two, or where a resample falls on calls whose end was not seen.
    pub interval: Option<(f64, f64)>,
    /// The other ÷ the one.
    pub ratio: Option<f64>,
    /// 95 % of that.
    pub ratio_interval: Option<(f64, f64)>,
    /// Calls of each, lost ones among them.
    pub calls: (usize, usize),
    /// Rests on few.
    pub few: bool,
    /// Why it is not given.
    pub refused: Option<String>,
}

impl Difference {
    /// The interval lies on one side of 0: more than noise.
    #[must_use]
    pub fn significant(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}
