//! Requests of OpenAI's responses. What a `previous_response_id` or a `conversation` stands for is with the
//! server, and not seen.

use serde::Deserialize;

use super::canonical::{self, Canonical, Items};
use super::{RequestError, RequestFacts, limit};

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    max_output_tokens: Option<i64>,
    #[serde(default)]
    instructions: Canonical,
    #[serde(default)]
    input: Items,
}

pub(super) fn facts(body: &[u8]) -> Result<RequestFacts, RequestError> {
    let body: Body = serde_json::from_slice(body)?;
    let prompt = canonical::chat(body.instructions, &body.input.0);
    let max_tokens = limit(body.max_output_tokens);
    Ok(RequestFacts {
        model: body.model,
        stream: body.stream.unwrap_or(false),
        max_tokens,
        messages: prompt.items,
        prompt_bytes: prompt.text_bytes,
        fingerprint: canonical::fingerprint(&prompt, Canonical::default(), max_tokens),
        ..RequestFacts::default()
    })
}
