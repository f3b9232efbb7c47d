//! From the JSON shape to stream events.

use super::choice::Choice;
use super::chunk::{Chunk, Function};
use super::delta::Delta;
use crate::event::{Field, FinishReason, StreamEvent, TextDelta};
use crate::payload::Events;
use crate::text::Text;

pub(super) fn lower<'e>(chunk: &'e Chunk<'_>, events: &mut Events<'e>) {
    for (position, choice) in chunk.choices().iter().enumerate() {
        let before = events.len();
        let index = choice.index.unwrap_or_else(|| bounded(position));
        let unknown = lower_choice(index, choice, events);
        if events.len() == before {
            events.push(if unknown {
                StreamEvent::Unknown
            } else {
                StreamEvent::Empty { choice: index }
            });
        }
    }
}

/// Gives the choice's events; `true` when it also has members that are not known here.
fn lower_choice<'e>(index: u16, choice: &'e Choice<'_>, events: &mut Events<'e>) -> bool {
    if let Some(delta) = &choice.delta {
        lower_delta(index, delta, events);
    } else {
        push_text(index, Field::Content, 0, choice.text.as_ref(), events);
    }
    if let Some(raw) = not_empty(choice.finish_reason.as_ref()) {
        events.push(StreamEvent::Finish {
            choice: index,
            reason: FinishReason::from_raw(raw),
            raw,
        });
    }
    choice.delta.as_ref().is_some_and(|delta| delta.unknown)
}

fn lower_delta<'e>(index: u16, delta: &'e Delta<'_>, events: &mut Events<'e>) {
    if not_empty(delta.role.as_ref()).is_some() {
        events.push(StreamEvent::Role { choice: index });
    }
    // Servers that send both members send the same text in both.
    let reasoning = [&delta.reasoning_content, &delta.reasoning]
        .into_iter()
        .flatten()
        .find(|text| !text.as_str().is_empty());
    push_text(index, Field::Reasoning, 0, reasoning, events);
    push_text(index, Field::Content, 0, delta.content.as_ref(), events);
    push_text(index, Field::Refusal, 0, delta.refusal.as_ref(), events);
    if let Some(function) = &delta.function_call {
        lower_function(index, 0, None, Some(&**function), events);
    }
    for (position, call) in delta.tool_calls.iter().flatten().enumerate() {
        let tool = call.index.unwrap_or_else(|| bounded(position));
        let id = not_empty(call.id.as_ref());
        lower_function(index, tool, id, call.function.as_ref(), events);
    }
}

fn lower_function<'e>(
    choice: u16,
    tool: u16,
    id: Option<&'e str>,
    function: Option<&'e Function<'_>>,
    events: &mut Events<'e>,
) {
    let name = not_empty(function.and_then(|function| function.name.as_ref()));
    if id.is_some() || name.is_some() {
        events.push(StreamEvent::ToolCall {
            choice,
            tool,
            id,
            name,
        });
    }
    let arguments = function.and_then(|function| function.arguments.as_ref());
    push_text(choice, Field::ToolArguments, tool, arguments, events);
}

fn push_text<'e>(
    choice: u16,
    field: Field,
    tool: u16,
    text: Option<&'e Text<'_>>,
    events: &mut Events<'e>,
) {
    if let Some(text) = not_empty(text) {
        events.push(StreamEvent::Text(TextDelta {
            choice,
            field,
            tool,
            text,
        }));
    }
}

fn not_empty<'e>(text: Option<&'e Text<'_>>) -> Option<&'e str> {
    text.map(Text::as_str).filter(|text| !text.is_empty())
}

fn bounded(position: usize) -> u16 {
    u16::try_from(position).unwrap_or(u16::MAX)
}
