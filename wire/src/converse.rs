//! Bedrock's Converse: the frames of an answer that is streamed, and the body of one that is not, to stream
//! events. The shapes are those of the service model `bedrock-runtime` 2023-09-30 that AWS' SDKs ship.
//!
//! A block of content has an index of its own, which counts text, reasoning and tool calls alike; here tool
//! calls are counted among themselves, as the other dialects do, so that hops can be compared. Text that only
//! pads a frame (`p`) is no content.

mod event;
mod usage;

#[cfg(test)]
mod tests;

use crate::decoder::{Counts, Framed};
use crate::event::{Field, FinishReason, StreamEvent, TextDelta};
use crate::eventstream::Frame;
use event::{Answer, Block, Delta, Event, Fault};
use serde::Deserialize;
use smallvec::SmallVec;

/// The longest message of an error that is given on, in bytes.
const MAX_MESSAGE_BYTES: usize = 512;

/// Events of one frame; a usual frame needs no allocation.
type Events<'e> = SmallVec<[StreamEvent<'e>; 4]>;

/// Turns frames into events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Converse {
    pub(crate) counts: Counts,
    /// The content blocks that are tool calls, in their order.
    tools: SmallVec<[u64; 4]>,
}

impl Converse {
    /// One frame of a stream.
    pub(crate) fn frame(&mut self, frame: &Frame<'_>, sink: &mut impl FnMut(Framed<'_>)) {
        match frame.header(":message-type") {
            Some("event") => self.event(frame, sink),
            Some("exception") => {
                let fault = read::<Fault<'_>>(frame.payload).unwrap_or_default();
                give(
                    &[fault.event(frame.header(":exception-type"))],
                    false,
                    frame.end,
                    sink,
                );
            }
            Some("error") => {
                let message = frame.header(":error-message").unwrap_or_default();
                let error = StreamEvent::Error {
                    message: bounded(message),
                    code: frame.header(":error-code"),
                    kind: None,
                };
                give(&[error], false, frame.end, sink);
            }
            _ => self.unknown(frame.end, sink),
        }
    }

    /// A whole JSON body.
    pub(crate) fn body(&mut self, body: &[u8], sink: &mut impl FnMut(Framed<'_>)) {
        let end = body.len() as u64;
        let answer = match read::<Answer<'_>>(body) {
            Ok(answer) => answer,
            Err(error) => return self.unreadable(&error, end, sink),
        };
        let mut events = Events::new();
        let message = answer.output.as_ref().and_then(|o| o.message.as_ref());
        let has_choices = message.is_some();
        if let Some(message) = message {
            events.push(StreamEvent::Role { choice: 0 });
            let blocks = message.content.iter().flatten();
            blocks.for_each(|block| self.block(block, &mut events));
        }
        events.extend(answer.stop_reason.as_ref().map(|raw| finish(raw.as_str())));
        events.extend(answer.usage.and_then(usage::read).map(StreamEvent::Usage));
        if let (true, Some(message)) = (events.is_empty(), answer.message.as_ref()) {
            events.push(StreamEvent::Error {
                message: bounded(message.as_str()),
                code: None,
                kind: None,
            });
        }
        if events.is_empty() {
            return self.unknown(end, sink);
        }
        give(&events, has_choices, end, sink);
    }

    fn event(&mut self, frame: &Frame<'_>, sink: &mut impl FnMut(Framed<'_>)) {
        let event = match read::<Event<'_>>(frame.payload) {
            Ok(event) => event,
            Err(error) => return self.unreadable(&error, frame.end, sink),
        };
        let mut events = Events::new();
        let index = event.content_block_index.unwrap_or(0);
        let empty = StreamEvent::Empty { choice: 0 };
        match frame.header(":event-type") {
            Some("messageStart") => events.push(StreamEvent::Role { choice: 0 }),
            Some("contentBlockStart") => {
                let call = event.start.as_ref().and_then(|s| s.tool_use.as_ref());
                events.push(call.map_or(empty, |call| StreamEvent::ToolCall {
                    choice: 0,
                    tool: self.tool(index),
                    id: call.tool_use_id.as_ref().map(|id| id.as_str()),
                    name: call.name.as_ref().map(|name| name.as_str()),
                }));
            }
            Some("contentBlockDelta") => {
                let text = event.delta.as_ref().and_then(|d| self.delta(index, d));
                events.push(text.map_or(empty, StreamEvent::Text));
            }
            Some("contentBlockStop") => events.push(empty),
            Some("messageStop") => {
                let raw = event.stop_reason.as_ref().map_or("", |raw| raw.as_str());
                events.push(finish(raw));
            }
            Some("metadata") => {
                let usage = event.usage.map(usage::read);
                self.counts.unknown += u64::from(usage == Some(None));
                events.extend(usage.flatten().map(StreamEvent::Usage));
                events.push(StreamEvent::Done);
            }
            _ => return self.unknown(frame.end, sink),
        }
        let of_choice = !matches!(events.last(), Some(StreamEvent::Done));
        give(&events, of_choice, frame.end, sink);
    }

    /// The text of a delta; `None` of one without (a signature, a citation).
    fn delta<'e>(&mut self, index: u64, delta: &'e Delta<'_>) -> Option<TextDelta<'e>> {
        let thought = delta.reasoning_content.as_ref();
        let input = delta.tool_use.as_ref().and_then(|t| t.input.as_ref());
        let (field, tool, text) = if let Some(text) = &delta.text {
            (Field::Content, 0, text)
        } else if let Some(text) = thought.and_then(|r| r.text.as_ref()) {
            (Field::Reasoning, 0, text)
        } else {
            (Field::ToolArguments, self.tool(index), input?)
        };
        text_of(field, tool, text.as_str())
    }

    /// A block of a body.
    fn block<'e>(&mut self, block: &'e Block<'_>, events: &mut Events<'e>) {
        let before = events.len();
        let thought = block.reasoning_content.as_ref();
        let thought = thought.and_then(|r| r.reasoning_text.as_ref()?.text.as_ref());
        for (field, text) in [
            (Field::Content, block.text.as_ref()),
            (Field::Reasoning, thought),
        ] {
            let text = text.and_then(|text| text_of(field, 0, text.as_str()));
            events.extend(text.map(StreamEvent::Text));
        }
        if let Some(call) = &block.tool_use {
            let tool = self.tool(self.tools.len() as u64);
            events.push(StreamEvent::ToolCall {
                choice: 0,
                tool,
                id: call.tool_use_id.as_ref().map(|id| id.as_str()),
                name: call.name.as_ref().map(|name| name.as_str()),
            });
            let input = call.input.map_or("", |input| input.get());
            let text = text_of(Field::ToolArguments, tool, input);
            events.extend(text.map(StreamEvent::Text));
        }
        if events.len() == before {
            events.push(StreamEvent::Empty { choice: 0 });
        }
    }

    /// Which tool call a content block is.
    fn tool(&mut self, block: u64) -> u16 {
        let known = self.tools.iter().position(|known| *known == block);
        let at = known.unwrap_or_else(|| {
            self.tools.push(block);
            self.tools.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    fn unknown(&mut self, end: u64, sink: &mut impl FnMut(Framed<'_>)) {
        self.counts.unknown += 1;
        give(&[StreamEvent::Unknown], false, end, sink);
    }

    fn unreadable(
        &mut self,
        error: &serde_json::Error,
        end: u64,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        match error.classify() {
            serde_json::error::Category::Data => self.unknown(end, sink),
            _ => self.counts.malformed += 1,
        }
    }
}

/// Reads an object; an array is none, though serde would take one.
fn read<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, serde_json::Error> {
    let value = serde_json::from_slice(json)?;
    match json.trim_ascii_start().starts_with(b"[") {
        true => Err(serde::de::Error::custom("an array")),
        false => Ok(value),
    }
}

fn text_of(field: Field, tool: u16, text: &str) -> Option<TextDelta<'_>> {
    (!text.is_empty()).then_some(TextDelta {
        choice: 0,
        field,
        tool,
        text,
    })
}

fn finish(raw: &str) -> StreamEvent<'_> {
    let reason = match raw {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        "malformed_model_output" | "malformed_tool_use" => FinishReason::Error,
        _ => FinishReason::Other,
    };
    StreamEvent::Finish {
        choice: 0,
        reason,
        raw,
    }
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)]
}

fn give(
    events: &[StreamEvent<'_>],
    has_choices: bool,
    end: u64,
    sink: &mut impl FnMut(Framed<'_>),
) {
    sink(Framed {
        events,
        has_choices,
        end,
        unterminated: false,
    });
}
