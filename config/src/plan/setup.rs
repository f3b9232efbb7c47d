//! What a plan buys: models, machines, imported and provisioned capacity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The models of the configurations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// The model of `baseline`: its name in the price table, as `claude-sonnet-4-5`.
    pub default: String,
    /// The tier in which its tokens are bought. Default `standard`.
    #[serde(default)]
    pub tier: Tier,
    /// The model that `baseline-plus` imports: its name in the geometry table.
    pub imported: String,
    /// The model of the self-built configurations.
    pub self_hosted: SelfHosted,
}

/// How the tokens of the default model are bought. Not every model has each: what has no price has no bill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// On demand, as calls come.
    #[default]
    Standard,
    /// Files of calls, answered within a day.
    Batch,
    /// Calls that may wait.
    Flex,
    /// Calls that are served before others.
    Priority,
    /// Latency-optimised inference.
    LatencyOptimised,
}

impl Tier {
    /// What stands before the kind of token in the id of a price: nothing, or the tier and a hyphen.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Standard => "",
            Self::Batch => "batch-",
            Self::Flex => "flex-",
            Self::Priority => "priority-",
            Self::LatencyOptimised => "latency-optimised-",
        }
    }
}

/// A model on own GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SelfHosted {
    /// Its name in the geometry table.
    pub geometry: String,
    /// How its weights are stored.
    pub quantisation: Quantisation,
    /// How its KV cache is stored. Default `fp16`.
    #[serde(default)]
    pub kv_cache: KvType,
    /// The longest context that one call may use, in tokens: prompt and answer.
    #[schemars(range(min = 16, max = 10_000_000))]
    pub context_tokens: u32,
}

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantisation {
    /// 16 bits a weight; the same size as FP16.
    Bf16,
    /// 8 bits a weight.
    Fp8,
    /// AWQ: 4 bits a weight, with scales and zeros for groups of 128.
    AwqInt4,
    /// GPTQ: 4 bits a weight, with scales and zeros for groups of 128.
    GptqInt4,
}

impl Quantisation {
    /// The word used in files and outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
            Self::AwqInt4 => "awq-int4",
            Self::GptqInt4 => "gptq-int4",
        }
    }
}

/// How the KV cache is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KvType {
    /// 2 bytes a value.
    #[default]
    Fp16,
    /// 1 byte a value.
    Fp8,
}

/// Machines with GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// The instance type: its name in the geometry table and in the price table.
    pub instance: String,
    /// How many of them the measured deployment has.
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u32,
    /// Over how many GPUs one replica spreads.
    pub parallelism: Parallelism,
    /// How they are paid.
    pub purchase: Purchase,
    /// The share of a GPU's memory that the engine may use (vLLM's `--gpu-memory-utilization`). Default 0.9.
    #[serde(default = "default_utilisation")]
    #[schemars(range(min = 0.1, max = 1.0))]
    pub utilisation: f64,
    /// All machines end while there is no traffic and are billed for `traffic.duty` of the month alone. What the first
    /// calls after a pause wait for machines and weights is in no bill. Default false: replicas stay.
    #[serde(default)]
    pub scale_to_zero: bool,
}

/// Over how many GPUs one replica spreads: `tensor` × `pipeline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parallelism {
    /// GPUs that share each layer.
    #[schemars(range(min = 1, max = 64))]
    pub tensor: u32,
    /// Stages, each with a part of the layers.
    #[schemars(range(min = 1, max = 64))]
    pub pipeline: u32,
}

/// How instances are paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purchase {
    /// By the second, without a commitment.
    OnDemand,
    /// Committed for a year.
    #[serde(rename = "reserved-1y")]
    Reserved1y,
    /// Spare capacity that AWS may take back with two minutes' notice.
    Spot,
}

impl Purchase {
    /// The word used in files, price ids and outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::Reserved1y => "reserved-1y",
            Self::Spot => "spot",
        }
    }
}

/// A model by Custom Model Import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// Copies that are up at once while there are calls.
    #[schemars(range(min = 1, max = 1000))]
    pub copies: u32,
    /// Custom Model Units of one copy, as AWS states them for the model.
    #[schemars(range(min = 1, max = 1000))]
    pub cmus_per_copy: u32,
    /// Whether copies stay up without calls.
    pub warm: Warm,
}

/// Whether an imported model's copies stay up without calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Warm {
    /// Something calls at least every five minutes: every window is billed.
    Always,
    /// Copies end without calls: only the five-minute windows with a call are billed, and the first call after a pause waits.
    Windows,
}

/// Provisioned Throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Provisioned {
    /// Model units bought.
    #[schemars(range(min = 1, max = 1000))]
    pub model_units: u32,
    /// For how long.
    pub commitment: Commitment,
}

/// For how long model units are bought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Commitment {
    /// By the hour.
    None,
    /// One month.
    OneMonth,
    /// Six months.
    SixMonths,
}

/// A guardrail policy that is billed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Guardrail {
    /// Content filters.
    Content,
    /// Denied topics.
    DeniedTopics,
    /// Sensitive information.
    Pii,
}

impl Guardrail {
    /// The word used in files and price ids.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Content => "content",
            Self::DeniedTopics => "denied-topics",
            Self::Pii => "pii",
        }
    }
}

/// An agent on AgentCore Runtime: what one task uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Agent {
    /// The platform: both price and cold start differ.
    pub runtime: Runtime,
    /// Seconds from a session's start to its end, the idle tail included.
    #[schemars(range(min = 1, max = 1_209_600))]
    pub session_seconds: u32,
    /// The mean number of vCPUs that are busy while the session lasts.
    #[schemars(range(min = 0.0, max = 64.0))]
    pub vcpu_share: f64,
    /// The session's memory, in GB.
    #[schemars(range(min = 0.128, max = 512.0))]
    pub memory_gb: f64,
    /// Tool calls through AgentCore Gateway.
    #[schemars(range(min = 0, max = 100_000))]
    pub tool_calls: u32,
}

/// The platforms of AgentCore Runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// The first: a microVM is booted for each session.
    V1,
    /// The second: a session is restored from a snapshot.
    V2,
}

impl Runtime {
    /// The word used in files and price ids.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

fn default_utilisation() -> f64 {
    0.9
}
