//! The OpenAI dialects: the JSON of one event or body to stream events. Chat and completions,
//! streamed and not, are told apart by the members that are there (`delta`, `message`, `text`),
//! because gateways answer one in the shape of the other.

mod choice;
mod chunk;
mod delta;
mod lower;
mod usage;

use crate::decoder::{Counts, Framed};
use crate::event::StreamEvent;
use crate::fault::Fault;
use crate::id::ResponseId;
use crate::payload::{Events, Place};
use chunk::Chunk;
use lower::lower;

/// Turns payloads into events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Interpreter {
    pub(crate) counts: Counts,
    id: ResponseId,
}

impl Interpreter {
    /// The data of one event of a stream, or a whole body.
    pub(crate) fn payload(
        &mut self,
        payload: &[u8],
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        let Some((chunk, text)) = self.counts.read::<Chunk<'_>>(payload, place, sink) else {
            return;
        };
        let usage = chunk.usage.map(usage::read);
        let fault = chunk.fault(text, place.error_event());
        let mut events = Events::new();
        let id = chunk.id.as_ref().map_or("", |id| id.as_str());
        events.extend(self.id.take(id, &mut self.counts));
        lower(&chunk, &mut events);
        events.extend(usage.flatten().map(StreamEvent::Usage));
        events.extend(fault.as_ref().map(Fault::event));
        if events
            .iter()
            .all(|event| matches!(event, StreamEvent::Id(_)))
        {
            events.push(StreamEvent::Unknown);
        } else {
            self.counts.unknown += u64::from(usage == Some(None));
        }
        let unknown = events
            .iter()
            .filter(|event| matches!(event, StreamEvent::Unknown))
            .count();
        self.counts.unknown += unknown as u64;
        place.give(&events, chunk.has_choices(), sink);
    }
}
