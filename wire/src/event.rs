//! What the meter and the load generator act on: one framed event holds any number of these.

use serde::{Deserialize, Serialize};

/// Where text accumulates. Text positions count decoded UTF-8 bytes of one (choice, field, tool).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// `delta.content`, `message.content`, `text` of the completions dialect, or a text block of Converse.
    Content,
    /// `reasoning_content` or `reasoning`. A chunk that carries both carries the same text twice:
    /// `reasoning_content` is taken and the other ignored.
    Reasoning,
    /// `tool_calls[i].function.arguments`.
    ToolArguments,
    /// `refusal`: the model's own text when it declines.
    Refusal,
}

/// A piece of text, never empty, with its JSON escapes resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextDelta<'a> {
    /// `choices[].index`; the position in the array where the index is missing.
    pub choice: u16,
    /// Which text of the choice this continues.
    pub field: Field,
    /// `tool_calls[].index` for [`Field::ToolArguments`], otherwise 0.
    pub tool: u16,
    /// The decoded text.
    pub text: &'a str,
}

/// Why a choice ended (`finish_reason` of the OpenAI API; `abort` and `error` are vLLM's and gateways').
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// A natural end or a stop sequence.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model called tools.
    ToolCalls,
    /// The deprecated form of [`FinishReason::ToolCalls`].
    FunctionCall,
    /// Text was withheld by a filter.
    ContentFilter,
    /// The engine gave the request up.
    Abort,
    /// The engine or a gateway failed in the middle.
    Error,
    /// A reason that is none of these; the event's `raw` has it.
    Other,
}

impl FinishReason {
    /// The reason that a raw `finish_reason` names.
    pub fn from_raw(raw: &str) -> Self {
        match raw {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "function_call" => Self::FunctionCall,
            "content_filter" => Self::ContentFilter,
            "abort" => Self::Abort,
            "error" => Self::Error,
            _ => Self::Other,
        }
    }
}

/// Token counts as the server reports them (`usage`). What it does not say is `None`, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Usage {
    /// `prompt_tokens`: input tokens, those read from a cache or written to one included. Of Converse, the sum
    /// of its three counts.
    pub prompt_tokens: Option<u64>,
    /// `completion_tokens`: output tokens, reasoning included.
    pub completion_tokens: Option<u64>,
    /// `prompt_tokens_details.cached_tokens`: the part of the prompt served from a cache.
    pub cached_tokens: Option<u64>,
    /// `completion_tokens_details.reasoning_tokens`: the part of the output that was reasoning.
    pub reasoning_tokens: Option<u64>,
    /// `total_tokens`, as sent; not checked against the sum.
    pub total_tokens: Option<u64>,
}

/// One thing that a framed event or a JSON body says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEvent<'a> {
    /// The response id, once: the first that is not empty. It precedes the other events of its chunk.
    Id(&'a str),
    /// A choice names its role (usually the first chunk, often without text).
    Role {
        /// `choices[].index`.
        choice: u16,
    },
    /// Text of a choice.
    Text(TextDelta<'a>),
    /// A tool call opens: its id or name came. Its arguments follow as [`Field::ToolArguments`].
    ToolCall {
        /// `choices[].index`.
        choice: u16,
        /// `tool_calls[].index`; the position in the array where it is missing.
        tool: u16,
        /// The call's id, when this chunk has it.
        id: Option<&'a str>,
        /// The function's name, when this chunk has it.
        name: Option<&'a str>,
    },
    /// A choice ended.
    Finish {
        /// `choices[].index`.
        choice: u16,
        /// The reason, typed.
        reason: FinishReason,
        /// The reason as sent.
        raw: &'a str,
    },
    /// Token counts. May come on every chunk (cumulative): the last one counts.
    Usage(Usage),
    /// A comment line, or an event without a payload: the stream is alive and says nothing.
    KeepAlive,
    /// A chunk's choice with nothing in it.
    Empty {
        /// `choices[].index`.
        choice: u16,
    },
    /// An error object, in a 200 stream or as a body. The message may quote the request:
    /// count it, show it, never record it.
    Error {
        /// At most 512 bytes of the message; empty when none was sent.
        message: &'a str,
        /// The error's code as sent (number or string), at most 64 bytes.
        code: Option<&'a str>,
        /// The error's type, at most 64 bytes.
        kind: Option<&'a str>,
    },
    /// The terminal marker: `[DONE]`, or the `metadata` with which a Converse stream ends.
    Done,
    /// JSON without any meaning known here: passed over, and counted in `Counts::unknown`.
    Unknown,
}
