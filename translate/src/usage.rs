//! Token counts.

use serde::{Deserialize, Serialize};

/// Converse's `usage`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Theirs {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_write_input_tokens: Option<u64>,
}

/// OpenAI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Ours {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_tokens_details: Option<Details>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<u64>,
    /// Not OpenAI's: what was written to the cache, which is dearer than what was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_tokens: Option<u64>,
}

impl From<Theirs> for Ours {
    /// The prompt is what was computed, read from the cache and written to it: `inputTokens` has the first alone
    /// ([AWS](https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html)).
    fn from(theirs: Theirs) -> Self {
        let (read, written) = (
            theirs.cache_read_input_tokens,
            theirs.cache_write_input_tokens,
        );
        let prompt = [Some(theirs.input_tokens), read, written];
        let prompt = prompt.into_iter().flatten().fold(0, u64::saturating_add);
        let details = read.is_some() || written.is_some();
        Self {
            prompt_tokens: prompt,
            completion_tokens: theirs.output_tokens,
            total_tokens: prompt.saturating_add(theirs.output_tokens),
            prompt_tokens_details: details.then_some(Details {
                cached_tokens: read,
                cache_write_tokens: written,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_prompt_is_all_of_it() {
        let of = |value| {
            let theirs: Theirs = serde_json::from_value(value).unwrap();
            serde_json::to_value(Ours::from(theirs)).unwrap()
        };
        assert_eq!(
            of(json!({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5})),
            json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5})
        );
        assert_eq!(
            of(
                json!({"inputTokens": 3, "outputTokens": 2, "cacheReadInputTokens": 10, "cacheWriteInputTokens": 0})
            ),
            json!({"prompt_tokens": 13, "completion_tokens": 2, "total_tokens": 15,
                   "prompt_tokens_details": {"cached_tokens": 10, "cache_write_tokens": 0}})
        );
    }
}
