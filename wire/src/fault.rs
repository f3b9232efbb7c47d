//! Errors that servers put into a stream or a body, in the shapes that they use:
//! `{"error":{"message","type","code"}}` (OpenAI, LiteLLM, vLLM, llama.cpp), `{"error":"text"}`,
//! `{"object":"error","message",…}` (older vLLM), Bifrost's error with its status, and where a limit
//! refused also its type, beside it, and an SSE event named `error` with any of these or with plain text.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::chunk::Chunk;
use crate::event::StreamEvent;
use crate::text::Text;

const MAX_MESSAGE_BYTES: usize = 512;
const MAX_CODE_BYTES: usize = 64;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Fault<'a> {
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    /// Bifrost's cause, where the message is missing.
    #[serde(borrow, default, rename = "error")]
    cause: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    /// An error that is not an object.
    #[serde(skip)]
    plain: Option<Cow<'a, str>>,
}

impl<'a> Fault<'a> {
    /// The error of a chunk, if it has one. `text` is the chunk's JSON.
    pub(super) fn of_chunk(chunk: &Chunk<'a>, text: &'a str, error_event: bool) -> Option<Self> {
        if let Some(error) = chunk.error {
            let mut fault = Self::of_member(error.get());
            fault.code = fault.code.or(chunk.status_code);
            if chunk.status_code.is_some() {
                fault.kind = fault.kind.or_else(|| {
                    let kind = chunk.kind?;
                    serde_json::from_str(kind.get()).ok()
                });
            }
            return Some(fault);
        }
        let flat = chunk
            .object
            .as_ref()
            .is_some_and(|object| object.as_str() == "error");
        (flat || error_event).then(|| Self::of_member(text))
    }

    /// The error of an SSE event named `error` whose data is not a chunk.
    pub(super) fn of_event(text: &'a str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::of_member(text))
    }

    fn of_member(json: &'a str) -> Self {
        serde_json::from_str(json).unwrap_or_else(|_| Self {
            plain: Some(
                serde_json::from_str::<String>(json).map_or(Cow::Borrowed(json), Cow::Owned),
            ),
            ..Self::default()
        })
    }

    pub(super) fn event(&self) -> StreamEvent<'_> {
        let cause = self.cause.map(|cause| unquoted(cause.get()));
        let message = self
            .message
            .as_ref()
            .map(Text::as_str)
            .or(cause)
            .or(self.plain.as_deref());
        StreamEvent::Error {
            message: bounded(message.unwrap_or_default(), MAX_MESSAGE_BYTES),
            code: self
                .code
                .map(|code| bounded(unquoted(code.get()), MAX_CODE_BYTES)),
            kind: self
                .kind
                .as_ref()
                .map(|kind| bounded(kind.as_str(), MAX_CODE_BYTES)),
        }
    }
}

/// A JSON string without its quotes, its escapes as they are; anything else as it is.
fn unquoted(json: &str) -> &str {
    json.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(json)
}

fn bounded(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
