//! The OpenAI dialects: the JSON of one event or body to stream events. Chat and completions,
//! streamed and not, are told apart by the members that are there (`delta`, `message`, `text`),
//! because gateways answer one in the shape of the other.

mod choice;
mod chunk;
mod delta;
mod fault;
mod lower;
mod usage;

use twox_hash::XxHash3_64;

use crate::decoder::{Counts, Framed};
use crate::event::StreamEvent;
use crate::sse::SseEvent;
use chunk::Chunk;
use fault::Fault;
use lower::{Events, lower};

/// A longer response id is compared and given by its first 256 bytes.
const MAX_ID_BYTES: usize = 256;

/// Turns payloads into events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Interpreter {
    pub(crate) counts: Counts,
    /// Hash of the first response id.
    id: Option<u64>,
}

impl Interpreter {
    /// One event of a stream.
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, sink: &mut impl FnMut(Framed<'_>)) {
        let payload = event.data.trim_ascii();
        let simple = match payload {
            b"" => Some(StreamEvent::KeepAlive),
            b"[DONE]" => Some(StreamEvent::Done),
            _ => None,
        };
        if let Some(simple) = simple {
            return sink(Framed {
                events: &[simple],
                has_choices: false,
                end: event.end,
                unterminated: event.unterminated,
            });
        }
        let place = Place {
            end: event.end,
            unterminated: event.unterminated,
            error_event: event.event == Some("error"),
            last: event.unterminated,
        };
        self.payload(payload, place, sink);
    }

    /// A whole JSON body.
    pub(crate) fn body(&mut self, body: &[u8], end: u64, sink: &mut impl FnMut(Framed<'_>)) {
        let place = Place {
            end,
            unterminated: false,
            error_event: false,
            last: true,
        };
        self.payload(body, place, sink);
    }

    fn payload(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let text = match std::str::from_utf8(payload) {
            Ok(text) => text,
            // An error without a length is a character that the end of the body cut in two.
            Err(error) => return self.unreadable(place.last && error.error_len().is_none()),
        };
        match chunk::read(text) {
            Ok(chunk) => self.chunk(&chunk, text, place, sink),
            Err(_) if place.error_event => {
                let fault = Fault::of_event(text);
                self.counts.unknown += u64::from(fault.is_none());
                let events = [fault.as_ref().map_or(StreamEvent::Unknown, Fault::event)];
                sink(place.framed(&events, false));
            }
            Err(error) if error.is_data() => {
                self.counts.unknown += 1;
                sink(place.framed(&[StreamEvent::Unknown], false));
            }
            Err(error) => self.unreadable(place.last && error.is_eof()),
        }
    }

    fn unreadable(&mut self, cut: bool) {
        if cut {
            self.counts.cut = 1;
        } else {
            self.counts.malformed += 1;
        }
    }

    fn chunk<'a>(
        &mut self,
        chunk: &Chunk<'a>,
        text: &'a str,
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        let usage = chunk.usage.map(usage::read);
        let fault = Fault::of_chunk(chunk, text, place.error_event);
        let mut events = Events::new();
        if let Some(id) = chunk.id.as_ref() {
            self.id(id.as_str(), &mut events);
        }
        lower(chunk, &mut events);
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
        sink(place.framed(&events, chunk.has_choices()));
    }

    fn id<'e>(&mut self, id: &'e str, events: &mut Events<'e>) {
        if id.is_empty() {
            return;
        }
        let id = &id[..id.floor_char_boundary(MAX_ID_BYTES)];
        let hash = XxHash3_64::oneshot(id.as_bytes());
        match self.id {
            None => {
                self.id = Some(hash);
                events.push(StreamEvent::Id(id));
            }
            Some(first) => self.counts.foreign_ids += u64::from(first != hash),
        }
    }
}

/// Where a payload was found.
#[derive(Debug, Clone, Copy)]
struct Place {
    end: u64,
    unterminated: bool,
    /// Its SSE event is named `error`.
    error_event: bool,
    /// Nothing comes after it, so that a payload without an end was cut.
    last: bool,
}

impl Place {
    fn framed<'a>(&self, events: &'a [StreamEvent<'a>], has_choices: bool) -> Framed<'a> {
        Framed {
            events,
            has_choices,
            end: self.end,
            unterminated: self.unterminated,
        }
    }
}
