//! What `demo` starts: stand-ins, taps and load as processes of this host.

mod check;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::{HostPort, Listen};
use crate::standin::{EngineScript, GatewayStandIn};

/// One demonstration. Everything it shows is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    /// The settings of the tap process, which name the chains with taps. Relative to this file.
    pub tap: PathBuf,
    /// The chains without taps that the load runs as well. Relative to this file.
    #[serde(default)]
    pub untapped: Vec<PathBuf>,
    /// The scenario. Relative to this file.
    pub scenario: PathBuf,
    /// The calibration that runs before the load. Relative to this file.
    pub calibration: PathBuf,
    /// Where the results go. Relative to the directory in which the command starts.
    pub output: PathBuf,
    /// The engine stand-in that every chain ends at.
    pub engine: EngineStandIn,
    /// The gateway stand-ins.
    #[schemars(length(min = 1))]
    pub gateways: Vec<GatewayStandIn>,
    /// The relay of the chain of kind `relay`.
    pub relay: RelayStandIn,
}

/// An engine stand-in as a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EngineStandIn {
    /// Where it listens.
    pub listen: Listen,
    /// What it streams.
    pub script: EngineScript,
}

/// The zero-delay byte relay as a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelayStandIn {
    /// Where it listens.
    pub listen: Listen,
    /// Where its bytes go.
    pub upstream: HostPort,
}
