//! The `usage` member.

use crate::event::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_write_input_tokens: Option<u64>,
}

/// `None` when it cannot be read or says nothing.
///
/// `inputTokens` holds only what was neither read from a cache nor written to one; the prompt is the sum of
/// the three (<https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>). A model family that
/// counts the cached part twice would show here as a longer prompt: `total_tokens` is given as sent.
pub(super) fn read(raw: &RawValue) -> Option<Usage> {
    raw.get().starts_with('{').then_some(())?;
    let raw: Raw = serde_json::from_str(raw.get()).ok()?;
    let cached = raw.cache_read_input_tokens.unwrap_or(0);
    let written = raw.cache_write_input_tokens.unwrap_or(0);
    let usage = Usage {
        prompt_tokens: raw
            .input_tokens
            .map(|new| new.saturating_add(cached).saturating_add(written)),
        completion_tokens: raw.output_tokens,
        cached_tokens: raw.cache_read_input_tokens,
        reasoning_tokens: None,
        total_tokens: raw.total_tokens,
    };
    (usage != Usage::default()).then_some(usage)
}
