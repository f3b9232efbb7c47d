//! The few facts of a request that matter.

mod canonical;

use serde::{Deserialize, Serialize};

use crate::dialect::{self, Dialect};
use canonical::{Canonical, Message, Prompt};
use percent_encoding::percent_decode_str;

#[cfg(test)]
mod tests;

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFacts {
    /// `model`, as the client names it; for Converse, the model of the path, its percent-encoding resolved.
    pub model: Option<String>,
    /// `stream` is true; for Converse, the path ends in `/converse-stream`.
    pub stream: bool,
    /// `max_completion_tokens`, else `max_tokens`, else `inferenceConfig.maxTokens`; `None` also for a negative
    /// one (no limit).
    pub max_tokens: Option<u64>,
    /// `stream_options.include_usage` is true.
    pub include_usage: bool,
    /// Messages of a chat, where Converse's `system` counts as one; prompts of the completions dialect.
    pub messages: u32,
    /// Decoded UTF-8 bytes of the text of all messages or prompts. Images, tool calls and token
    /// ids are not text.
    pub prompt_bytes: u64,
    /// Hash of the prompt, `seed` and the token limit, equal on both sides of a gateway that
    /// renames the model, reorders members, drops unknown or null ones, re-escapes strings, turns a
    /// single text part into a string, or a chat of text into a Converse request. The same in every process
    /// and version.
    pub fingerprint: u64,
}

/// Why a request has no facts.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The dialect is [`Dialect::Opaque`].
    #[error(
        "request body is of an unknown dialect; known are chat completions, completions and Converse"
    )]
    Opaque,
    /// The body is a JSON array.
    #[error("request body is an array, not a request of this dialect")]
    Array,
    /// Not JSON, or not of the expected shape.
    #[error("request body is not a request of this dialect")]
    Unreadable(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    max_tokens: Option<i64>,
    #[serde(default)]
    max_completion_tokens: Option<i64>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    seed: Canonical,
    #[serde(default)]
    messages: Option<Vec<Message>>,
    #[serde(default, deserialize_with = "canonical::prompts")]
    prompt: Prompt,
    /// Of Converse, as the next.
    #[serde(default)]
    system: Canonical,
    #[serde(default, rename = "inferenceConfig")]
    inference: Option<Inference>,
}

#[derive(Deserialize)]
struct Inference {
    #[serde(default, rename = "maxTokens")]
    max_tokens: Option<i64>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

/// Reads the facts of a whole request: its path, of which only Converse's says anything, and its body.
///
/// # Errors
/// When the dialect is opaque, or the body is not JSON of the dialect's shape.
pub fn facts(dialect: Dialect, path: &str, body: &[u8]) -> Result<RequestFacts, RequestError> {
    if dialect == Dialect::Opaque {
        return Err(RequestError::Opaque);
    }
    // serde would read an array as a struct's members in order.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(RequestError::Array);
    }
    let body: Body = serde_json::from_slice(body)?;
    let prompt = match dialect {
        Dialect::OpenAiCompletions => body.prompt,
        Dialect::Converse => canonical::chat(body.system, &body.messages.unwrap_or_default()),
        Dialect::OpenAiChat | Dialect::Opaque => {
            canonical::chat(Canonical::default(), &body.messages.unwrap_or_default())
        }
    };
    let (model, stream) = match dialect {
        Dialect::Converse => dialect::converse(path).map_or((None, false), |(model, stream)| {
            let model = percent_decode_str(model).decode_utf8_lossy();
            (Some(model.into_owned()), stream)
        }),
        _ => (body.model, body.stream.unwrap_or(false)),
    };
    let inference = body.inference.and_then(|inference| inference.max_tokens);
    let max_tokens = body.max_completion_tokens.or(body.max_tokens).or(inference);
    let max_tokens = max_tokens.and_then(|tokens| u64::try_from(tokens).ok());
    Ok(RequestFacts {
        model,
        stream,
        max_tokens,
        include_usage: body
            .stream_options
            .and_then(|options| options.include_usage)
            .unwrap_or(false),
        messages: prompt.items,
        prompt_bytes: prompt.text_bytes,
        fingerprint: canonical::fingerprint(&prompt, body.seed, max_tokens),
    })
}
