//! The `usage` member.

use crate::tokens::Tokens;
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

/// `None` when it cannot be read.
pub(crate) fn read(raw: &RawValue) -> Option<Tokens> {
    raw.get().starts_with('{').then_some(())?;
    let raw: Raw = serde_json::from_str(raw.get()).ok()?;
    Some(Tokens {
        input: raw.input_tokens,
        cache_read: raw.cache_read_input_tokens,
        cache_write: raw.cache_write_input_tokens,
        output: raw.output_tokens,
        total: raw.total_tokens,
    })
}
