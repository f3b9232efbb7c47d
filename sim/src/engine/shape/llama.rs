//! Events and bodies of Llama at Bedrock.

use serde_json::{Value, json};

use super::{Counts, Said};

/// One event of a stream. The first one with text tells the tokens of the prompt, the last one the reason.
pub(super) fn event(text: &str, prompt: Option<u64>, tokens: u64, reason: Option<&str>) -> Value {
    json!({
        "generation": text,
        "prompt_token_count": prompt,
        "generation_token_count": tokens,
        "stop_reason": reason.map(stop_reason)
    })
}

/// What a choice has said.
pub(super) fn said(said: &Said) -> Value {
    said.content.as_str().into()
}

/// The body of an answer that is not streamed.
pub(super) fn answer(text: &Value, reason: &str, counts: Counts) -> Value {
    json!({
        "generation": text,
        "prompt_token_count": counts.prompt,
        "generation_token_count": counts.completion,
        "stop_reason": stop_reason(reason)
    })
}

fn stop_reason(reason: &str) -> &str {
    match reason {
        "length" => "length",
        _ => "stop",
    }
}
