//! Event stream framing, incremental, by the rules of the WHATWG HTML standard (§9.2.6
//! "Interpreting an event stream"), with three differences that a meter needs: a comment is
//! reported, a last event without its blank line is reported as such instead of dropped, and an
//! event may not exceed a bound.

use memchr::{memchr, memchr2};

#[cfg(test)]
mod tests;

/// The default bound of one event: 4 MiB.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Buffers larger than this are given back after the event that needed them.
const RETAINED_BYTES: usize = 16 << 10;

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// One event, or one comment line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `data` lines, joined by LF. Empty for a comment, whose text is not kept.
    pub data: &'a [u8],
    /// The `event` field; `None` when missing, empty or not UTF-8.
    pub event: Option<&'a str>,
    /// The `id` field of this very event; `None` when missing or not UTF-8.
    pub id: Option<&'a str>,
    /// A comment line (`: …`). It neither ends nor changes the event around it.
    pub comment: bool,
    /// The stream ended before the blank line (or, for a comment, before its line's end).
    pub unterminated: bool,
    /// Body offset just after the byte that completed this event: the first terminator byte of its
    /// blank line. A LF that follows a CR is not waited for, and not included.
    pub end: u64,
}

/// What of an unfinished line is kept between two feeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Partial {
    #[default]
    Nothing,
    /// Its bytes are in `line`.
    Kept,
    /// Its first byte was a colon: only its end matters.
    Comment,
    /// It belongs to an oversized event.
    Dropped,
}

