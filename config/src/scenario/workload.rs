//! What one call, or one agent, asks for.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::scalar::Period;

/// What one call asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Tokens of the prompt (of the user's part, where there is a system prompt), exact under `tokenizer`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub input_tokens: u32,
    /// Tokens to generate; asked for with `max_tokens` and `ignore_eos`.
    /// At least 16, the least that every gateway passes on unchanged.
    #[schemars(range(min = 16, max = 1_000_000))]
    pub output_tokens: u32,
    /// The tokenizer in which both counts are exact. Other tokenizers count differently, and results name this one.
    #[serde(default)]
    pub tokenizer: Tokenizer,
    /// Corrects the lengths of prompts by the backend's own count, where `tokenizer` is not the model's: a few
    /// calls before the run show how many tokens its usage states for how much text. Absent: not corrected.
    #[serde(default)]
    pub usage_probe: Option<UsageProbe>,
    /// Whether prompts repeat.
    #[serde(default)]
    pub prompts: Prompts,
    /// System prompts that calls share, each call taking one in turn. Absent: no system prompt.
    #[serde(default)]
    pub system: Option<SystemPrompts>,
    /// Ask for a stream, with usage at its end.
    #[serde(default = "default_stream")]
    pub stream: bool,
}

/// What counts tokens: a tokenizer that is built in, or a model's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tokenizer {
    /// OpenAI's `o200k_base`.
    #[default]
    O200k,
    /// OpenAI's `cl100k_base`.
    Cl100k,
    /// A `tokenizer.json` of Hugging Face's tokenizers, as a model's repository has it: `{file: PATH}`.
    /// Relative to the scenario's file.
    File(PathBuf),
}

/// Makes `usage.prompt_tokens` of the backend what was asked for, to 1 %, by sending more or less text. What
/// its chat template adds counts as part of the prompt. Compared chains send the same text, so one of them
/// is corrected for all; how much the others' counts differ is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UsageProbe {
    /// The chain whose backend's count holds for all chains of the run. Absent: for each `model`, the first
    /// chain with it that is no control.
    pub reference: Option<String>,
}

/// Whether prompts repeat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Prompts {
    /// A different prompt each time, salted per chain and block, so that no cache answers and no arm warms another's.
    #[default]
    Unique,
    /// The same prompt each time.
    Same,
}

/// Fixed system prompts: what a prefix cache or a prompt cache can serve. Their texts differ between
/// chains and cells, so that no arm finds what another left in a cache; within a cell they stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SystemPrompts {
    /// How many there are.
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u32,
    /// Tokens of each, exact under `tokenizer`.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tokens: u32,
}

/// When the client gives up. A call that is given up is censored: it enters percentiles as a lower bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// For the connection. Default 5 s.
    pub connect: Period,
    /// From the send to the first byte of the answer. Default 2 min.
    pub first_byte: Period,
    /// Between two reads of an answer. Default 1 min.
    pub silence: Period,
    /// From the send to the last byte. Default 10 min.
    pub total: Period,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Period::secs(5),
            first_byte: Period::secs(120),
            silence: Period::secs(60),
            total: Period::secs(600),
        }
    }
}

fn default_stream() -> bool {
    true
}
