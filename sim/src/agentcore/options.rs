//! What an agent service does.

use serde::{Deserialize, Serialize};

use crate::aws::KeyOptions;

/// What the agent answers with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Server-sent events, each a string in JSON: what an agent yields that passes text on.
    #[default]
    Strings,
    /// Server-sent events, each an object: what a Strands agent's stream has.
    Strands,
    /// One object in JSON with the whole text as its `result`.
    Json,
}

/// An agent service. Times are wishes: the truth log has what happened. Where no source is named, a default is
/// assumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct AgentCoreOptions {
    /// Median time that a new session takes to start, ms. (AWS' blog on fast session start: about 2 seconds from a
    /// snapshot.)
    #[arg(long, default_value_t = Self::default().cold_start_ms, value_parser = clap::value_parser!(u64).range(..=3_600_000))]
    pub cold_start_ms: u64,
    /// Spread of that time: sigma of a log-normal distribution, 0 to 5. (Assumed.)
    #[arg(long, default_value_t = Self::default().cold_start_sigma, value_parser = spread)]
    pub cold_start_sigma: f64,
    /// A session that is not up by then fails, ms. (aws/bedrock-agentcore-starter-toolkit, issue 356: 60 seconds.)
    #[arg(long, default_value_t = Self::default().init_limit_ms, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub init_limit_ms: u64,
    /// A session goes when it was idle for so long, ms. (`idleRuntimeSessionTimeout`: 900 seconds.)
    #[arg(long, default_value_t = Self::default().idle_timeout_ms, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub idle_timeout_ms: u64,
    /// Most sessions at a time; 0 sets no limit. (AgentCore's quotas: 5,000 in us-east-1.)
    #[arg(long, default_value_t = Self::default().max_sessions)]
    pub max_sessions: u64,
    /// Most new sessions a minute; 0 sets no limit. (AgentCore's quotas: 400 for containers.)
    #[arg(long, default_value_t = Self::default().new_sessions_per_minute)]
    pub new_sessions_per_minute: u64,
    /// Most invocations a second; 0 sets no limit. (AgentCore's quotas: 200 an agent.)
    #[arg(long, default_value_t = Self::default().tps)]
    pub tps: u64,
    /// What the agent answers with. A request that accepts `application/json` alone gets that.
    #[arg(long, value_enum, default_value_t = Form::default())]
    pub agent: Form,
    /// Time to the first piece of text, from when the session is up and models have answered, µs. (Assumed.)
    #[arg(long, default_value_t = Self::default().first_us)]
    pub first_us: u64,
    /// Time between pieces, µs. (Assumed.)
    #[arg(long, default_value_t = Self::default().gap_us)]
    pub gap_us: u64,
    /// Pieces of text, each a word, where no engine is asked.
    #[arg(long, default_value_t = Self::default().pieces)]
    pub pieces: u64,
    /// The agent asks the engine (OpenAI's API) at this address, as HOST:PORT, and says what the last call said.
    #[arg(long, value_name = "HOST:PORT")]
    pub engine: Option<String>,
    /// Calls of the model, one after another, where there is an engine.
    #[arg(long, default_value_t = Self::default().model_calls, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub model_calls: u64,
    /// The model that the agent asks for.
    #[arg(long, default_value_t = Self::default().model)]
    pub model: String,
    /// How long a tool of the gateway takes, µs.
    #[arg(long, default_value_t = Self::default().tool_us, value_parser = clap::value_parser!(u64).range(..=60_000_000))]
    pub tool_us: u64,
    /// Most tool calls a second at the gateway; 0 sets no limit. (AgentCore's quotas: 200.)
    #[arg(long, default_value_t = Self::default().tool_tps)]
    pub tool_tps: u64,
    /// Seed of texts and times.
    #[arg(long, default_value_t = Self::default().seed)]
    pub seed: u64,
    /// Who may call.
    #[command(flatten)]
    pub keys: KeyOptions,
}

impl Default for AgentCoreOptions {
    /// An agent that says 64 words, in sessions that start from a snapshot.
    fn default() -> Self {
        Self {
            cold_start_ms: 2_000,
            cold_start_sigma: 0.2,
            init_limit_ms: 60_000,
            idle_timeout_ms: 900_000,
            max_sessions: 5_000,
            new_sessions_per_minute: 400,
            tps: 200,
            agent: Form::default(),
            first_us: 500_000,
            gap_us: 20_000,
            pieces: 64,
            engine: None,
            model_calls: 1,
            model: "sim".to_owned(),
            tool_us: 0,
            tool_tps: 200,
            seed: 0,
            keys: KeyOptions::default(),
        }
    }
}

fn spread(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (0.0..=5.0).contains(number))
        .ok_or_else(|| "expected a number from 0 to 5".to_owned())
}
