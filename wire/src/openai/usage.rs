//! The `usage` member.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::Usage;

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// `None` when it cannot be read or says nothing.
pub(super) fn read(raw: &RawValue) -> Option<Usage> {
    // serde would read an array as a struct's members in order.
    raw.get().starts_with('{').then_some(())?;
    let raw: Raw = serde_json::from_str(raw.get()).ok()?;
    let usage = Usage {
        prompt_tokens: raw.prompt_tokens,
        completion_tokens: raw.completion_tokens,
        cached_tokens: raw
            .prompt_tokens_details
            .and_then(|details| details.cached_tokens),
        reasoning_tokens: raw
            .completion_tokens_details
            .and_then(|details| details.reasoning_tokens),
        total_tokens: raw.total_tokens,
        cache_write_tokens: None,
    };
    (usage != Usage::default()).then_some(usage)
}
