//! Bedrock's Converse: the frames of an answer that is streamed, and the body of one that is not, to stream
//! events. The shapes are those of the service model `bedrock-runtime` 2023-09-30 that AWS' SDKs ship.
//!
//! A block of content has an index of its own, which counts text, reasoning and tool calls alike; here tool
//! calls are counted among themselves, as the other dialects do, so that hops can be compared. Text that only
//! pads a frame (`p`) is no content.

pub(crate) mod event;
pub(crate) mod usage;

#[cfg(test)]
mod tests;

use crate::decoder::{Counts, Framed};
use crate::event::{Field, FinishReason, ServerFigures, StreamEvent};
use crate::eventstream::Frame;
use crate::fault::Fault;
use crate::guardrail;
use crate::payload::{Events, NOTHING, Place, object, text};
use crate::tokens::Tokens;
use crate::tools::Tools;
use event::{Answer, Block, Delta, Event, Metrics, ToolUse, Trace};
use serde_json::value::RawValue;

/// Turns frames into events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Converse {
    pub(crate) counts: Counts,
    tools: Tools,
    /// The message that the stream is at: an agent's stream has several.
    message: u64,
    /// The answer ended with `guardrail_intervened`.
    guarded: bool,
}

impl Converse {
    /// One frame of a stream.
    pub(crate) fn frame(&mut self, frame: &Frame<'_>, sink: &mut impl FnMut(Framed<'_>)) {
        let place = Place::of_frame(frame.end);
        match frame.header(":message-type") {
            Some("event") => self.event(frame, place, sink),
            Some("exception") => {
                let json = std::str::from_utf8(frame.payload).unwrap_or_default();
                let fault = Fault::of_json(json);
                let error = fault.named(frame.header(":exception-type"));
                place.give(&[error], false, sink);
            }
            Some("error") => {
                let message = frame.header(":error-message").unwrap_or_default();
                place.give(
                    &[Fault::coded(message, frame.header(":error-code"))],
                    false,
                    sink,
                );
            }
            _ => self.counts.unknown(place, sink),
        }
    }

    /// A whole JSON body.
    pub(crate) fn body(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let Some((answer, _)) = self.counts.read::<Answer<'_>>(payload, place, sink) else {
            return;
        };
        let mut events = Events::new();
        let message = answer.output.as_ref().and_then(|o| o.message.as_ref());
        let has_choices = message.is_some();
        if let Some(message) = message {
            events.push(StreamEvent::Role { choice: 0 });
            let blocks = message.content.iter().flatten();
            blocks.for_each(|block| self.block(block, &mut events));
        }
        events.extend(answer.stop_reason.as_ref().map(|r| self.finish(r.as_str())));
        self.figures(answer.usage, answer.metrics, answer.trace, &mut events);
        let (message, kind) = (answer.message.as_ref(), answer.kind.as_ref());
        if events.is_empty() && (message.is_some() || kind.is_some()) {
            let message = message.map_or("", |message| message.as_str());
            events.push(Fault::coded(message, kind.map(|kind| kind.as_str())));
        }
        if events.is_empty() {
            return self.counts.unknown(place, sink);
        }
        place.give(&events, has_choices, sink);
    }

    fn event(&mut self, frame: &Frame<'_>, place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let payload = self.counts.read::<Event<'_>>(frame.payload, place, sink);
        let Some((event, _)) = payload else { return };
        let mut events = Events::new();
        let kind = frame.header(":event-type").unwrap_or_default();
        let last = kind == "metadata";
        if last {
            self.figures(event.usage, event.metrics, event.trace, &mut events);
            events.push(StreamEvent::Done);
        } else if !self.of_message(kind, &event, &mut events) {
            return self.counts.unknown(place, sink);
        }
        place.give(&events, !last, sink);
    }

    /// What an event of a message says; `false` where its type is none of these.
    pub(crate) fn of_message<'e>(
        &mut self,
        kind: &str,
        event: &'e Event<'_>,
        events: &mut Events<'e>,
    ) -> bool {
        let index = event.content_block_index.unwrap_or(0);
        events.push(match kind {
            "messageStart" => {
                self.message += 1;
                StreamEvent::Role { choice: 0 }
            }
            "contentBlockStart" => {
                let call = event.start.as_ref().and_then(|s| s.tool_use.as_ref());
                call.map_or(NOTHING, |call| called(self.tool(index), call))
            }
            "contentBlockDelta" => {
                let delta = event.delta.as_ref();
                delta.and_then(|d| self.delta(index, d)).unwrap_or(NOTHING)
            }
            "contentBlockStop" => NOTHING,
            "messageStop" => {
                let reason = event.stop_reason.as_ref();
                self.finish(reason.map_or("", |raw| raw.as_str()))
            }
            _ => return false,
        });
        true
    }

    /// What stands beside the message: counts, the service's time, the guardrail's trace.
    fn figures(
        &mut self,
        usage: Option<&RawValue>,
        metrics: Option<&RawValue>,
        trace: Option<&RawValue>,
        events: &mut Events<'_>,
    ) {
        let usage = usage.map(|raw| usage::read(raw).and_then(Tokens::usage));
        let metrics = metrics.map(|raw| object::<Metrics>(raw.get()).ok());
        let trace = trace.map(|raw| object::<Trace<'_>>(raw.get()).ok());
        let guardrail = trace.as_ref().and_then(|t| t.as_ref()?.guardrail);
        let guardrail = guardrail.map(guardrail::read);
        let odd = [
            usage == Some(None),
            matches!(metrics, Some(None)),
            matches!(trace, Some(None)),
            guardrail == Some(None),
        ];
        self.counts.unknown += odd.into_iter().map(u64::from).sum::<u64>();
        events.extend(usage.flatten().map(StreamEvent::Usage));
        let latency_ms = metrics.flatten().and_then(|metrics| metrics.latency_ms);
        events.extend(latency_ms.map(|_| {
            StreamEvent::Server(ServerFigures {
                latency_ms,
                first_byte_ms: None,
            })
        }));
        let guardrail = guardrail.flatten();
        if guardrail.is_some() || self.guarded {
            let mut guardrail = guardrail.unwrap_or_default();
            guardrail.intervened |= self.guarded;
            events.push(StreamEvent::Guardrail(guardrail));
        }
    }

    fn finish<'e>(&mut self, raw: &'e str) -> StreamEvent<'e> {
        self.guarded |= raw == "guardrail_intervened";
        StreamEvent::Finish {
            choice: 0,
            reason: FinishReason::from_raw(raw),
            raw,
        }
    }

    /// The text of a delta; `None` of one without (a signature, a citation).
    fn delta<'e>(&mut self, index: u64, delta: &'e Delta<'_>) -> Option<StreamEvent<'e>> {
        let thought = delta.reasoning_content.as_ref();
        let input = delta.tool_use.as_ref().and_then(|t| t.input.as_ref());
        let (field, tool, piece) = if let Some(piece) = &delta.text {
            (Field::Content, 0, piece)
        } else if let Some(piece) = thought.and_then(|r| r.text.as_ref()) {
            (Field::Reasoning, 0, piece)
        } else {
            (Field::ToolArguments, self.tool(index), input?)
        };
        text(field, tool, piece.as_str())
    }

    /// A block of a body.
    fn block<'e>(&mut self, block: &'e Block<'_>, events: &mut Events<'e>) {
        let before = events.len();
        let thought = block.reasoning_content.as_ref();
        let thought = thought.and_then(|r| r.reasoning_text.as_ref()?.text.as_ref());
        for (field, piece) in [
            (Field::Content, block.text.as_ref()),
            (Field::Reasoning, thought),
        ] {
            events.extend(piece.and_then(|piece| text(field, 0, piece.as_str())));
        }
        if let Some(call) = &block.tool_use {
            let tool = self.tools.another();
            events.push(called(tool, call));
            let input = call.input.map_or("", RawValue::get);
            events.extend(text(Field::ToolArguments, tool, input));
        }
        if events.len() == before {
            events.push(NOTHING);
        }
    }

    /// Which tool call a content block of the message is.
    fn tool(&mut self, block: u64) -> u16 {
        self.tools.of((self.message << 32) | (block & 0xFFFF_FFFF))
    }
}

fn called<'e>(tool: u16, call: &'e ToolUse<'_>) -> StreamEvent<'e> {
    StreamEvent::ToolCall {
        choice: 0,
        tool,
        id: call.tool_use_id.as_ref().map(|id| id.as_str()),
        name: call.name.as_ref().map(|name| name.as_str()),
    }
}
