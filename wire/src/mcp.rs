//! The Model Context Protocol over streamable HTTP
//! (<https://modelcontextprotocol.io/specification/2025-06-18/basic/transports>): a POST asks one JSON-RPC
//! request, and the answer is a JSON body or an SSE stream whose last message is the response.
//!
//! An exchange ends with that response: [`StreamEvent::Finish`] with raw `result`, or with raw `isError` where a
//! tool said that it failed, or [`StreamEvent::Error`] with the code of a JSON-RPC error; then
//! [`StreamEvent::Done`]. What a tool returned is not given as text. Notifications and requests of the server on
//! the way are empty. A list of messages, which 2025-03-26 allowed, is read as its members.

use serde::Deserialize;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use crate::decoder::{Counts, Framed};
use crate::event::{FinishReason, StreamEvent};
use crate::fault::Fault;
use crate::payload::{Events, NOTHING, Place};
use crate::text::Text;

#[cfg(test)]
mod tests;

/// Turns messages into events.
#[derive(Debug, Default)]
pub(crate) struct Mcp {
    pub(crate) counts: Counts,
}

/// A JSON-RPC message.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<Text<'a>>,
    /// Of a request or notification.
    #[serde(borrow, default)]
    method: Option<Text<'a>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The result of a request; what other methods than `tools/call` return has no `isError`.
#[derive(Deserialize)]
struct Outcome {
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
}

impl Mcp {
    /// The data of one event of a stream, or a whole body.
    pub(crate) fn payload(
        &mut self,
        payload: &[u8],
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        if !payload.trim_ascii_start().starts_with(b"[") {
            let Some((message, _)) = self.counts.read::<Message<'_>>(payload, place, sink) else {
                return;
            };
            return self.messages(&[message], place, sink);
        }
        let Some(json) = self.counts.utf8(payload, place) else {
            return;
        };
        match serde_json::from_str::<SmallVec<[Message<'_>; 2]>>(json) {
            Ok(messages) => self.messages(&messages, place, sink),
            Err(error) => self.counts.unreadable(&error, place, sink),
        }
    }

    fn messages(
        &mut self,
        messages: &[Message<'_>],
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        let errors = messages.iter().map(|message| message.error);
        let faults: SmallVec<[Option<Fault<'_>>; 1]> = errors
            .map(|error| error.map(|error| Fault::of_json(error.get())))
            .collect();
        let mut events = Events::new();
        let mut answered = false;
        for (message, fault) in messages.iter().zip(&faults) {
            let event = if message.jsonrpc.is_none() {
                StreamEvent::Unknown
            } else if let Some(fault) = fault {
                fault.event()
            } else if let Some(result) = message.result {
                finish(result)
            } else if message.method.is_some() {
                NOTHING
            } else {
                StreamEvent::Unknown
            };
            let unknown = matches!(event, StreamEvent::Unknown);
            self.counts.unknown += u64::from(unknown);
            answered |= !unknown && message.method.is_none();
            events.push(event);
        }
        if events.is_empty() {
            return self.counts.unknown(place, sink);
        }
        if answered {
            events.push(StreamEvent::Done);
        }
        place.give(&events, false, sink);
    }
}

fn finish(result: &RawValue) -> StreamEvent<'static> {
    let outcome = serde_json::from_str::<Outcome>(result.get());
    let failed = outcome.is_ok_and(|outcome| outcome.is_error == Some(true));
    let raw = if failed { "isError" } else { "result" };
    StreamEvent::Finish {
        choice: 0,
        reason: FinishReason::from_raw(raw),
        raw,
    }
}
