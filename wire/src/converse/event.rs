//! The JSON of frames and bodies: only the members acted on.

use crate::text::Text;
use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// The payload of any event: which members are there depends on its type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Event<'a> {
    #[serde(default)]
    pub(crate) content_block_index: Option<u64>,
    #[serde(borrow, default)]
    pub(crate) start: Option<Start<'a>>,
    #[serde(borrow, default)]
    pub(crate) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(crate) stop_reason: Option<Text<'a>>,
    /// Read apart, as the next two: an odd one must not cost the end of the stream.
    #[serde(borrow, default)]
    pub(crate) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) metrics: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) trace: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Start<'a> {
    #[serde(borrow, default)]
    pub(crate) tool_use: Option<ToolUse<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(crate) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) tool_use: Option<ToolDelta<'a>>,
    #[serde(borrow, default)]
    pub(crate) reasoning_content: Option<Thought<'a>>,
}

/// A piece of a tool's input: JSON in pieces.
#[derive(Debug, Deserialize)]
pub(crate) struct ToolDelta<'a> {
    #[serde(borrow, default)]
    pub(crate) input: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Thought<'a> {
    #[serde(borrow, default)]
    pub(crate) text: Option<Text<'a>>,
}

/// A body; of a refusal, only `message`, and its type where no header has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer<'a> {
    #[serde(borrow, default)]
    pub(crate) output: Option<Output<'a>>,
    #[serde(borrow, default)]
    pub(crate) stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) metrics: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) trace: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Message")]
    pub(crate) message: Option<Text<'a>>,
    #[serde(borrow, default, rename = "__type")]
    pub(crate) kind: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Output<'a> {
    #[serde(borrow, default)]
    pub(crate) message: Option<Message<'a>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Option<SmallVec<[Block<'a>; 1]>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Block<'a> {
    #[serde(borrow, default)]
    pub(crate) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) tool_use: Option<ToolUse<'a>>,
    #[serde(borrow, default)]
    pub(crate) reasoning_content: Option<WholeThought<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WholeThought<'a> {
    #[serde(borrow, default)]
    pub(crate) reasoning_text: Option<Thought<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolUse<'a> {
    #[serde(borrow, default)]
    pub(crate) tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) name: Option<Text<'a>>,
    /// In a body: the whole input.
    #[serde(borrow, default)]
    pub(crate) input: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metrics {
    #[serde(default)]
    pub(crate) latency_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Trace<'a> {
    #[serde(borrow, default)]
    pub(crate) guardrail: Option<&'a RawValue>,
}
