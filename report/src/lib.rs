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
mod gather;
mod model;
mod quantile;
pub mod render;

pub use build::build;
pub use definitions::{DEFINITIONS, Definition};
pub use model::{
    AgentRows, Arm, CacheFinding, Estimate, GuardrailFinding, LegRow, LimitFinding, LimitVerdict,
    Perturbation, PolicyCount, ProbeFindings, Reading, Report, RunInfo, Strata, ToolRow,
};

/// Why there is no report. Names the directory.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A run directory cannot be used.
    #[error(transparent)]
    Run(#[from] record::rundir::RunDirError),
    /// No run was named.
    #[error("no run directory was named; `hopscope load --out DIR` makes one")]
    NoRun,
}
