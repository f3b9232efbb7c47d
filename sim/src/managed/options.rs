//! What a managed service does.

use serde::{Deserialize, Serialize};

use crate::aws::KeyOptions;
use crate::engine::{EngineOptions, GuardrailOptions};

/// What callers of an imported model meet while no copy is up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Cold {
    /// 429 `ModelNotReadyException`, as Bedrock answers.
    #[default]
    Refuse,
    /// They wait until it has loaded.
    Wait,
}

/// A managed service. Times are of the service, before `time_scale`; wishes: the truth log has what
/// happened. Where no source is named, a default is assumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct ManagedOptions {
    /// Name of the served model. Requests may name any.
    #[arg(long, default_value_t = Self::default().model)]
    pub model: String,
    /// Median of the body of the time to first token without prefill, µs. (The median of Llama 3.1 70B on
    /// demand in AWS' blog on latency-optimised inference in Bedrock, prefill included.)
    #[arg(long, default_value_t = Self::default().ttft_us)]
    pub ttft_us: u64,
    /// Spread of the body: sigma of a log-normal distribution, 0 to 5. (Assumed.)
    #[arg(long, default_value_t = Self::default().ttft_sigma, value_parser = spread)]
    pub ttft_sigma: f64,
    /// Share of the calls whose time is drawn from a Pareto tail instead, 0 to 1. (Assumed; that blog's p90
    /// is 42.8 s, which says that there is one.)
    #[arg(long, default_value_t = Self::default().tail_share, value_parser = share)]
    pub tail_share: f64,
    /// Where the tail begins, as a multiple of the median, 0.01 to 1000. (Assumed.)
    #[arg(long, default_value_t = Self::default().tail_from, value_parser = multiple)]
    pub tail_from: f64,
    /// Index of the tail, 0.1 to 100: half the tail lies beyond 2^(1/alpha) times its beginning. (Assumed.) No
    /// time is drawn beyond 1000 medians.
    #[arg(long, default_value_t = Self::default().tail_alpha, value_parser = index)]
    pub tail_alpha: f64,
    /// Time for each prompt token that is not cached, µs. (Assumed.)
    #[arg(long, default_value_t = Self::default().prefill_token_us)]
    pub prefill_token_us: u64,
    /// Time between chunks, µs. (30.2 tokens a second, the median of the same blog.)
    #[arg(long, default_value_t = Self::default().gap_us)]
    pub gap_us: u64,
    /// Uniform jitter of each gap as a share of it, 0 to 1. (Assumed.)
    #[arg(long, default_value_t = Self::default().gap_jitter, value_parser = share)]
    pub gap_jitter: f64,
    /// Completion tokens where the request has no limit.
    #[arg(long, default_value_t = Self::default().tokens)]
    pub tokens: u64,
    /// Begins the content with the words of the system prompt, as the engine's option does.
    #[arg(long)]
    pub echo_system: bool,
    /// Quota of requests a minute; 0 sets none. (AWS General Reference, Bedrock quotas: Llama 2 70B.)
    #[arg(long, default_value_t = Self::default().rpm)]
    pub rpm: u64,
    /// Quota of tokens a minute, of prompts and of `max_tokens`; 0 sets none. (As `rpm`.)
    #[arg(long, default_value_t = Self::default().tpm)]
    pub tpm: u64,
    /// Tokens of quota for each token of `max_tokens`, 1 to 100. (Bedrock's user guide, token burndown: 5 for
    /// Claude 4, otherwise 1.)
    #[arg(long, default_value_t = Self::default().output_burndown, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub output_burndown: u64,
    /// Keeps the prefixes of prompts: a later prompt with the same beginning has cached tokens. In Bedrock's own
    /// API only prefixes that end at a cache point of the request.
    #[arg(long)]
    pub prompt_cache: bool,
    /// Shortest prefix that is kept and found, tokens. (Bedrock's user guide, prompt caching: 1,024 for most
    /// models.)
    #[arg(long, default_value_t = Self::default().cache_min_tokens)]
    pub cache_min_tokens: u64,
    /// How long a prefix is kept after its last use, ms. (Five minutes, the same page.)
    #[arg(long, default_value_t = Self::default().cache_ttl_ms, value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub cache_ttl_ms: u64,
    /// Serves an imported model (Bedrock's Custom Model Import), whose copies come and go; none is up at the
    /// start. Otherwise there is always room.
    #[arg(long)]
    pub imported: bool,
    /// All copies go when there was no call for so long, ms. (Five minutes: AWS' blog on Custom Model Import;
    /// an answer on re:Post says an hour.)
    #[arg(long, default_value_t = Self::default().cold_after_ms, value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub cold_after_ms: u64,
    /// How long a copy loads, ms. (Assumed: no source tells it.)
    #[arg(long, default_value_t = Self::default().cold_start_ms, value_parser = clap::value_parser!(u64).range(..=86_400_000))]
    pub cold_start_ms: u64,
    /// What callers meet meanwhile.
    #[arg(long, value_enum, default_value_t = Cold::default())]
    pub cold: Cold,
    /// Calls that one copy serves at a time; one more starts another copy. (Assumed.)
    #[arg(long, default_value_t = Self::default().copy_concurrency, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub copy_concurrency: u64,
    /// Most copies: calls beyond them get 429. (Assumed.)
    #[arg(long, default_value_t = Self::default().max_copies, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub max_copies: u64,
    /// How many seconds of the service pass in one second: 60 puts an hour into a minute.
    #[arg(long, default_value_t = Self::default().time_scale, value_parser = scale)]
    pub time_scale: f64,
    /// Seed of texts and times. The n-th call that is let in has the same time to first token each run.
    #[arg(long, default_value_t = Self::default().seed)]
    pub seed: u64,
    /// Who may call.
    #[command(flatten)]
    pub keys: KeyOptions,
    /// What guardrails look for.
    #[command(flatten)]
    pub guardrail: GuardrailOptions,
}

