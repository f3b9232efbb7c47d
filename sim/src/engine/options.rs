//! What an engine does unless a request says otherwise.

use serde::{Deserialize, Serialize};

use super::{Faults, GuardrailOptions, ModelOptions};
use crate::aws::KeyOptions;
use crate::prompt::Count;

/// An engine's script. Durations are wishes: the truth log has what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct EngineOptions {
    /// Name of the served model. Requests may name any.
    #[arg(long, default_value_t = Self::default().model)]
    pub model: String,
    /// Median time from the last request byte to the first token, µs.
    #[arg(long, default_value_t = Self::default().ttft_us)]
    pub ttft_us: u64,
    /// Spread of that time: sigma of a log-normal distribution, 0 for a constant.
    #[arg(long, default_value_t = Self::default().ttft_sigma, value_parser = spread)]
    pub ttft_sigma: f64,
    /// Time between chunks, µs.
    #[arg(long, default_value_t = Self::default().gap_us)]
    pub gap_us: u64,
    /// Time between the pieces after the last text (finish, usage, `[DONE]`, the end of the body), µs;
    /// 0 writes them back to back, as engines do.
    #[arg(long, default_value_t = Self::default().end_gap_us)]
    pub end_gap_us: u64,
    /// Uniform jitter of each gap as a share of it, 0 to 1.
    #[arg(long, default_value_t = Self::default().gap_jitter, value_parser = share)]
    pub gap_jitter: f64,
    /// Completion tokens where the request has no limit.
    #[arg(long, default_value_t = Self::default().tokens)]
    pub tokens: u64,
    /// Tokens in one chunk, at least 1.
    #[arg(long, default_value_t = Self::default().tokens_per_chunk)]
    pub tokens_per_chunk: u64,
    /// How many of the completion tokens are reasoning, sent first.
    #[arg(long, default_value_t = Self::default().reasoning_tokens)]
    pub reasoning_tokens: u64,
    /// Sends the rest as the arguments of this many tool calls instead of as content.
    #[arg(long, default_value_t = Self::default().tool_calls)]
    pub tool_calls: u16,
    /// Calls the tools that a request offers without choosing one: each once, in the order of the offer,
    /// then answers. Without it a tool is called only where the request's `tool_choice` asks for one.
    #[arg(long)]
    pub call_tools: bool,
    /// Sends the finish reason in a chunk of its own. Otherwise it rides on the last one with text, as in
    /// vLLM.
    #[arg(long)]
    pub finish_apart: bool,
    /// Sends the role chunk with the response head. Otherwise just before the first token, as vLLM does.
    #[arg(long)]
    pub role_early: bool,
    /// Begins the content with the words of the system prompt (letters, digits, `-` and `_` of at most 64
    /// words), one token each, so that an answer that reaches another tenant shows whose it was.
    #[arg(long)]
    pub echo_system: bool,
    /// Prompt tokens counted for a word, on average, 0.1 to 10: a tokenizer that is not the load generator's.
    /// Which words count more depends on the word alone.
    #[arg(long, default_value_t = Self::default().tokens_per_word, value_parser = per_word)]
    pub tokens_per_word: f64,
    /// Tokens that a chat template adds to every prompt, at most 100000.
    #[arg(long, default_value_t = Self::default().template_tokens, value_parser = clap::value_parser!(u64).range(..=100_000))]
    pub template_tokens: u64,
    /// Share of the prompt tokens that are reported as cached, 0 to 1; rounded down to blocks of 16.
    #[arg(long, default_value_t = Self::default().cached_share, value_parser = share)]
    pub cached_share: f64,
    /// Closes connections that were idle this long, ms; 0 never does. (uvicorn's own default is 5000.)
    #[arg(long, default_value_t = Self::default().keep_alive_ms)]
    pub keep_alive_ms: u64,
    /// Seed of texts and times. The same seed and prompt give the same text and the same schedule.
    #[arg(long, default_value_t = Self::default().seed)]
    pub seed: u64,
    /// Faults of every exchange, as `close-after=5,ping=2`.
    #[arg(long, default_value_t = Self::default().fault)]
    pub fault: Faults,
    /// Applies those faults to each n-th exchange only, at least 1.
    #[arg(long, default_value_t = Self::default().fault_every)]
    pub fault_every: u64,
    /// The modelled engine.
    #[command(flatten)]
    pub model_options: ModelOptions,
    /// Who may call.
    #[command(flatten)]
    pub keys: KeyOptions,
    /// What guardrails look for.
    #[command(flatten)]
    pub guardrail: GuardrailOptions,
}

impl Default for EngineOptions {
    /// A small model on a fast card: first token after 50 ms, then 50 tokens a second.
    fn default() -> Self {
        Self {
            model: "sim".to_owned(),
            ttft_us: 50_000,
            ttft_sigma: 0.0,
            gap_us: 20_000,
            end_gap_us: 0,
            gap_jitter: 0.0,
            tokens: 64,
            tokens_per_chunk: 1,
            reasoning_tokens: 0,
            tool_calls: 0,
            call_tools: false,
            finish_apart: false,
            role_early: false,
            echo_system: false,
            tokens_per_word: 1.0,
            template_tokens: 0,
            cached_share: 0.0,
            keep_alive_ms: 0,
            seed: 0,
            fault: Faults::default(),
            fault_every: 1,
            model_options: ModelOptions::default(),
            keys: KeyOptions::default(),
            guardrail: GuardrailOptions::default(),
        }
    }
}

impl EngineOptions {
    /// How prompts are counted.
    pub(super) fn count(&self) -> Count {
        Count {
            per_word: self.tokens_per_word,
            template: self.template_tokens,
        }
    }
}

/// What one request asks of the engine, in the field `sim` of its body: fields that a gateway passes on
/// although it drops headers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Wishes {
    ttft_us: Option<u64>,
    gap_us: Option<u64>,
    end_gap_us: Option<u64>,
    tokens_per_chunk: Option<u64>,
    reasoning_tokens: Option<u64>,
    tool_calls: Option<u16>,
    finish_apart: Option<bool>,
    pub(super) prompt_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    pub(super) fault: Option<Faults>,
}

impl Wishes {
    /// The options for this request.
    pub(super) fn over(&self, options: &EngineOptions) -> EngineOptions {
        let base = options.clone();
        EngineOptions {
            ttft_us: self.ttft_us.unwrap_or(base.ttft_us),
            gap_us: self.gap_us.unwrap_or(base.gap_us),
            end_gap_us: self.end_gap_us.unwrap_or(base.end_gap_us),
            tokens_per_chunk: self
                .tokens_per_chunk
                .unwrap_or(base.tokens_per_chunk)
                .max(1),
            reasoning_tokens: self.reasoning_tokens.unwrap_or(base.reasoning_tokens),
            tool_calls: self.tool_calls.unwrap_or(base.tool_calls),
            finish_apart: self.finish_apart.unwrap_or(base.finish_apart),
            ..base
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    bounded(text, 1.0)
}

fn spread(text: &str) -> Result<f64, String> {
    bounded(text, 5.0)
}

fn per_word(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (0.1..=10.0).contains(number))
        .ok_or_else(|| "expected a number from 0.1 to 10".to_owned())
}

fn bounded(text: &str, most: f64) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| (0.0..=most).contains(number))
        .ok_or_else(|| format!("expected a number from 0 to {most}"))
}
