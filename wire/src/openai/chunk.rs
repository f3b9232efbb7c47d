//! The JSON of a chunk or body: only the members acted on; the rest is skipped unread.

use serde::{Deserialize, de};
use serde_json::value::RawValue;
use smallvec::SmallVec;

use super::choice::Choice;
use crate::text::Text;

/// Reads a chunk; anything but an object is an error of the kind "data".
pub(super) fn read(json: &str) -> Result<Chunk<'_>, serde_json::Error> {
    let chunk = serde_json::from_str(json)?;
    // serde would read an array as a struct's members in order.
    if json.trim_ascii_start().starts_with('[') {
        return Err(de::Error::invalid_type(
            de::Unexpected::Seq,
            &"a chunk object",
        ));
    }
    Ok(chunk)
}

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
