//! One element of `choices`, read by hand: `delta` and `message` share a place, because a chunk's
//! cost is mostly that of moving its structs.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::delta::Delta;
use crate::text::Text;

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u16>,
    /// `delta`, or `message` without a delta. Servers that send both accumulate in `message`
    /// what they sent in deltas.
    pub(super) delta: Option<Delta<'a>>,
    pub(super) text: Option<Text<'a>>,
    pub(super) finish_reason: Option<Text<'a>>,
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Member {
    Index,
    Delta,
    Message,
    Text,
    FinishReason,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Choice<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ChoiceVisitor(PhantomData))
    }
}

struct ChoiceVisitor<'a>(PhantomData<&'a str>);

impl<'de: 'a, 'a> Visitor<'de> for ChoiceVisitor<'a> {
    type Value = Choice<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a choice object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut choice = Choice::default();
        let mut has_delta = false;
        while let Some(member) = members.next_key()? {
            match member {
                Member::Index => choice.index = members.next_value()?,
                Member::Delta => {
                    if let Some(delta) = members.next_value()? {
                        choice.delta = Some(delta);
                        has_delta = true;
                    }
                }
                Member::Message if !has_delta => choice.delta = members.next_value()?,
                Member::Text => choice.text = members.next_value()?,
                Member::FinishReason => choice.finish_reason = members.next_value()?,
                Member::Message | Member::Other => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(choice)
    }
}
