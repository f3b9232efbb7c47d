//! What a gateway makes of the events of its upstream.

use std::collections::VecDeque;

use serde_json::Value;

use super::GatewayOptions;
use super::chunk::{finish_chunk, merge_text, serialized, usage_chunk, without_finish};
use crate::delta::{Delta, Piece};
use crate::reading::{Reader, Reading, Seen};
use crate::truth::{Field, Mark, TokenTruth};

/// What a parcel is, for its delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text {
        first: bool,
        finish: bool,
    },
    /// Finish reason, usage, `[DONE]`.
    Final,
    Other,
}

/// Bytes for the client and what they carry.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) bytes: Vec<u8>,
    pub(super) kind: Kind,
    /// When the last of what it was made from was read; `None` for a cache hit.
    pub(super) read_at: Option<u64>,
    pub(super) tokens: Vec<TokenTruth>,
    pub(super) marks: Vec<Mark>,
}

/// Turns upstream events into parcels by the gateway's modes.
pub(super) struct Rewriter {
    reserialize: bool,
    drop_empty: bool,
    merge: u32,
    synthesize: bool,
    held: Option<Held>,
    reader: Reader,
}

/// Text that waits to be merged.
struct Held {
    chunk: Value,
    key: (u16, Field, u16),
    text: String,
    events: u32,
    parcel: Parcel,
}

impl Rewriter {
    pub(super) fn new(options: &GatewayOptions) -> Self {
        Self {
            reserialize: options.reserialize,
            drop_empty: options.drop_empty,
            merge: options.merge.max(1),
            synthesize: options.synthesize_final,
            held: None,
            reader: Reader::default(),
        }
    }

    /// What the upstream's stream has told so far.
    pub(super) fn seen(&self) -> &Seen {
        &self.reader.seen
    }

    /// Takes one event.
    pub(super) fn event(&mut self, raw: Vec<u8>, read_at: Option<u64>, out: &mut VecDeque<Parcel>) {
        let mut reading = self.reader.read(&raw, read_at);
        let Some(delta) = reading.delta.take() else {
            self.opaque(raw, reading, read_at, out);
            return;
        };
        let empty = delta.pieces.is_empty() && !delta.finish && !delta.opens_tool;
        if delta.error {
            self.release(out);
            out.push_back(parcel(raw, Kind::Other, read_at));
            return;
        }
        if empty && delta.usage.is_none() && self.drop_empty {
            return; // nothing of it reaches the client
        }
        let changes = self.reserialize || self.synthesize || self.merge > 1;
        let data = reading.data.as_deref().filter(|_| changes);
        let chunk = data.and_then(|data| serde_json::from_slice::<Value>(data).ok());
        let whole = whole(raw, reading, &delta, read_at);
        match chunk {
            Some(chunk) => self.rewrite(chunk, &delta, whole, out),
            None => out.push_back(whole),
        }
    }

    /// The stream ended. Emits what was held and, in `synthesize_final`, a missing `[DONE]`.
    pub(super) fn end(&mut self, read_at: Option<u64>, out: &mut VecDeque<Parcel>) {
        self.release(out);
        if self.synthesize && !self.reader.seen.done {
            let bytes = b"data: [DONE]\n\n".to_vec();
            out.push_back(Parcel {
                marks: vec![Mark::Done],
                ..parcel(bytes, Kind::Final, read_at)
            });
        }
    }

    /// Texts that were taken but not yet given out.
    pub(super) fn held_texts(&self) -> u64 {
        self.held
            .as_ref()
            .map_or(0, |held| held.parcel.tokens.len() as u64)
    }

    /// Comments, `[DONE]` and what cannot be parsed.
    fn opaque(
        &mut self,
        raw: Vec<u8>,
        reading: Reading,
        read_at: Option<u64>,
        out: &mut VecDeque<Parcel>,
    ) {
        if reading.data.is_some() {
            self.release(out);
        } else if self.reserialize {
            return;
        }
        let kind = match reading.marks[..] {
            [] => Kind::Other,
            _ => Kind::Final,
        };
        out.push_back(Parcel {
            marks: reading.marks,
            ..parcel(raw, kind, read_at)
        });
    }

