//! The JSON of a chunk or body: only the members acted on; the rest is skipped unread.

use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::choice::Choice;
use crate::fault::Fault;
use crate::text::Text;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) object: Option<Text<'a>>,
    #[serde(borrow, default)]
    choices: Option<SmallVec<[Choice<'a>; 1]>>,
    /// Read apart, so that an odd usage does not cost the text that came with it.
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// Bifrost puts the status beside the error object.
    #[serde(borrow, default)]
    pub(super) status_code: Option<&'a RawValue>,
    /// And the type of an error of its own, such as a limit's.
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    pub(super) fn choices(&self) -> &[Choice<'a>] {
        self.choices.as_deref().unwrap_or_default()
    }

    pub(super) fn has_choices(&self) -> bool {
        !self.choices().is_empty()
    }

    /// Its error, if it has one. `text` is the chunk's JSON.
    pub(super) fn fault(&self, text: &'a str, error_event: bool) -> Option<Fault<'a>> {
        if let Some(error) = self.error {
            let mut fault = Fault::of_json(error.get());
            fault.code = fault.code.or(self.status_code);
            if self.status_code.is_some() {
                fault.kind = fault.kind.or_else(|| {
                    let kind = self.kind?;
                    serde_json::from_str(kind.get()).ok()
                });
            }
            return Some(fault);
        }
        let flat = self
            .object
            .as_ref()
            .is_some_and(|object| object.as_str() == "error");
        (flat || error_event).then(|| Fault::of_json(text))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCall<'a> {
    #[serde(default)]
    pub(super) index: Option<u16>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) function: Option<Function<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<Text<'a>>,
}
