//! The JSON of events and bodies: only the members acted on.

use crate::text::Text;
use crate::tokens::Tokens;
use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// Any event of a stream: which members are there depends on its type.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// Read apart: an odd one must not cost the reason that came with it.
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The message that `message_start` announces.
#[derive(Debug, Deserialize)]
pub(super) struct Start<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Text<'a>>,
}

/// A block of content: all of it in a body, its beginning in a stream.
#[derive(Debug, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Text<'a>>,
    /// In a body: the whole input. In a stream an empty object holds its place.
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

impl Block<'_> {
    /// It calls a tool: the caller's, the server's or one over MCP.
    pub(super) fn is_call(&self) -> bool {
        let kind = self.kind.as_ref().map_or("", |kind| kind.as_str());
        matches!(kind, "tool_use" | "server_tool_use" | "mcp_tool_use")
    }
}

/// A body.
#[derive(Debug, Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Option<SmallVec<[Block<'a>; 1]>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
}

/// The counts of a `usage`; `None` when it cannot be read.
pub(super) fn tokens(raw: &RawValue) -> Option<Tokens> {
    raw.get().starts_with('{').then_some(())?;
    let usage: Usage = serde_json::from_str(raw.get()).ok()?;
    Some(Tokens {
        input: usage.input_tokens,
        cache_read: usage.cache_read_input_tokens,
        cache_write: usage.cache_creation_input_tokens,
        output: usage.output_tokens,
        total: None,
    })
}
