//! The settings of a tap process: which chains it opens, and what it does beside passing bytes on.

mod check;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::{ByteSize, Listen, Period};

/// The settings of one tap process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TapProcess {
    /// The chains whose taps this process opens. Relative to this file. Several chains share one process and one clock.
    #[schemars(length(min = 1))]
    pub chains: Vec<PathBuf>,
    /// Where `/livez`, `/readyz` and `/metrics` are served. Absent: nowhere.
    #[serde(default)]
    pub telemetry: Option<Listen>,
    /// Where `/calls` and the live page are served. Loopback unless `allow_remote`. Absent: nowhere.
    #[serde(default)]
    pub admin: Option<Listen>,
    /// Let `admin` listen beyond loopback. It shows the calls of everybody.
    #[serde(default)]
    pub allow_remote: bool,
    /// Threads that serve traffic. Absent: one per CPU that the process may use, at most four.
    #[serde(default)]
    #[schemars(range(min = 1, max = 256))]
    pub threads: Option<u16>,
    /// Write every exchange to disk. Absent: metrics only.
    #[serde(default)]
    pub record: Option<Record>,
    /// Ask the kernel when bytes arrived, to narrow the bounds of a read (cleartext HTTP/1).
    #[serde(default = "default_true")]
    pub kernel_stamps: bool,
    /// What to do with the W3C trace context.
    #[serde(default)]
    pub traceparent: Traceparent,
    /// The length of the queue between the taps and the meter. A full queue drops records and counts them; traffic never waits.
    #[serde(default = "default_queue")]
    #[schemars(range(min = 16, max = 1_048_576))]
    pub queue: u32,
    /// How long running exchanges may go on after SIGTERM.
    #[serde(default = "default_drain")]
    pub drain_timeout: Period,
    /// Bounds of live pairing.
    #[serde(default)]
    pub pairing: Pairing,
}

/// Where and how exchanges are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The directory; made if absent. Relative to the directory in which the process starts.
    pub dir: PathBuf,
    /// A segment is closed at this size.
    #[serde(default = "default_segment_bytes")]
    pub segment_bytes: ByteSize,
}

/// What a tap does with the W3C trace context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Traceparent {
    /// Remove the client's.
    Off,
    /// Pass the client's on unchanged, make none.
    #[default]
    Pass,
    /// Make one where the client sent none. Can switch tracing on in the component, and so change what is measured.
    Create,
}

/// Bounds of live pairing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pairing {
    /// How long a finished exchange waits for its partner before it counts as unpaired. Default 30 s.
    pub wait: Period,
}

impl Default for Pairing {
    fn default() -> Self {
        Self {
            wait: Period::secs(30),
        }
    }
}

fn default_true() -> bool {
    true
}

fn default_queue() -> u32 {
    8192
}

fn default_drain() -> Period {
    Period::secs(30)
}

fn default_segment_bytes() -> ByteSize {
    ByteSize::mib(64)
}
