//! Run directories in; one self-contained page, Markdown and JSON out.
//!
//! [`build()`] reads the runs, pairs their exchanges offline, groups calls by chain and way of
//! driving, and computes every figure into a [`Report`]; [`render`] only shows it.

mod bootstrap;
mod build;
mod chart;
mod definitions;
mod drift;
mod exact;
mod experiments;
pub mod export;
mod gather;
mod leak;
mod model;
mod pool;
mod quantile;
pub mod render;
mod sample;
mod variants;

pub use build::build;
pub use definitions::{DEFINITIONS, Definition};
pub use model::{
    AgentRows, Arm, CacheFinding, CacheShare, ComponentRow, Contrast, Difference, Drift, Estimate,
    ExperimentRow, Gauge, GuardrailFinding, HitRate, Leak, LeakFinding, LegRow, LimitFinding,
    LimitVerdict, Passing, Perturbation, PolicyCount, ProbeFindings, Reading, Report, RunInfo,
    SampledCall, SemanticFinding, ServerSide, Strata, ToolRow, VariantRow, VariantSeen,
};
pub use variants::variants;

/// Why there is no report. Names the directory.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run directory cannot be used.
    #[error(transparent)]
    Run(#[from] record::rundir::RunDirError),
    /// Nothing of a run was asked for.
    #[error("{path}: nothing of it is wanted ({wanted}); it holds {there}")]
    NoCell {
        /// The run.
        path: std::path::PathBuf,
        /// What was asked for.
        wanted: String,
        /// What it has.
        there: String,
    },
    /// No run was named.
    #[error("no run directory was named; `hopscope load --out DIR` makes one")]
    NoRun,
}
