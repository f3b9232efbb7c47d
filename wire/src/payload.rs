//! One payload on its way to its dialect: the data of an event, of a frame, or a whole body.

use serde::{Deserialize, de};
use smallvec::SmallVec;

use crate::decoder::{Counts, Framed};
use crate::event::{Field, StreamEvent, TextDelta};
use crate::fault::Fault;
use crate::sse::SseEvent;

/// Events of one payload; a usual one needs no allocation.
pub(crate) type Events<'e> = SmallVec<[StreamEvent<'e>; 6]>;

/// An event of a stream that says nothing.
pub(crate) const NOTHING: StreamEvent<'static> = StreamEvent::Empty { choice: 0 };

/// Where a payload was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Body offset just after it.
    end: u64,
    /// The stream ended before its blank line.
    unterminated: bool,
    /// Its SSE event is named `error`.
    error_event: bool,
    /// Nothing comes after it, so that a payload without an end was cut.
    last: bool,
}

impl Place {
    pub(crate) fn of_event(event: &SseEvent<'_>) -> Self {
        Self {
            end: event.end,
            unterminated: event.unterminated,
            error_event: event.event == Some("error"),
            last: event.unterminated,
        }
    }

    pub(crate) fn of_frame(end: u64) -> Self {
        Self {
            end,
            unterminated: false,
            error_event: false,
            last: false,
        }
    }

    pub(crate) fn of_body(end: u64) -> Self {
        Self {
            last: true,
            ..Self::of_frame(end)
        }
    }

    pub(crate) fn error_event(&self) -> bool {
        self.error_event
    }

    pub(crate) fn give(
        &self,
        events: &[StreamEvent<'_>],
        has_choices: bool,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        sink(Framed {
            events,
            has_choices,
            end: self.end,
            unterminated: self.unterminated,
        });
    }
}

impl Counts {
    /// Reads a payload as an object of this shape, and gives its text beside it. One that is none is counted
    /// and given as what it is.
    pub(crate) fn read<'a, T: Deserialize<'a>>(
        &mut self,
        payload: &'a [u8],
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) -> Option<(T, &'a str)> {
        let text = self.utf8(payload, place)?;
        match object(text) {
            Ok(value) => return Some((value, text)),
            Err(_) if place.error_event => match Fault::of_event(text) {
                Some(fault) => place.give(&[fault.event()], false, sink),
                None => self.unknown(place, sink),
            },
            Err(error) => self.unreadable(&error, place, sink),
        }
        None
    }

    /// JSON of another shape is unknown; what is no JSON is malformed or, at the end of a body, cut.
    pub(crate) fn unreadable(
        &mut self,
        error: &serde_json::Error,
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        if error.is_data() {
            self.unknown(place, sink);
        } else {
            self.broken(place.last && error.is_eof());
        }
    }

    /// The payload as text, unless it is none.
    pub(crate) fn utf8<'a>(&mut self, payload: &'a [u8], place: Place) -> Option<&'a str> {
        std::str::from_utf8(payload)
            // An error without a length is a character that the end of the body cut in two.
            .map_err(|error| self.broken(place.last && error.error_len().is_none()))
            .ok()
    }

    /// A payload has no meaning known here.
    pub(crate) fn unknown(&mut self, place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        self.unknown += 1;
        place.give(&[StreamEvent::Unknown], false, sink);
    }

    fn broken(&mut self, cut: bool) {
        if cut {
            self.cut = 1;
        } else {
            self.malformed += 1;
        }
    }

    /// The sum of what two readers of one body passed over.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            malformed: self.malformed + other.malformed,
            oversized: self.oversized + other.oversized,
            unknown: self.unknown + other.unknown,
            foreign_ids: self.foreign_ids + other.foreign_ids,
            cut: self.cut | other.cut,
        }
    }
}

/// Reads an object; anything else is an error of the kind "data".
pub(crate) fn object<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, serde_json::Error> {
    let value = serde_json::from_str(json)?;
    // serde would read an array as a struct's members in order.
    if json.trim_ascii_start().starts_with('[') {
        return Err(de::Error::invalid_type(de::Unexpected::Seq, &"an object"));
    }
    Ok(value)
}

/// Text of the only choice; `None` where there is none.
pub(crate) fn text(field: Field, tool: u16, text: &str) -> Option<StreamEvent<'_>> {
    (!text.is_empty()).then_some(StreamEvent::Text(TextDelta {
        choice: 0,
        field,
        tool,
        text,
    }))
}
