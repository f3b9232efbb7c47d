//! Errors that servers put into a stream or a body, in the shapes that they use:
//! `{"error":{"message","type","code"}}` (OpenAI, Anthropic, LiteLLM, vLLM, llama.cpp), `{"error":"text"}`,
//! `{"object":"error","message",…}` (older vLLM), `{"message"}` (AWS), Bifrost's error with its status, and
//! where a limit refused also its type, beside it, and an SSE event named `error` with any of these or with
//! plain text.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::StreamEvent;
use crate::text::Text;

const MAX_MESSAGE_BYTES: usize = 512;
const MAX_CODE_BYTES: usize = 64;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Fault<'a> {
    #[serde(borrow, default)]
    message: Option<Text<'a>>,
    /// Bifrost's cause, where the message is missing.
    #[serde(borrow, default, rename = "error")]
    cause: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) code: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    /// An error that is not an object.
    #[serde(skip)]
    plain: Option<Cow<'a, str>>,
}

impl<'a> Fault<'a> {
    /// The error of an SSE event named `error` whose data is not a chunk.
    pub(crate) fn of_event(text: &'a str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::of_json(text))
    }

    /// The error that a JSON value is; one that is no object is its own message.
    pub(crate) fn of_json(json: &'a str) -> Self {
        serde_json::from_str(json).unwrap_or_else(|_| Self {
            plain: Some(
                serde_json::from_str::<String>(json).map_or(Cow::Borrowed(json), Cow::Owned),
            ),
            ..Self::default()
        })
    }

    /// An error of a message and a code.
    pub(crate) fn coded<'e>(message: &'e str, code: Option<&'e str>) -> StreamEvent<'e> {
        StreamEvent::Error {
            message: bounded(message, MAX_MESSAGE_BYTES),
            code: code.map(|code| bounded(code, MAX_CODE_BYTES)),
            kind: None,
        }
    }

    pub(crate) fn event(&self) -> StreamEvent<'_> {
        self.named(self.kind.as_ref().map(Text::as_str))
    }

    /// Its event under a type that stands elsewhere.
    pub(crate) fn named<'e>(&'e self, kind: Option<&'e str>) -> StreamEvent<'e> {
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
            kind: kind.map(|kind| bounded(kind, MAX_CODE_BYTES)),
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
