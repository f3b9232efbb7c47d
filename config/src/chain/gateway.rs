//! The measured component of a chain, and the recipe that lets calls be paired across it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::HeaderName;

/// The component between an outer and an inner tap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// The product's name, as results show it.
    pub name: String,
    /// The version that runs. Absent: unknown, and shown so.
    #[serde(default)]
    pub version: Option<String>,
    /// The processes whose CPU and memory are the component's: itself and everything it needs to
    /// serve (a sidecar, a router, a cache, a database). Children of a match count as well.
    #[serde(default)]
    pub processes: Vec<ProcessMatch>,
    /// How many workers serve, as configured; compared chains state an equal budget. Absent: not stated.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub workers: Option<u32>,
    /// The CPUs that the component and everything it needs may use, as `taskset -c` writes them: `0-1,4`.
    /// Stated, not set: whoever starts the component pins it. Absent: all CPUs of the host.
    #[serde(default)]
    pub cpuset: Option<String>,
    /// The response header, in milliseconds, by which the component states its own overhead; put beside the measured value.
    #[serde(default)]
    pub overhead_header: Option<HeaderName>,
    /// From which instant to which the component's own number reaches, in a sentence for the report.
    /// Required with `overhead_header`: two numbers of different spans must not be compared silently.
    #[serde(default)]
    pub overhead_span: Option<String>,
    /// The response header that proves an answer from the component's cache.
    #[serde(default)]
    pub cache_hit_header: Option<HeaderEvidence>,
}

/// A header whose presence, or whose value, proves something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderEvidence {
    /// The header.
    pub name: HeaderName,
    /// The value that proves it, compared without regard to case. Absent: any but an empty value does.
    #[serde(default)]
    pub value: Option<String>,
}

impl HeaderEvidence {
    /// Whether a header of this name with `value` is the evidence.
    #[must_use]
    pub fn proves(&self, value: &str) -> bool {
        let value = value.trim();
        match &self.value {
            Some(wanted) => wanted.eq_ignore_ascii_case(value),
            None => !value.is_empty(),
        }
    }
}

/// How to find a process on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessMatch {
    /// A file that holds the process id. Relative to the chain's file.
    PidFile(PathBuf),
    /// A text that the command line contains.
    CommandMatch(String),
    /// A control group below `/sys/fs/cgroup`, for example `system.slice/litellm.service`.
    Cgroup(String),
}

/// How the call id gets from the outer tap through the component to the inner tap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// What the outer tap sends for the component to pass on.
    pub forward: Forward,
    /// Whether this project has run the recipe against the real component. `false` is said wherever the chain is used.
    pub tried: bool,
    /// The configuration that the component needs, as text for a person.
    pub explain: String,
}

/// The channel of the call id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Forward {
    /// The header `x-hopscope-call`, which the component passes on as it is.
    Header,
    /// The header twice: as `x-hopscope-call` and as `x-bf-eh-x-hopscope-call`, whose prefix Bifrost removes when it passes it on.
    BifrostPrefix,
    /// Only `traceparent`, which the component passes on with the same trace id. Its creation can switch tracing on.
    Traceparent,
    /// Nothing is passed on: calls are paired by content fingerprint and confirmed by the response.
    Nothing,
}
