//! Several tenants on one chain at the same time.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrivals, CellLength, Probes, default_in_flight};
use crate::scalar::{EnvName, HeaderName};

/// Tenants that share a chain. Each is driven alone, all are driven together, and once more while one
/// of them floods the chain. Every tenant's system prompt holds a secret of its own, and every answer
/// is searched for the secrets of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenants {
    /// The tenants, at least two.
    #[schemars(length(min = 2))]
    pub members: Vec<Tenant>,
    /// The one that floods. Absent: nobody does, and no noisy neighbour is measured.
    #[serde(default)]
    pub flood: Option<Flood>,
    /// How arrivals are spaced.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How long one cell lasts.
    pub cell: CellLength,
    /// The most calls in flight of each; a call beyond it is lost and counted, never delayed. Default 10000.
    #[serde(default = "default_in_flight")]
    #[schemars(range(min = 1))]
    pub in_flight_max: u32,
    /// What is tried with tenants' keys before anything is measured. Absent: nothing.
    #[serde(default)]
    pub probes: Option<Probes>,
}

/// One tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name in results. Letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// The environment variable that holds its key, in place of the chain's.
    #[serde(default)]
    pub key_env: Option<EnvName>,
    /// Headers of its own, in addition to the chain's. Never secrets.
    #[serde(default)]
    pub headers: BTreeMap<HeaderName, String>,
    /// Calls per second.
    #[schemars(range(min = 0.0001, max = 1_000_000.0))]
    pub rate: f64,
    /// Tokens of its system prompt under the scenario's tokenizer, its secret apart.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub system_tokens: u32,
}

/// A tenant that asks for more than its share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flood {
    /// Its name.
    pub tenant: String,
    /// Its calls per second while it floods.
    #[schemars(range(min = 0.0001, max = 1_000_000.0))]
    pub rate: f64,
}
