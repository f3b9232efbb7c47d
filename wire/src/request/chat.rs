//! Requests with messages or prompts: OpenAI's chat and completions, Converse, Anthropic's messages, and what
//! InvokeModel takes of them.

use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::canonical::{self, Canonical, Message, Prompt};
use super::{RequestError, RequestFacts, limit};
use crate::dialect::{self, Dialect};

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
    /// Llama's, over InvokeModel.
    #[serde(default)]
    max_gen_len: Option<i64>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    seed: Canonical,
    #[serde(default)]
    messages: Option<Vec<Message>>,
    #[serde(default, deserialize_with = "canonical::prompts")]
    prompt: Prompt,
    /// Beside the messages: Converse's and Anthropic's.
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

pub(super) fn facts(
    dialect: Dialect,
    path: &str,
    body: &[u8],
) -> Result<RequestFacts, RequestError> {
    let body: Body = serde_json::from_slice(body)?;
    let chat = |system| canonical::chat(system, body.messages.as_deref().unwrap_or_default());
    let prompt = match dialect {
        Dialect::OpenAiCompletions => body.prompt,
        Dialect::Invoke if body.messages.is_none() => body.prompt,
        Dialect::OpenAiChat => chat(Canonical::default()),
        _ => chat(body.system),
    };
    let (model, stream) = match dialect {
        Dialect::Converse | Dialect::Invoke => {
            let model = dialect::model(path);
            let id = model.map(|model| percent_decode_str(model.id).decode_utf8_lossy());
            (
                id.map(|id| id.into_owned()),
                model.is_some_and(|model| model.stream),
            )
        }
        _ => (body.model, body.stream.unwrap_or(false)),
    };
    let inference = body.inference.and_then(|inference| inference.max_tokens);
    let max_tokens = [
        body.max_completion_tokens,
        body.max_tokens,
        body.max_gen_len,
        inference,
    ];
    let max_tokens = limit(max_tokens.into_iter().flatten().next());
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
        ..RequestFacts::default()
    })
}
