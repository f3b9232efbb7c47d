//! OpenAI's responses: the typed events of an answer that is streamed, and the body of one that is not. The
//! shapes are those of <https://platform.openai.com/docs/api-reference/responses-streaming>, which vLLM follows
//! (<https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html>). There is no `[DONE]`: the stream
//! ends with `response.completed`, `.incomplete` or `.failed`; gateways that send it nevertheless say it twice.
//!
//! An answer is a list of items, which has no choices: all of it is choice 0. `….done` events repeat the text of
//! the deltas before them and are given as empty. A response does not say whether it ended in order to call a
//! tool; one that called the caller's is given as [`FinishReason::ToolCalls`], so that it compares with a chat.

mod event;

#[cfg(test)]
mod tests;

use crate::decoder::{Counts, Framed};
use crate::event::{Field, FinishReason, StreamEvent};
use crate::fault::Fault;
use crate::id::ResponseId;
use crate::payload::{Events, NOTHING, Place, object, text};
use crate::tools::Tools;
use event::{Answer, Event, Item};
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// Turns events and bodies into stream events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    pub(crate) counts: Counts,
    id: ResponseId,
    tools: Tools,
    /// One of the calls is the caller's to make: a function or a custom tool, not one over MCP.
    asks: bool,
}

/// What a text event continues.
fn field(kind: &str) -> Option<Field> {
    Some(match kind {
        "response.output_text.delta" => Field::Content,
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            Field::Reasoning
        }
        "response.refusal.delta" => Field::Refusal,
        "response.function_call_arguments.delta"
        | "response.mcp_call_arguments.delta"
        | "response.custom_tool_call_input.delta" => Field::ToolArguments,
        _ => return None,
    })
}

impl Responses {
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
        let kind = event.kind.as_ref().map_or("", |kind| kind.as_str());
        if kind == "error" || event.error.is_some() || place.error_event() {
            let fault = Fault::of_json(event.error.map_or(json, RawValue::get));
            return place.give(&[fault.event()], false, sink);
        }
        if let Some(response) = event.response {
            return self.response(kind, response.get(), place, sink);
        }
        let item = event.item.filter(|_| kind == "response.output_item.added");
        let item = item.and_then(|item| object::<Item<'_>>(item.get()).ok());
        let index = event.output_index.unwrap_or(0);
        let said = match (item.as_ref(), field(kind)) {
            (Some(item), _) => self.begin(index, item),
            (_, Some(field)) => self.delta(index, kind, field, &event),
            _ if kind.starts_with("response.") && !kind.ends_with(".delta") => NOTHING,
            _ => return self.counts.unknown(place, sink),
        };
        place.give(&[said], event.output_index.is_some(), sink);
    }

    /// An item of the output begins.
    fn begin<'e>(&mut self, index: u64, item: &'e Item<'_>) -> StreamEvent<'e> {
        self.asks |= item.asks();
        if item.is_call() {
            item.called(self.tools.of(index))
        } else if item.is_message() {
            StreamEvent::Role { choice: 0 }
        } else {
            NOTHING
        }
    }

    /// A piece of an item's text.
    fn delta<'e>(
        &mut self,
        index: u64,
        kind: &str,
        field: Field,
        event: &'e Event<'_>,
    ) -> StreamEvent<'e> {
        let arguments = field == Field::ToolArguments;
        self.asks |= arguments && !kind.starts_with("response.mcp_call");
        let tool = if arguments { self.tools.of(index) } else { 0 };
        let delta = event.delta.as_ref().map_or("", |delta| delta.as_str());
        text(field, tool, delta).unwrap_or(NOTHING)
    }

    /// A whole JSON body.
    pub(crate) fn body(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let Some((answer, _)) = self.counts.read::<Answer<'_>>(payload, place, sink) else {
            return;
        };
        let items = answer
            .output
            .map(|output| serde_json::from_str(output.get()));
        let items: Option<SmallVec<[Item<'_>; 2]>> = items.and_then(Result::ok);
        self.counts.unknown += u64::from(answer.output.is_some() && items.is_none());
        let fault = answer.error.map(|error| Fault::of_json(error.get()));
        let mut events = Events::new();
        self.identify(&answer, &mut events);
        for item in items.iter().flatten() {
            self.item(item, &mut events);
        }
        self.end(&answer, &mut events);
        events.extend(fault.as_ref().map(Fault::event));
        let said = events.iter().any(|e| !matches!(e, StreamEvent::Id(_)));
        if !said && answer.status.is_none() {
            events.push(StreamEvent::Unknown);
            self.counts.unknown += 1;
        } else if !said {
            events.push(NOTHING);
        }
        let has_choices = items.iter().any(|items| !items.is_empty());
        place.give(&events, has_choices, sink);
    }

    /// The response as a whole begins, goes on or ends.
    fn response(
        &mut self,
        kind: &str,
        json: &str,
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        let Ok(answer) = object::<Answer<'_>>(json) else {
            return self.counts.unknown(place, sink);
        };
        let fault = answer.error.map(|error| Fault::of_json(error.get()));
        let mut events = Events::new();
        self.identify(&answer, &mut events);
        match kind {
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                self.end(&answer, &mut events);
                events.extend(fault.as_ref().map(Fault::event));
                events.push(StreamEvent::Done);
            }
            _ => events.push(NOTHING),
        }
        place.give(&events, false, sink);
    }

    fn identify<'e>(&mut self, answer: &'e Answer<'_>, events: &mut Events<'e>) {
        let id = answer.id.as_ref().map_or("", |id| id.as_str());
        events.extend(self.id.take(id, &mut self.counts));
    }

    /// Why the response ended, if it did, and its counts.
    fn end<'e>(&mut self, answer: &'e Answer<'_>, events: &mut Events<'e>) {
        let usage = answer.usage.map(event::usage);
        self.counts.unknown += u64::from(usage == Some(None));
        let status = answer.status.as_ref().map_or("", |status| status.as_str());
        let why = answer.incomplete_details.as_ref();
        let raw = match (status, why.and_then(|why| why.reason.as_ref())) {
            ("" | "in_progress" | "queued", _) => None,
            ("incomplete", Some(reason)) => Some(reason.as_str()),
            _ => Some(status),
        };
        events.extend(raw.map(|raw| StreamEvent::Finish {
            choice: 0,
            reason: match FinishReason::from_raw(raw) {
                FinishReason::Stop if self.asks => FinishReason::ToolCalls,
                reason => reason,
            },
            raw,
        }));
        events.extend(usage.flatten().map(StreamEvent::Usage));
    }

    /// An item of a body.
    fn item<'e>(&mut self, item: &'e Item<'_>, events: &mut Events<'e>) {
        let before = events.len();
        self.asks |= item.asks();
        if item.is_call() {
            let tool = self.tools.another();
            events.push(item.called(tool));
            events.extend(text(Field::ToolArguments, tool, item.arguments()));
        } else {
            let message = item.is_message();
            if message {
                events.push(StreamEvent::Role { choice: 0 });
            }
            let spoken = if message {
                Field::Content
            } else {
                Field::Reasoning
            };
            for part in [&item.summary, &item.content]
                .into_iter()
                .flatten()
                .flatten()
            {
                for (field, piece) in [(spoken, &part.text), (Field::Refusal, &part.refusal)] {
                    let piece = piece.as_ref().map_or("", |piece| piece.as_str());
                    events.extend(text(field, 0, piece));
                }
            }
        }
        if events.len() == before {
            events.push(NOTHING);
        }
    }
}
