//! Where a router sends requests.

use serde::{Deserialize, Serialize};

/// How a replica is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// One after the other.
    #[default]
    RoundRobin,
    /// Any, under the seed.
    Random,
    /// The highest score of 3 × (share of the prompt's blocks that this router sent there before) +
    /// 2 × (1 for the replica with the least in flight, 0 for that with the most): the weights of the
    /// prefix-cache and queue scorers in llm-d's guide. Equal scores are decided at random.
    Prefix,
}

/// A router's options. Without any of them: no replica, round robin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct RouterOptions {
    /// The replicas, `host:port` each, separated by commas.
    #[arg(long, value_delimiter = ',', required = true)]
    pub upstreams: Vec<String>,
    /// How a replica is chosen.
    #[arg(long, value_enum, default_value_t = Policy::default())]
    pub policy: Policy,
    /// Seed of what is random.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Scaling.
    #[command(flatten)]
    pub scale: ScaleOptions,
}

/// When replicas come and go. Divide the times by an engine's `--time-scale` where it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct ScaleOptions {
    /// Replicas that are ready from the start and always kept; the others wait for load. 0: all of them.
    #[arg(long, default_value_t = Self::default().min_replicas)]
    pub min_replicas: usize,
    /// Starts one more when there are more requests in flight than this for each replica that is ready or
    /// starting.
    #[arg(long, default_value_t = Self::default().scale_above)]
    pub scale_above: u64,
    /// From the decision to a node that has joined, ms.
    #[arg(long, default_value_t = Self::default().launch_ms)]
    pub launch_ms: u64,
    /// Pulling the image after that, ms.
    #[arg(long, default_value_t = Self::default().pull_ms)]
    pub pull_ms: u64,
    /// Loading the weights after that, ms.
    #[arg(long, default_value_t = Self::default().load_ms)]
    pub load_ms: u64,
    /// A replica without a request for so long goes, ms.
    #[arg(long, default_value_t = Self::default().idle_ms)]
    pub idle_ms: u64,
}

impl Default for ScaleOptions {
    /// All replicas from the start. The times are round assumptions, to be replaced by measured ones.
    fn default() -> Self {
        Self {
            min_replicas: 0,
            scale_above: 8,
            launch_ms: 60_000,
            pull_ms: 120_000,
            load_ms: 120_000,
            idle_ms: 600_000,
        }
    }
}