    fn rewrite(&mut self, chunk: Value, delta: &Delta, whole: Parcel, out: &mut VecDeque<Parcel>) {
        let splits = self.synthesize && (delta.finish || delta.usage.is_some());
        if splits {
            self.split(&chunk, delta, whole, out);
            return;
        }
        let mergeable = delta.choices == 1 && !delta.finish && !delta.opens_tool;
        match &delta.pieces[..] {
            [piece] if self.merge > 1 && mergeable => self.hold(chunk, piece, whole, out),
            _ => {
                self.release(out);
                out.push_back(Parcel {
                    bytes: serialized(&chunk),
                    ..whole
                });
            }
        }
    }

    /// Text, finish reason and usage, each in a chunk of its own.
    fn split(
        &mut self,
        chunk: &Value,
        delta: &Delta,
        mut whole: Parcel,
        out: &mut VecDeque<Parcel>,
    ) {
        self.release(out);
        let read_at = whole.read_at;
        let last = |bytes, mark| Parcel {
            marks: vec![mark],
            ..parcel(bytes, Kind::Final, read_at)
        };
        if let Kind::Text { finish, .. } = &mut whole.kind {
            *finish = false;
            whole
                .marks
                .retain(|mark| !matches!(mark, Mark::Finish | Mark::Usage));
            whole.bytes = serialized(&without_finish(chunk));
            out.push_back(whole);
        }
        if delta.finish {
            out.push_back(last(serialized(&finish_chunk(chunk)), Mark::Finish));
        }
        if delta.usage.is_some() {
            out.push_back(last(serialized(&usage_chunk(chunk)), Mark::Usage));
        }
    }

    fn hold(&mut self, chunk: Value, piece: &Piece, new: Parcel, out: &mut VecDeque<Parcel>) {
        let key = (piece.choice, piece.field, piece.tool);
        if self.held.as_ref().is_some_and(|held| held.key != key) {
            self.release(out);
        }
        match &mut self.held {
            Some(held) => {
                held.text.push_str(&piece.text);
                held.events += 1;
                held.parcel.read_at = new.read_at;
                held.parcel.tokens.extend(new.tokens);
                held.parcel.marks.extend(new.marks);
            }
            None => {
                self.held = Some(Held {
                    chunk,
                    key,
                    text: piece.text.clone(),
                    events: 1,
                    parcel: new,
                });
            }
        }
        if self
            .held
            .as_ref()
            .is_some_and(|held| held.events >= self.merge)
        {
            self.release(out);
        }
    }

    fn release(&mut self, out: &mut VecDeque<Parcel>) {
        if let Some(mut held) = self.held.take() {
            merge_text(&mut held.chunk, held.key.1, &held.text);
            out.push_back(Parcel {
                bytes: serialized(&held.chunk),
                ..held.parcel
            });
        }
    }
}

/// A parcel that carries everything of its event.
fn whole(raw: Vec<u8>, reading: Reading, delta: &Delta, read_at: Option<u64>) -> Parcel {
    let kind = if !reading.tokens.is_empty() {
        Kind::Text {
            first: reading.first_text,
            finish: delta.finish,
        }
    } else if delta.finish || delta.usage.is_some() {
        Kind::Final
    } else {
        Kind::Other
    };
    Parcel {
        tokens: reading.tokens,
        marks: reading.marks,
        ..parcel(raw, kind, read_at)
    }
}

fn parcel(bytes: Vec<u8>, kind: Kind, read_at: Option<u64>) -> Parcel {
    Parcel {
        bytes,
        kind,
        read_at,
        tokens: Vec::new(),
        marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