/// The incremental decoder of one stream.
#[derive(Debug)]
pub struct SseDecoder {
    max_event_bytes: usize,
    partial: Partial,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    event: Vec<u8>,
    id: Vec<u8>,
    has_id: bool,
    /// Bytes of the lines of the event in progress, comments and terminators apart.
    event_bytes: usize,
    /// The event in progress is oversized: nothing of it is kept until its blank line.
    skipping: bool,
    after_cr: bool,
    bom_matched: usize,
    consumed: u64,
    oversized: u64,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::new(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// A decoder for one stream. `max_event_bytes` bounds the lines of one event, comments and
    /// line terminators apart; memory stays below a small multiple of it.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            partial: Partial::Nothing,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            event: Vec::new(),
            id: Vec::new(),
            has_id: false,
            event_bytes: 0,
            skipping: false,
            after_cr: false,
            bom_matched: 0,
            consumed: 0,
            oversized: 0,
        }
    }

    /// Takes the next bytes of the stream and reports every event that they complete.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(SseEvent<'_>)) {
        let mut rest = self.strip_bom(bytes);
        // A lone data line that lies whole in `bytes` is never copied.
        let mut held = None;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                self.consumed += 1;
                rest = &rest[1..];
                continue;
            }
            let Some(at) = memchr2(b'\n', b'\r', rest) else {
                self.consumed += rest.len() as u64;
                self.keep(rest);
                break;
            };
            self.consumed += at as u64 + 1;
            self.after_cr = rest[at] == b'\r';
            self.end_line(&rest[..at], &mut held, sink);
            rest = &rest[at + 1..];
        }
        if let Some(data) = held.filter(|_| self.has_data) {
            self.data.extend_from_slice(data);
        }
    }

    /// Ends the stream: what is left is reported as unterminated. Nothing may be fed afterwards.
    pub fn finish(&mut self, sink: &mut impl FnMut(SseEvent<'_>)) {
        match std::mem::take(&mut self.partial) {
            Partial::Kept => self.end_kept_line(&[]),
            Partial::Comment => self.comment(true, sink),
            Partial::Nothing | Partial::Dropped => {}
        }
        self.dispatch(None, true, sink);
    }

    /// Events dropped because they exceeded the bound. Decoding resumed after their blank line.
    pub fn oversized(&self) -> u64 {
        self.oversized
    }

    /// An event has begun and its blank line has not come.
    pub fn inside_event(&self) -> bool {
        self.event_bytes > 0
    }

    /// Bytes fed so far.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    fn strip_bom<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let mut rest = bytes;
        while self.bom_matched < BOM.len() {
            let Some((&first, tail)) = rest.split_first() else {
                return rest;
            };
            if first != BOM[self.bom_matched] {
                let matched = std::mem::replace(&mut self.bom_matched, BOM.len());
                if matched > 0 {
                    self.keep(&BOM[..matched]);
                }
                return rest;
            }
            self.bom_matched += 1;
            self.consumed += 1;
            rest = tail;
        }
        rest
    }

    /// Keeps the beginning of a line, or more of it. `bytes` is not empty and has no terminator.
    fn keep(&mut self, bytes: &[u8]) {
        match self.partial {
            Partial::Nothing if bytes[0] == b':' => self.partial = Partial::Comment,
            Partial::Nothing | Partial::Kept => {
                if self.admit(bytes.len()) {
                    self.line.extend_from_slice(bytes);
                    self.partial = Partial::Kept;
                } else {
                    self.partial = Partial::Dropped;
                }
            }
            Partial::Comment | Partial::Dropped => {}
        }
    }

    fn end_line<'b>(
        &mut self,
        line: &'b [u8],
        held: &mut Option<&'b [u8]>,
        sink: &mut impl FnMut(SseEvent<'_>),
    ) {
        match std::mem::take(&mut self.partial) {
            Partial::Nothing => match line.first() {
                None => self.dispatch(held.take(), false, sink),
                Some(b':') => self.comment(false, sink),
                Some(_) if !self.admit(line.len()) => *held = None,
                Some(_) => self.whole_line(line, held),
            },
            Partial::Kept if self.admit(line.len()) => self.end_kept_line(line),
            Partial::Comment => self.comment(false, sink),
            Partial::Kept | Partial::Dropped => {}
        }
    }

    fn whole_line<'b>(&mut self, line: &'b [u8], held: &mut Option<&'b [u8]>) {
        let (name, value) = split_field(line);
        if name != b"data" {
            return self.field(name, value);
        }
        if self.has_data {
            if let Some(first) = held.take() {
                self.data.extend_from_slice(first);
            }
            self.field(name, value);
        } else {
            self.has_data = true;
            *held = Some(value);
        }
    }

    fn end_kept_line(&mut self, tail: &[u8]) {
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(tail);
        let (name, value) = split_field(&line);
        self.field(name, value);
        line.clear();
        self.line = line;
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            b"id" if memchr(0, value).is_none() => {
                self.has_id = true;
                self.id.clear();
                self.id.extend_from_slice(value);
            }
            // `retry` concerns reconnecting clients; other names are ignored by the standard.
            _ => {}
        }
    }

    /// Counts `more` bytes of the event in progress; `false` when it is, or thereby becomes, oversized.
    fn admit(&mut self, more: usize) -> bool {
        if self.skipping {
            return false;
        }
        self.event_bytes = self.event_bytes.saturating_add(more);
        if self.event_bytes > self.max_event_bytes {
            self.reset();
            self.skipping = true;
            self.oversized += 1;
        }
        !self.skipping
    }

    fn comment(&mut self, unterminated: bool, sink: &mut impl FnMut(SseEvent<'_>)) {
        sink(SseEvent {
            data: &[],
            event: None,
            id: None,
            comment: true,
            unterminated,
            end: self.consumed,
        });
    }

    fn dispatch(
        &mut self,
        held: Option<&[u8]>,
        unterminated: bool,
        sink: &mut impl FnMut(SseEvent<'_>),
    ) {
        if self.has_data {
            sink(SseEvent {
                data: held.unwrap_or(&self.data),
                event: std::str::from_utf8(&self.event)
                    .ok()
                    .filter(|name| !name.is_empty()),
                id: self
                    .has_id
                    .then(|| std::str::from_utf8(&self.id).ok())
                    .flatten(),
                comment: false,
                unterminated,
                end: self.consumed,
            });
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.skipping = false;
        self.event_bytes = 0;
        self.has_data = false;
        self.has_id = false;
        for buffer in [
            &mut self.line,
            &mut self.data,
            &mut self.event,
            &mut self.id,
        ] {
            buffer.clear();
            buffer.shrink_to(RETAINED_BYTES);
        }
    }
}

/// Splits a line at its first colon; one space after it is not part of the value.
fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b':', line) {
        Some(at) => {
            let value = &line[at + 1..];
            (&line[..at], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, &[]),
    }
}