impl Default for ManagedOptions {
    /// A large model on demand, without a prompt cache.
    fn default() -> Self {
        Self {
            model: "sim-managed".to_owned(),
            ttft_us: 900_000,
            ttft_sigma: 0.5,
            tail_share: 0.05,
            tail_from: 3.0,
            tail_alpha: 1.2,
            prefill_token_us: 200,
            gap_us: 33_000,
            gap_jitter: 0.2,
            tokens: 64,
            echo_system: false,
            rpm: 400,
            tpm: 300_000,
            output_burndown: 1,
            prompt_cache: false,
            cache_min_tokens: 1024,
            cache_ttl_ms: 300_000,
            imported: false,
            cold_after_ms: 300_000,
            cold_start_ms: 60_000,
            cold: Cold::default(),
            copy_concurrency: 4,
            max_copies: 3,
            time_scale: 1.0,
            seed: 0,
            keys: KeyOptions::default(),
            guardrail: GuardrailOptions::default(),
        }
    }
}

impl ManagedOptions {
    /// The engine that answers; the service gives the first token its time.
    pub(super) fn script(&self) -> EngineOptions {
        EngineOptions {
            model: self.model.clone(),
            gap_us: (self.gap_us as f64 / self.time_scale) as u64,
            gap_jitter: self.gap_jitter,
            tokens: self.tokens,
            echo_system: self.echo_system,
            seed: self.seed,
            keys: self.keys.clone(),
            guardrail: self.guardrail.clone(),
            ..EngineOptions::default()
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    bounded(text, 0.0, 1.0)
}

fn spread(text: &str) -> Result<f64, String> {
    bounded(text, 0.0, 5.0)
}

fn multiple(text: &str) -> Result<f64, String> {
    bounded(text, 0.01, 1_000.0)
}

fn index(text: &str) -> Result<f64, String> {
    bounded(text, 0.1, 100.0)
}

fn scale(text: &str) -> Result<f64, String> {
    bounded(text, 0.001, 100_000.0)
}

fn bounded(text: &str, least: f64, most: f64) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| format!("expected a number from {least} to {most}"))
}
