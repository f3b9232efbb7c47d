//! A choice's `delta` or `message`, read by hand to notice members that are not known here.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use smallvec::SmallVec;

use super::chunk::{Function, ToolCall};
use crate::text::Text;

#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) role: Option<Text<'a>>,
    pub(super) content: Option<Text<'a>>,
    pub(super) reasoning_content: Option<Text<'a>>,
    pub(super) reasoning: Option<Text<'a>>,
    pub(super) refusal: Option<Text<'a>>,
    pub(super) tool_calls: Option<SmallVec<[ToolCall<'a>; 1]>>,
    /// The deprecated single call.
    pub(super) function_call: Option<Box<Function<'a>>>,
    /// A member that is not known here has a value other than null.
    pub(super) unknown: bool,
}

#[derive(serde::Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Member {
    Role,
    Content,
    ReasoningContent,
    Reasoning,
    Refusal,
    ToolCalls,
    FunctionCall,
    #[serde(other)]
    Other,
}

impl<'de: 'a, 'a> Deserialize<'de> for Delta<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DeltaVisitor(PhantomData))
    }
}

struct DeltaVisitor<'a>(PhantomData<&'a str>);

impl<'de: 'a, 'a> Visitor<'de> for DeltaVisitor<'a> {
    type Value = Delta<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a delta or message object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut delta = Delta::default();
        while let Some(member) = members.next_key()? {
            match member {
                Member::Role => delta.role = members.next_value()?,
                Member::Content => delta.content = members.next_value()?,
                Member::ReasoningContent => delta.reasoning_content = members.next_value()?,
                Member::Reasoning => delta.reasoning = members.next_value()?,
                Member::Refusal => delta.refusal = members.next_value()?,
                Member::ToolCalls => delta.tool_calls = members.next_value()?,
                Member::FunctionCall => delta.function_call = members.next_value()?,
                Member::Other => {
                    delta.unknown |= members.next_value::<Option<IgnoredAny>>()?.is_some();
                }
            }
        }
        Ok(delta)
    }
}
