//! What the meter and the load generator act on: one framed event holds any number of these.

use serde::{Deserialize, Serialize};

/// Where text accumulates. Text positions count decoded UTF-8 bytes of one (choice, field, tool).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// `delta.content`, `message.content`, `text` of the completions dialect, a text block of Converse and of
    /// Anthropic's messages, `output_text` of OpenAI's responses, Llama's `generation`, an agent's own text.
    Content,
    /// `reasoning_content` or `reasoning`, a `thinking` block, reasoning text and its summary. A chunk that
    /// carries the first two carries the same text twice: `reasoning_content` is taken and the other ignored.
    Reasoning,
    /// `tool_calls[i].function.arguments`, or the JSON of a tool block's input.
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
    /// `tool_calls[].index` for [`Field::ToolArguments`], otherwise 0. Where a dialect counts tool calls among
    /// other blocks, they are counted among themselves, so that hops of two dialects can be compared.
    pub tool: u16,
    /// The decoded text.
    pub text: &'a str,
}

/// Why a choice ended: `finish_reason` of OpenAI's chat (`abort` and `error` are vLLM's and gateways'),
/// `stop_reason` of Anthropic's messages and of Llama, `stopReason` of Converse, `status` of OpenAI's responses
/// or the reason of an incomplete one, and what an MCP server answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// A natural end or a stop sequence.
    Stop,
    /// The token limit, or the end of the context, was reached.
    Length,
    /// The model called tools.
    ToolCalls,
    /// The deprecated form of [`FinishReason::ToolCalls`].
    FunctionCall,
    /// Text was withheld by a filter or a guardrail.
    ContentFilter,
    /// The engine gave the request up.
    Abort,
    /// The engine, a gateway or a tool failed.
    Error,
    /// A reason that is none of these; the event's `raw` has it.
    Other,
}

impl FinishReason {
    /// The reason that a raw one of any dialect names: no name means two things.
    pub fn from_raw(raw: &str) -> Self {
        match raw {
            "stop" | "end_turn" | "stop_sequence" | "completed" | "result" => Self::Stop,
            "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded" => {
                Self::Length
            }
            "tool_calls" | "tool_use" => Self::ToolCalls,
            "function_call" => Self::FunctionCall,
            "content_filter" | "content_filtered" | "guardrail_intervened" | "refusal" => {
                Self::ContentFilter
            }
            "abort" | "cancelled" => Self::Abort,
            "error" | "failed" | "isError" | "malformed_model_output" | "malformed_tool_use" => {
                Self::Error
            }
            _ => Self::Other,
        }
    }
}

/// Token counts as the server reports them (`usage`). What it does not say is `None`, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Usage {
    /// `prompt_tokens`: input tokens, those read from a cache or written to one included. Of Converse,
    /// Anthropic's messages and InvokeModel, the sum of their three counts.
    pub prompt_tokens: Option<u64>,
    /// `completion_tokens`: output tokens, reasoning included.
    pub completion_tokens: Option<u64>,
    /// `prompt_tokens_details.cached_tokens`: the part of the prompt served from a cache.
    pub cached_tokens: Option<u64>,
    /// `completion_tokens_details.reasoning_tokens`: the part of the output that was reasoning.
    pub reasoning_tokens: Option<u64>,
    /// `total_tokens`, as sent; not checked against the sum.
    pub total_tokens: Option<u64>,
    /// `cacheWriteInputTokens`, `cache_creation_input_tokens`: the part of the prompt that was written to a
    /// cache, for which providers charge more.
    pub cache_write_tokens: Option<u64>,
}

/// What a service measured of its own work on a call, in its own milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ServerFigures {
    /// The whole invocation: Converse's `metrics.latencyMs`, InvokeModel's `invocationLatency`.
    pub latency_ms: Option<u64>,
    /// To the model's first byte: InvokeModel's `firstByteLatency`. Bedrock gives it on streams only.
    pub first_byte_ms: Option<u64>,
}

/// What a guardrail of Bedrock did to a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guardrail {
    /// It blocked or masked something.
    pub intervened: bool,
    /// `guardrailProcessingLatency` of all assessments, of input and output, added: milliseconds of work, some
    /// of which may have passed while text was streamed. `None` without a trace.
    pub latency_ms: Option<u64>,
    /// Text units that are charged, by policy, of all assessments added.
    pub units: GuardrailUnits,
}

/// Units that a guardrail charges for, by policy: the members of the service model's `GuardrailUsage`. What the
/// trace does not say is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardrailUnits {
    /// Denied topics.
    #[serde(alias = "topicPolicyUnits")]
    pub topic: Option<u32>,
    /// Content filters, of text.
    #[serde(alias = "contentPolicyUnits")]
    pub content: Option<u32>,
    /// Content filters, of images.
    #[serde(alias = "contentPolicyImageUnits")]
    pub content_image: Option<u32>,
    /// Word filters.
    #[serde(alias = "wordPolicyUnits")]
    pub word: Option<u32>,
    /// Sensitive information by the service's own detectors.
    #[serde(alias = "sensitiveInformationPolicyUnits")]
    pub sensitive: Option<u32>,
    /// Sensitive information by regular expressions, which cost nothing.
    #[serde(alias = "sensitiveInformationPolicyFreeUnits")]
    pub sensitive_free: Option<u32>,
    /// Contextual grounding.
    #[serde(alias = "contextualGroundingPolicyUnits")]
    pub grounding: Option<u32>,
    /// Automated reasoning.
    #[serde(alias = "automatedReasoningPolicyUnits")]
    pub reasoning: Option<u32>,
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
    /// Token counts. May come on every chunk (cumulative): the last one counts, and has all that is known.
    Usage(Usage),
    /// The service's own times. May come more than once: what a later one leaves out still holds.
    Server(ServerFigures),
    /// What a guardrail did.
    Guardrail(Guardrail),
    /// A comment line, a `ping`, or an event without a payload: the stream is alive and says nothing.
    KeepAlive,
    /// A chunk's choice with nothing in it, or an event that only structures the stream: a block's or item's
    /// begin and end, a notification, text that was already given.
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
    /// The terminal marker: `[DONE]`; `metadata` of a Converse stream; `message_stop` of Anthropic's messages;
    /// `response.completed`, `.incomplete` or `.failed` of OpenAI's responses; of an InvokeModel stream the
    /// event with the service's metrics; the JSON-RPC response of MCP.
    Done,
    /// JSON without any meaning known here: passed over, and counted in `Counts::unknown`.
    Unknown,
}
