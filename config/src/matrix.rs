//! What `load --all` runs: scenarios over chains, one run after the other.

mod check;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::Listen;

/// A matrix of scenarios and chains. Each of its runs has its own directory; within a run the chains
/// take turns in random order, block by block, as its scenario says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Processes of this machine that the runs need, started first and ended last. Absent where
    /// everything is deployed already.
    #[serde(default)]
    pub start: Vec<Process>,
    /// The settings of a tap process to start beside them. Relative to this file. Absent where the taps
    /// are deployed: name their record directories with `--tap`.
    #[serde(default)]
    pub tap: Option<PathBuf>,
    /// A calibration to run before everything else. Relative to this file. Absent: name one that was
    /// made on this machine with `--calibration`.
    #[serde(default)]
    pub calibration: Option<PathBuf>,
    /// The runs, in their order.
    #[schemars(length(min = 1))]
    pub runs: Vec<MatrixRun>,
}

/// One command of hopscope as a process: a stand-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its name, also that of its log.
    pub name: String,
    /// The command's words after `hopscope`, as `sim engine --listen 127.0.0.1:8000`. `{here}` in a word
    /// becomes the directory of this file.
    pub run: String,
    /// Where it listens once it is ready.
    pub ready: Listen,
    /// It is the component of these chains: its CPU and memory are theirs.
    #[serde(default)]
    pub component_of: Vec<String>,
    /// It is the engine, or a part of it: on CPUs that the component shares, the run says so.
    #[serde(default)]
    pub engine: bool,
}

/// One run: a scenario over chains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixRun {
    /// The scenario. Relative to this file; its name is that of the run's directory.
    pub scenario: PathBuf,
    /// The chains and their controls. Relative to this file.
    #[schemars(length(min = 1))]
    pub chains: Vec<PathBuf>,
}
