//! The JSON of events and bodies: only the members acted on.

use crate::event::{StreamEvent, Usage};
use crate::text::Text;
use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// Any event of a stream: which members are there depends on its type.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(default)]
    pub(super) output_index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Text<'a>>,
    /// Read only where it says something new: the last events repeat the whole answer.
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The response, in a body or in the event of its begin or end.
#[derive(Debug, Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) status: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<Why<'a>>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Why<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Option<Text<'a>>,
}

/// An item of the output: a message, reasoning, a call.
#[derive(Debug, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    call_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Text<'a>>,
    /// The arguments of a custom tool.
    #[serde(borrow, default)]
    input: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Option<SmallVec<[Part<'a>; 1]>>,
    #[serde(borrow, default)]
    pub(super) summary: Option<SmallVec<[Part<'a>; 1]>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Text<'a>>,
}

impl Item<'_> {
    fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", |kind| kind.as_str())
    }

    pub(super) fn is_message(&self) -> bool {
        self.kind() == "message"
    }

    /// It calls a tool by name: the caller's, or one over MCP, which the server itself calls.
    pub(super) fn is_call(&self) -> bool {
        self.asks() || self.kind() == "mcp_call"
    }

    /// It asks the caller to call a tool.
    pub(super) fn asks(&self) -> bool {
        matches!(self.kind(), "function_call" | "custom_tool_call")
    }

    pub(super) fn called(&self, tool: u16) -> StreamEvent<'_> {
        let id = self.call_id.as_ref().or(self.id.as_ref());
        StreamEvent::ToolCall {
            choice: 0,
            tool,
            id: id.map(|id| id.as_str()),
            name: self.name.as_ref().map(|name| name.as_str()),
        }
    }

    pub(super) fn arguments(&self) -> &str {
        let arguments = self.arguments.as_ref().or(self.input.as_ref());
        arguments.map_or("", |arguments| arguments.as_str())
    }
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<Details>,
    #[serde(default)]
    output_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

/// The counts of a `usage`, whose input includes what was cached; `None` when it cannot be read or says nothing.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    raw.get().starts_with('{').then_some(())?;
    let raw: Raw = serde_json::from_str(raw.get()).ok()?;
    let usage = Usage {
        prompt_tokens: raw.input_tokens,
        completion_tokens: raw.output_tokens,
        cached_tokens: raw.input_tokens_details.and_then(|d| d.cached_tokens),
        reasoning_tokens: raw.output_tokens_details.and_then(|d| d.reasoning_tokens),
        total_tokens: raw.total_tokens,
        cache_write_tokens: None,
    };
    (usage != Usage::default()).then_some(usage)
}
