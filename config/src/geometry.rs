//! What machines hold, how models are shaped and which are offered: the facts of the fit check.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::load::{Checked, Form, Report, from_text};
use crate::scalar::Date;

/// Tables of instance types, model shapes and offered models. Each row names its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Geometry {
    /// Instance types with GPUs, by the name that EC2 gives them.
    pub instances: BTreeMap<String, Instance>,
    /// Models that can be served on own GPUs or imported.
    pub models: BTreeMap<String, ModelGeometry>,
    /// Models that Bedrock serves on demand, by their names in the price table.
    pub offered: BTreeMap<String, Offered>,
    /// What an import accepts.
    pub import: ImportLimits,
    /// Memory of each GPU that activations and CUDA graphs take, in MiB. An assumption.
    #[schemars(range(min = 0, max = 100_000))]
    pub working_mib: u64,
}

/// One instance type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// GPUs of one instance.
    #[schemars(range(min = 1, max = 64))]
    pub gpus: u32,
    /// The GPU.
    pub gpu: String,
    /// Memory of each GPU in MiB, as EC2 states it.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub gpu_memory_mib: u64,
    /// How its GPUs reach each other.
    pub link: Link,
    /// vCPUs.
    #[schemars(range(min = 1, max = 1024))]
    pub vcpu: u32,
    /// Memory in GiB.
    #[schemars(range(min = 1, max = 100_000))]
    pub memory_gib: u32,
    /// Sustained network bandwidth in Gbit/s.
    #[schemars(range(min = 0.1, max = 10_000.0))]
    pub network_gbps: f64,
    /// Where this stands.
    pub source: String,
}

/// How GPUs of one machine reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// There is one GPU.
    None,
    /// Over the machine's PCI Express.
    Pcie,
    /// Directly.
    Nvlink,
}

/// The shape of a transformer with grouped-query attention.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelGeometry {
    /// Layers.
    #[schemars(range(min = 1, max = 10_000))]
    pub layers: u32,
    /// Width of the residual stream.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub hidden: u32,
    /// Attention heads.
    #[schemars(range(min = 1, max = 10_000))]
    pub heads: u32,
    /// Heads of keys and values.
    #[schemars(range(min = 1, max = 10_000))]
    pub kv_heads: u32,
    /// Width of one head.
    #[schemars(range(min = 1, max = 10_000))]
    pub head_size: u32,
    /// Tokens that the model knows.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub vocabulary: u32,
    /// Whether input embedding and output head are one matrix.
    pub tied_embeddings: bool,
    /// All parameters, in billions.
    #[schemars(range(min = 0.001, max = 100_000.0))]
    pub parameters_billion: f64,
    /// The longest context the model was made for, in tokens.
    #[schemars(range(min = 1, max = 100_000_000))]
    pub context_max: u32,
    /// Custom Model Units of one imported copy. Absent: no source found.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    pub cmus_per_copy: Option<u32>,
    /// Where this stands.
    pub source: String,
}

/// A model that Bedrock serves, or has served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Offered {
    /// Its last announced day. Absent: none was found announced.
    #[serde(default)]
    pub until: Option<Date>,
    /// The first day on which calls failed. Absent: it is served.
    #[serde(default)]
    pub gone_since: Option<Date>,
    /// What to use in its place. Absent: no advice.
    #[serde(default)]
    pub successor: Option<String>,
    /// Quota tokens that one token of the answer costs.
    #[schemars(range(min = 1.0, max = 1000.0))]
    pub output_burndown: f64,
    /// Where this stands.
    pub source: String,
}

/// What Custom Model Import accepts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportLimits {
    /// Regions that offer it.
    pub regions: Vec<String>,
    /// The largest weights, in GB.
    #[schemars(range(min = 1.0, max = 100_000.0))]
    pub weights_gb_max: f64,
    /// Bits of one weight of an import.
    #[schemars(range(min = 1.0, max = 64.0))]
    pub bits: f64,
    /// Length of a billing window in seconds; a copy without calls ends after one.
    #[schemars(range(min = 1, max = 86_400))]
    pub window_seconds: u32,
    /// Where this stands.
    pub source: String,
}

impl Form for Geometry {
    const NAME: &'static str = "geometry";

    fn check(&self, report: &mut Report<'_>) {
        for (name, one) in &self.instances {
            if (one.gpus == 1) != (one.link == Link::None) {
                report.add(
                    &format!("instances.{name}.link"),
                    format!("{} GPUs and link `{}` contradict each other; one GPU has link `none`, more have `pcie` or `nvlink`", one.gpus, one.link.as_str()),
                );
            }
        }
        for (name, one) in &self.models {
            if one.heads % one.kv_heads != 0 {
                report.add(
                    &format!("models.{name}.kv_heads"),
                    format!(
                        "{} heads do not divide into groups of {}; correct one of them",
                        one.heads, one.kv_heads
                    ),
                );
            }
            let embeddings = one.embedding_parameters();
            if embeddings >= one.parameters_billion * 1e9 {
                report.add(
                    &format!("models.{name}.parameters_billion"),
                    format!("{} billion parameters are fewer than those of the embeddings alone; write billions", one.parameters_billion),
                );
            }
        }
        for (name, one) in &self.offered {
            if let (Some(until), Some(gone)) = (one.until, one.gone_since)
                && gone < until
            {
                report.add(
                    &format!("offered.{name}.gone_since"),
                    format!("{gone} is before `until` {until}; correct one of them"),
                );
            }
        }
    }
}

impl Geometry {
    /// The table that is part of the program.
    ///
    /// # Errors
    /// None but by a mistake in the program: a test reads it.
    pub fn shipped() -> Result<Checked<Self>, ConfigError> {
        from_text("config/geometry.yaml", include_str!("../geometry.yaml"))
    }
}

impl ModelGeometry {
    /// Parameters of the input embedding and the output head, which quantisation leaves at 16 bits.
    #[must_use]
    pub fn embedding_parameters(&self) -> f64 {
        let matrices = if self.tied_embeddings { 1.0 } else { 2.0 };
        matrices * f64::from(self.vocabulary) * f64::from(self.hidden)
    }
}

impl Link {
    /// The word used in files and outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Pcie => "pcie",
            Self::Nvlink => "nvlink",
        }
    }
}
