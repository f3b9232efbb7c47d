//! Reading a stream that passes by: what each event carries and where its text ends.

use crate::delta::{Delta, Positions, Usage};
use crate::sse;
use crate::truth::{ExchangeTruth, Mark, TokenTruth};

/// What a stream has told about itself so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The first id.
    pub(crate) id: Option<String>,
    /// The latest usage.
    pub(crate) usage: Option<Usage>,
    /// Events with text.
    pub(crate) text_events: u64,
    /// `[DONE]` came.
    pub(crate) done: bool,
}

impl Seen {
    /// Writes it into a truth.
    pub(crate) fn note(&self, truth: &mut ExchangeTruth) {
        truth.response_id.clone_from(&self.id);
        truth.prompt_tokens = self.usage.map(|usage| usage.prompt);
        truth.completion_tokens = self.usage.map(|usage| usage.completion);
        truth.cached_tokens = self.usage.and_then(|usage| usage.cached);
    }
}

/// One event.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Its data, `None` for a comment.
    pub(crate) data: Option<Vec<u8>>,
    /// Its chunk, where the data is one.
    pub(crate) delta: Option<Delta>,
    /// Ends of its texts, without write stamps.
    pub(crate) tokens: Vec<TokenTruth>,
    /// What it marks.
    pub(crate) marks: Vec<Mark>,
    /// It carries the first text of the stream.
    pub(crate) first_text: bool,
}

/// Follows the events of one stream.
#[derive(Default)]
pub(crate) struct Reader {
    positions: Positions,
    pub(crate) seen: Seen,
}

impl Reader {
    /// Takes the next event, whose last byte was read at `read_at`.
    pub(crate) fn read(&mut self, event: &[u8], read_at: Option<u64>) -> Reading {
        let data = sse::data(event);
        let delta = data.as_deref().and_then(Delta::parse);
        let mut reading = Reading {
            data,
            delta: None,
            tokens: Vec::new(),
            marks: Vec::new(),
            first_text: false,
        };
        if let Some(delta) = delta {
            self.chunk(&delta, read_at, &mut reading);
            reading.delta = Some(delta);
        } else if is_done(reading.data.as_deref()) {
            self.seen.done = true;
            reading.marks.push(Mark::Done);
        }
        reading
    }

    /// Ends of the texts of a chunk or a whole answer.
    pub(crate) fn tokens(&mut self, delta: &Delta, read_at: Option<u64>) -> Vec<TokenTruth> {
        let positions = &mut self.positions;
        let end = |piece: &crate::delta::Piece| TokenTruth {
            choice: piece.choice,
            field: piece.field,
            tool: piece.tool,
            end_text_offset: positions.advance(
                piece.choice,
                piece.field,
                piece.tool,
                piece.text.len(),
            ),
            read_at,
            write_begin: 0,
            write_end: 0,
        };
        delta.pieces.iter().map(end).collect()
    }

    fn chunk(&mut self, delta: &Delta, read_at: Option<u64>, reading: &mut Reading) {
        if self.seen.id.is_none() {
            self.seen.id.clone_from(&delta.id);
        }
        self.seen.usage = delta.usage.or(self.seen.usage);
        reading.tokens = self.tokens(delta, read_at);
        if !reading.tokens.is_empty() {
            reading.first_text = self.seen.text_events == 0;
            self.seen.text_events += 1;
        }
        let present = [
            (delta.role, Mark::Role),
            (delta.finish, Mark::Finish),
            (delta.usage.is_some(), Mark::Usage),
        ];
        let present = present.into_iter().filter(|(present, _)| *present);
        reading.marks.extend(present.map(|(_, mark)| mark));
    }
}

fn is_done(data: Option<&[u8]>) -> bool {
    data.is_some_and(|data| data.trim_ascii() == b"[DONE]")
}
