//! Anthropic's messages: the events of an answer that is streamed, and the body of one that is not. The shapes
//! are those of <https://platform.claude.com/docs/en/build-with-claude/streaming>; Bedrock's InvokeModel sends
//! the same JSON without the SSE around it.
//!
//! A block of content has an index of its own, which counts text, thinking and tool calls alike; here tool calls
//! are counted among themselves. `message_delta` gives its counts as sums so far, and leaves out those of the
//! prompt, which `message_start` gave: every usage given here is of both.

mod event;

#[cfg(test)]
mod tests;

use crate::decoder::{Counts, Framed};
use crate::event::{Field, FinishReason, StreamEvent};
use crate::fault::Fault;
use crate::id::ResponseId;
use crate::payload::{Events, NOTHING, Place, object, text};
use crate::tokens::Tokens;
use crate::tools::Tools;
use event::{Answer, Block, Delta, Event, Start};
use serde_json::value::RawValue;

/// Turns events and bodies into stream events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) counts: Counts,
    /// All counts so far.
    pub(crate) tokens: Tokens,
    id: ResponseId,
    tools: Tools,
}

impl Messages {
    /// The data of one event of a stream.
    pub(crate) fn event(
        &mut self,
        payload: &[u8],
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        let Some((event, json)) = self.counts.read::<Event<'_>>(payload, place, sink) else {
            return;
        };
        let error = event.error.map(|error| Fault::of_json(error.get()));
        let error = error.or_else(|| place.error_event().then(|| Fault::of_json(json)));
        if let Some(error) = error {
            return place.give(&[error.event()], false, sink);
        }
        let start = event
            .message
            .map(|message| object::<Start<'_>>(message.get()));
        let start = start.and_then(Result::ok);
        let mut events = Events::new();
        let kind = event.kind.as_ref().map_or("", |kind| kind.as_str());
        if !self.say(kind, &event, start.as_ref(), &mut events) {
            return self.counts.unknown(place, sink);
        }
        if events.is_empty() {
            events.push(NOTHING);
        }
        let of_message = !matches!(kind, "message_stop" | "ping");
        place.give(&events, of_message, sink);
    }

    /// What an event says; `false` where its type is not known here.
    fn say<'e>(
        &mut self,
        kind: &str,
        event: &'e Event<'_>,
        start: Option<&'e Start<'_>>,
        events: &mut Events<'e>,
    ) -> bool {
        let index = event.index.unwrap_or(0);
        match kind {
            "message_start" => {
                let id = start.and_then(|start| start.id.as_ref());
                let id = id.map_or("", |id| id.as_str());
                events.extend(self.id.take(id, &mut self.counts));
                events.push(StreamEvent::Role { choice: 0 });
                self.usage(start.and_then(|start| start.usage), events);
            }
            "content_block_start" => {
                if let Some(block) = &event.content_block {
                    if block.is_call() {
                        events.push(called(self.tools.of(index), block));
                    }
                    texts(block, events);
                }
            }
            "content_block_delta" => {
                let delta = event.delta.as_ref();
                events.extend(delta.and_then(|delta| self.delta(index, delta)));
            }
            "content_block_stop" => {}
            "message_delta" => {
                let reason = event.delta.as_ref().and_then(|d| d.stop_reason.as_ref());
                events.extend(reason.map(|raw| finish(raw.as_str())));
                self.usage(event.usage, events);
            }
            "message_stop" => events.push(StreamEvent::Done),
            "ping" => events.push(StreamEvent::KeepAlive),
            _ => return false,
        }
        true
    }

    /// A whole JSON body.
    pub(crate) fn body(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let Some((answer, _)) = self.counts.read::<Answer<'_>>(payload, place, sink) else {
            return;
        };
        let error = answer.error.map(|error| Fault::of_json(error.get()));
        let mut events = Events::new();
        let has_choices = answer.content.is_some();
        if let Some(blocks) = &answer.content {
            let id = answer.id.as_ref().map_or("", |id| id.as_str());
            events.extend(self.id.take(id, &mut self.counts));
            events.push(StreamEvent::Role { choice: 0 });
            blocks
                .iter()
                .for_each(|block| self.block(block, &mut events));
        }
        let reason = answer.stop_reason.as_ref();
        events.extend(reason.map(|raw| finish(raw.as_str())));
        self.usage(answer.usage, &mut events);
        events.extend(error.as_ref().map(Fault::event));
        if events.is_empty() {
            return self.counts.unknown(place, sink);
        }
        place.give(&events, has_choices, sink);
    }

    /// A block of a body.
    fn block<'e>(&mut self, block: &'e Block<'_>, events: &mut Events<'e>) {
        let before = events.len();
        texts(block, events);
        if block.is_call() {
            let tool = self.tools.another();
            events.push(called(tool, block));
            let input = block.input.map_or("", RawValue::get);
            events.extend(text(Field::ToolArguments, tool, input));
        }
        if events.len() == before {
            events.push(NOTHING);
        }
    }

    /// The text of a delta; `None` of one without (a signature, a citation).
    fn delta<'e>(&mut self, index: u64, delta: &'e Delta<'_>) -> Option<StreamEvent<'e>> {
        let (field, tool, piece) = if let Some(piece) = &delta.text {
            (Field::Content, 0, piece)
        } else if let Some(piece) = &delta.thinking {
            (Field::Reasoning, 0, piece)
        } else {
            let piece = delta.partial_json.as_ref()?;
            (Field::ToolArguments, self.tools.of(index), piece)
        };
        text(field, tool, piece.as_str())
    }

    fn usage(&mut self, raw: Option<&RawValue>, events: &mut Events<'_>) {
        let Some(raw) = raw else { return };
        let Some(tokens) = event::tokens(raw) else {
            self.counts.unknown += 1;
            return;
        };
        self.tokens.update(tokens);
        events.extend(self.tokens.usage().map(StreamEvent::Usage));
    }
}

fn texts<'e>(block: &'e Block<'_>, events: &mut Events<'e>) {
    for (field, piece) in [
        (Field::Reasoning, &block.thinking),
        (Field::Content, &block.text),
    ] {
        let piece = piece.as_ref();
        events.extend(piece.and_then(|piece| text(field, 0, piece.as_str())));
    }
}

fn called<'e>(tool: u16, block: &'e Block<'_>) -> StreamEvent<'e> {
    StreamEvent::ToolCall {
        choice: 0,
        tool,
        id: block.id.as_ref().map(|id| id.as_str()),
        name: block.name.as_ref().map(|name| name.as_str()),
    }
}

fn finish(raw: &str) -> StreamEvent<'_> {
    StreamEvent::Finish {
        choice: 0,
        reason: FinishReason::from_raw(raw),
        raw,
    }
}
