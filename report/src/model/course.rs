//! What changes over a long course of load, or does not.

use serde::Serialize;

/// A figure over the phases of a steady course of load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// The name of its run.
    pub run: String,
    /// The chain.
    pub chain: String,
    /// A part of it is a stand-in.
    pub simulated: bool,
    /// What is looked at.
    pub figure: &'static str,
    /// Phases that it could be read in.
    pub phases: usize,
    /// Phases of the course.
    pub of: usize,
    /// By how much it changes an hour: nanoseconds, or a share. With ties it may be 0 though there is a trend.
    pub slope_per_hour: f64,
    /// Kendall's S: pairs of phases in which the later is the larger, less those in which it is the smaller.
    /// Its sign is the direction of the trend.
    pub s: i64,
    /// Probability of as clear a trend where there is none.
    pub p: f64,
}

/// Whether a component keeps more and more of something over a steady course of load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leak {
    /// The name of its run.
    pub run: String,
    /// The chain.
    pub chain: String,
    /// A part of it is a stand-in.
    pub simulated: bool,
    /// What is looked at.
    pub figure: &'static str,
    /// `bytes`, or empty for a count.
    pub unit: &'static str,
    /// Seconds in which it was read, the first tenth of the course left out.
    pub samples: usize,
    /// Stretches of them whose medians are compared.
    pub stretches: usize,
    /// From the first to the last of them, hours.
    pub hours: f64,
    /// Its median.
    pub level: f64,
    /// By how much it changes an hour.
    pub slope_per_hour: f64,
    /// 95 % of that.
    pub interval: (f64, f64),
    /// What follows.
    pub finding: LeakFinding,
}

/// What a slope says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakFinding {
    /// The interval lies above 0.
    Grows,
    /// It lies below.
    Shrinks,
    /// It holds 0.
    NoneShown,
    /// The course is too short to say.
    TooShort,
}
