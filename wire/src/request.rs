//! The few facts of a request that matter.

mod agentcore;
mod canonical;
mod chat;
mod mcp;
mod responses;

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

#[cfg(test)]
mod tests;

/// What a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFacts {
    /// `model`, as the client names it; for Converse and InvokeModel the model of the path, for AgentCore the
    /// agent's ARN, its percent-encoding resolved.
    pub model: Option<String>,
    /// `stream` is true; for Converse and InvokeModel, the path's operation streams. An agent's request and
    /// MCP's do not say it: the answer's `Content-Type` does.
    pub stream: bool,
    /// `max_completion_tokens`, else `max_tokens`, `max_output_tokens`, Llama's `max_gen_len` or
    /// `inferenceConfig.maxTokens`; `None` also for a negative one (no limit).
    pub max_tokens: Option<u64>,
    /// `stream_options.include_usage` is true.
    pub include_usage: bool,
    /// Messages of a chat or items of a response's input, where a `system` or `instructions` beside them counts
    /// as one; prompts of the completions dialect, of Llama and of an agent.
    pub messages: u32,
    /// Decoded UTF-8 bytes of the text of all messages or prompts. Images, tool calls and token
    /// ids are not text.
    pub prompt_bytes: u64,
    /// Hash of the prompt, `seed` and the token limit, equal on both sides of a gateway that
    /// renames the model, reorders members, drops unknown or null ones, re-escapes strings, turns a
    /// single text part into a string, or a chat of text into a request of Converse, of Anthropic's messages, of
    /// InvokeModel in either's form, or of OpenAI's responses. Of an agent's request, hash of the whole body; of
    /// MCP's, of what is asked, without its id. The same in every process and version.
    pub fingerprint: u64,
    /// The JSON-RPC method, such as `tools/call`.
    pub method: Option<String>,
    /// The tool that `tools/call` names.
    pub tool: Option<String>,
}

/// Why a request has no facts.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The dialect is [`Dialect::Opaque`].
    #[error(
        "request body is of an unknown dialect; known are chat completions, completions, responses, Anthropic's messages, Bedrock's Converse, InvokeModel and AgentCore, and MCP"
    )]
    Opaque,
    /// The path ends as MCP's does, but the body is not JSON-RPC.
    #[error("request body has no `jsonrpc` member, so it is not MCP whatever its path")]
    NotRpc,
    /// The body is a JSON array.
    #[error("request body is an array, not a request of this dialect")]
    Array,
    /// Not JSON, or not of the expected shape.
    #[error("request body is not a request of this dialect")]
    Unreadable(#[from] serde_json::Error),
}

/// Reads the facts of a whole request: its path, of which only Bedrock's say anything, and its body.
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
    match dialect {
        Dialect::OpenAiResponses => responses::facts(body),
        Dialect::AgentCore => agentcore::facts(path, body),
        Dialect::Mcp => mcp::facts(body),
        _ => chat::facts(dialect, path, body),
    }
}

/// A token limit; a negative one is none.
fn limit(tokens: Option<i64>) -> Option<u64> {
    tokens.and_then(|tokens| u64::try_from(tokens).ok())
}
