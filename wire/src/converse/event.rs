//! The JSON of frames and bodies: only the members acted on.

use super::bounded;
use crate::event::StreamEvent;
use crate::text::Text;
use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// The payload of any event: which members are there depends on its type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(default)]
    pub(super) content_block_index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) start: Option<Start<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Text<'a>>,
    /// Read apart: an odd one must not cost the end of the stream.
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<'a> {
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolUse<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolDelta<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Thought<'a>>,
}

/// A piece of a tool's input: JSON in pieces.
#[derive(Debug, Deserialize)]
pub(super) struct ToolDelta<'a> {
    #[serde(borrow, default)]
    pub(super) input: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Thought<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
}

/// A body; of a refusal, only `message`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer<'a> {
    #[serde(borrow, default)]
    pub(super) output: Option<Output<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default, alias = "Message")]
    pub(super) message: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<SmallVec<[Block<'a>; 1]>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolUse<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<WholeThought<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WholeThought<'a> {
    #[serde(borrow, default)]
    pub(super) reasoning_text: Option<Thought<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    #[serde(borrow, default)]
    pub(super) tool_use_id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    /// In a body: the whole input.
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

/// The payload of an exception.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Fault<'a> {
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
}

impl Fault<'_> {
    /// Its event, where the frame names it `kind`.
    pub(super) fn event<'e>(&'e self, kind: Option<&'e str>) -> StreamEvent<'e> {
        StreamEvent::Error {
            message: bounded(self.message.as_ref().map_or("", |text| text.as_str())),
            code: None,
            kind,
        }
    }
}
