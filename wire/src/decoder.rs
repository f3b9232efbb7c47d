//! The one thing callers use: bytes of a response body in, framed events out.

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;
use crate::event::StreamEvent;
use crate::eventstream::{FrameDecoder, MAX_FRAME_BYTES};
use crate::sse::{MAX_EVENT_BYTES, SseDecoder};
use crate::voice::Voice;

#[cfg(test)]
mod tests;

/// How a response body is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// `text/event-stream`.
    Sse,
    /// `application/json`: one event, at the end of the body.
    Json,
    /// `application/vnd.amazon.eventstream`.
    EventStream,
    /// No `Content-Type`: the first byte will decide (`{` is JSON, anything else an event stream).
    Undecided,
    /// Nothing is read out of it.
    Opaque,
}

impl Framing {
    fn of(dialect: Dialect, content_type: Option<&str>) -> Self {
        if dialect == Dialect::Opaque {
            return Self::Opaque;
        }
        let Some(content_type) = content_type else {
            return Self::Undecided;
        };
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("text/event-stream") {
            Self::Sse
        } else if essence.eq_ignore_ascii_case("application/vnd.amazon.eventstream") {
            Self::EventStream
        } else if essence.eq_ignore_ascii_case("application/json")
            || essence.to_ascii_lowercase().ends_with("+json")
        {
            Self::Json
        } else {
            Self::Opaque
        }
    }
}

/// Bounds on what a decoder buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one event of a stream, default 4 MiB; a frame of an Amazon event stream may have the 16 MiB
    /// that the service allows. A larger one is dropped and counted.
    pub max_event_bytes: usize,
    /// Bytes of a whole JSON body, default 16 MiB. A larger one is dropped and counted.
    pub max_body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_event_bytes: MAX_EVENT_BYTES,
            max_body_bytes: 16 << 20,
        }
    }
}

/// What a decoder had to pass over. Any of these above 0 means that text may be missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Counts {
    /// Events or bodies that are not UTF-8 or not JSON. No [`Framed`] was given for them.
    pub malformed: u64,
    /// Events or bodies beyond their bound.
    pub oversized: u64,
    /// [`StreamEvent::Unknown`]s given, and `usage` or `error` members that could not be read.
    pub unknown: u64,
    /// Chunks or events whose response id differs from the first one's: a stream stitched together, or a
    /// server that does not keep its id.
    pub foreign_ids: u64,
    /// 1 when the body ended inside an event or inside its JSON, so that the rest was lost.
    pub cut: u64,
}

/// One framed event: an SSE event, a comment, a frame, or a whole JSON body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framed<'a> {
    /// What it says, never empty. Within one choice: role, reasoning, content, refusal, tools, finish.
    pub events: &'a [StreamEvent<'a>],
    /// Its `choices` array had at least one element (TTFT by "first event with choices"); where a dialect has no
    /// such array, the event is about the answer's message, a block or an item of it, and not about the stream.
    pub has_choices: bool,
    /// Body offset just after it, in bytes; see [`SseEvent::end`](crate::sse::SseEvent::end).
    pub end: u64,
    /// The stream ended before its blank line.
    pub unterminated: bool,
}

#[derive(Debug)]
enum Frames {
    Sse(SseDecoder),
    Json { body: Vec<u8>, length: u64 },
    EventStream(FrameDecoder),
    Undecided,
    Opaque,
}

/// Decodes one response body. The bytes must be as the server meant them: after removing the
/// transfer coding, and with no `Content-Encoding` (a compressed body is [`Dialect::Opaque`]).
#[derive(Debug)]
pub struct Decoder {
    frames: Frames,
    dialect: Dialect,
    voice: Voice,
    limits: Limits,
    oversized_bodies: u64,
    /// The stream ended inside an event.
    cut: bool,
}

impl Decoder {
    /// A decoder for the body of a response with this `Content-Type`, on a route of this dialect.
    pub fn new(dialect: Dialect, content_type: Option<&str>, limits: Limits) -> Self {
        let framing = Framing::of(dialect, content_type);
        let frames = match framing {
            Framing::Sse => Frames::Sse(SseDecoder::new(limits.max_event_bytes)),
            Framing::Json => Frames::Json {
                body: Vec::new(),
                length: 0,
            },
            Framing::EventStream => Frames::EventStream(FrameDecoder::new(
                limits.max_event_bytes.max(MAX_FRAME_BYTES),
            )),
            Framing::Undecided => Frames::Undecided,
            Framing::Opaque => Frames::Opaque,
        };
        Self {
            frames,
            dialect,
            voice: Voice::of(dialect, framing),
            limits,
            oversized_bodies: 0,
            cut: false,
        }
    }

    /// How the body is cut into events.
    pub fn framing(&self) -> Framing {
        match self.frames {
            Frames::Sse(_) => Framing::Sse,
            Frames::Json { .. } => Framing::Json,
            Frames::EventStream(_) => Framing::EventStream,
            Frames::Undecided => Framing::Undecided,
            Frames::Opaque => Framing::Opaque,
        }
    }

    /// Takes the next bytes of the body and gives every event that they complete.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(Framed<'_>)) {
        if let (Frames::Undecided, Some(&first)) = (&self.frames, bytes.first()) {
            self.frames = match first {
                b'{' => Frames::Json {
                    body: Vec::new(),
                    length: 0,
                },
                _ => Frames::Sse(SseDecoder::new(self.limits.max_event_bytes)),
            };
            self.voice = Voice::of(self.dialect, self.framing());
        }
        match &mut self.frames {
            Frames::Sse(sse) => sse.feed(bytes, &mut |event| self.voice.event(&event, sink)),
            Frames::Json { body, length } => {
                let before = *length;
                *length += bytes.len() as u64;
                let bound = self.limits.max_body_bytes as u64;
                if *length <= bound {
                    body.extend_from_slice(bytes);
                } else if before <= bound {
                    *body = Vec::new();
                    self.oversized_bodies += 1;
                }
            }
            Frames::EventStream(frames) => {
                frames.feed(bytes, &mut |frame| self.voice.frame(&frame, sink));
            }
            Frames::Undecided | Frames::Opaque => {}
        }
    }

    /// Ends the body: gives a JSON body's event, or a last event without its blank line.
    /// Nothing may be fed afterwards.
    pub fn finish(&mut self, sink: &mut impl FnMut(Framed<'_>)) {
        match &mut self.frames {
            Frames::Sse(sse) => {
                let mut lost = sse.inside_event();
                sse.finish(&mut |event| {
                    lost &= event.comment;
                    self.voice.event(&event, sink);
                });
                self.cut = lost;
            }
            Frames::Json { body, length } => {
                if self.oversized_bodies == 0 && *length > 0 {
                    self.voice.body(&std::mem::take(body), *length, sink);
                }
            }
            Frames::EventStream(frames) => self.cut = frames.inside_frame(),
            Frames::Undecided | Frames::Opaque => {}
        }
    }

    /// Events or bodies that are not UTF-8 or not JSON, so far.
    pub fn malformed(&self) -> u64 {
        self.counts().malformed
    }

    /// All that was passed over, so far.
    pub fn counts(&self) -> Counts {
        let read = self.voice.counts();
        let (malformed, oversized) = match &self.frames {
            Frames::Sse(sse) => (0, sse.oversized()),
            Frames::EventStream(frames) => (frames.losses().malformed, frames.losses().oversized),
            _ => (0, self.oversized_bodies),
        };
        Counts {
            malformed: read.malformed + malformed,
            oversized,
            cut: read.cut | u64::from(self.cut),
            ..read
        }
    }
}
