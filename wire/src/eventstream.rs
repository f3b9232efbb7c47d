//! `application/vnd.amazon.eventstream`: the frames that Bedrock and other services of AWS stream in.
//!
//! All numbers big-endian: `u32` total length, `u32` length of the headers, `u32` CRC-32 of these eight bytes,
//! headers, payload, `u32` CRC-32 of all before it (Smithy's specification of the Amazon event stream format,
//! <https://smithy.io/2.0/aws/amazon-eventstream.html>). A frame is checked before it is given. One whose own
//! sum is wrong is passed over and counted; one whose lengths cannot be believed ends the decoding, since
//! nothing marks where the next begins.

mod header;

#[cfg(test)]
mod tests;

pub use header::Value;

/// The service's own bound of a frame: 16 MiB.
pub const MAX_FRAME_BYTES: usize = 16 << 20;

/// Lengths and their sum.
const PRELUDE: usize = 12;

/// The prelude and the frame's own sum.
const OVERHEAD: usize = PRELUDE + 4;

/// Buffers larger than this are given back after the frame that needed them.
const RETAINED_BYTES: usize = 16 << 10;

/// One frame whose sums are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    headers: &'a [u8],
    /// What it carries.
    pub payload: &'a [u8],
    /// Body offset just after its last byte.
    pub end: u64,
}

impl<'a> Frame<'a> {
    /// The string header of this name, such as `:event-type`; `None` where there is none.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        header::all(self.headers).find_map(|(found, value)| match value {
            Value::String(text) if found == name => Some(text),
            _ => None,
        })
    }

    /// Body offset of its first byte. Behind that of the frame before, where one between was passed over.
    pub fn start(&self) -> u64 {
        self.end - (OVERHEAD + self.headers.len() + self.payload.len()) as u64
    }

    /// All headers up to the first that cannot be read, in their order.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, Value<'a>)> + use<'a> {
        header::all(self.headers)
    }
}

/// What a decoder had to pass over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Frames whose sum is wrong, and 1 more where a prelude could not be believed.
    pub malformed: u64,
    /// Frames beyond the bound.
    pub oversized: u64,
}

/// The incremental decoder of one stream.
#[derive(Debug)]
pub struct FrameDecoder {
    max_frame_bytes: usize,
    /// The beginning of a frame that is not there in full.
    partial: Vec<u8>,
    /// Bytes of an oversized frame that are still to come.
    skip: usize,
    /// A prelude could not be believed: nothing behind it is read.
    lost: bool,
    losses: Losses,
    consumed: u64,
}

impl FrameDecoder {
    /// A decoder for one stream. A frame of more than `max_frame_bytes` is passed over and counted.
    pub fn new(max_frame_bytes: usize) -> Self {
        Self {
            max_frame_bytes,
            partial: Vec::new(),
            skip: 0,
            lost: false,
            losses: Losses::default(),
            consumed: 0,
        }
    }

    /// Takes the next bytes of the stream and reports every frame that they complete. A frame that lies whole
    /// in `bytes` is not copied, and no byte is copied twice.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(Frame<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.lost {
            if self.skip > 0 {
                rest = self.passed_over(rest);
            } else if self.partial.is_empty() && rest.len() >= PRELUDE {
                rest = self.begin(rest, sink);
            } else {
                rest = self.go_on(rest, sink);
            }
        }
        self.consumed += rest.len() as u64;
    }

    /// A frame has begun and its last byte has not come; or the stream could not be read to its end.
    pub fn inside_frame(&self) -> bool {
        !self.partial.is_empty() || self.skip > 0 || self.lost
    }

    /// What was passed over so far.
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// Bytes fed so far.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    fn passed_over<'b>(&mut self, rest: &'b [u8]) -> &'b [u8] {
        let step = self.skip.min(rest.len());
        self.skip -= step;
        self.take(rest, step).1
    }

    /// `rest` begins with a prelude.
    fn begin<'b>(&mut self, rest: &'b [u8], sink: &mut impl FnMut(Frame<'_>)) -> &'b [u8] {
        let Some(total) = self.length(rest) else {
            return rest;
        };
        if total > rest.len() {
            self.partial.extend_from_slice(rest);
            return self.take(rest, rest.len()).1;
        }
        let (frame, behind) = self.take(rest, total);
        self.frame(frame, sink);
        behind
    }

    /// A frame began in an earlier feed, or `rest` is shorter than a prelude.
    fn go_on<'b>(&mut self, rest: &'b [u8], sink: &mut impl FnMut(Frame<'_>)) -> &'b [u8] {
        let wanted = match self.partial.len() {
            known if known < PRELUDE => PRELUDE - known,
            known => total_of(&self.partial) - known,
        };
        let (bytes, behind) = self.take(rest, wanted.min(rest.len()));
        let had_prelude = self.partial.len() >= PRELUDE;
        self.partial.extend_from_slice(bytes);
        if bytes.len() < wanted {
            return behind;
        }
        let mut kept = std::mem::take(&mut self.partial);
        if had_prelude {
            self.frame(&kept, sink);
            kept.clear();
            kept.shrink_to(RETAINED_BYTES);
        } else if self.length(&kept).is_none() {
            // What is kept of it is passed over already.
            self.skip = self.skip.saturating_sub(kept.len());
            kept.clear();
        }
        self.partial = kept;
        behind
    }

    fn take<'b>(&mut self, rest: &'b [u8], step: usize) -> (&'b [u8], &'b [u8]) {
        self.consumed += step as u64;
        rest.split_at(step)
    }

    /// The length of the frame that begins with this prelude; `None` where it is not to be read, which is
    /// then counted.
    fn length(&mut self, prelude: &[u8]) -> Option<usize> {
        let (total, headers) = (total_of(prelude), number(&prelude[4..]));
        let sum = crc32fast::hash(&prelude[..8]);
        if sum != number(&prelude[8..]) || total < OVERHEAD || headers as usize > total - OVERHEAD {
            self.losses.malformed += 1;
            self.lost = true;
            return None;
        }
        if total > self.max_frame_bytes {
            self.losses.oversized += 1;
            self.skip = total;
            return None;
        }
        Some(total)
    }

    /// `bytes` are one frame with a prelude that is right.
    fn frame(&mut self, bytes: &[u8], sink: &mut impl FnMut(Frame<'_>)) {
        let (body, sum) = bytes.split_at(bytes.len() - 4);
        if crc32fast::hash(body) != number(sum) {
            self.losses.malformed += 1;
            return;
        }
        let headers = PRELUDE + number(&body[4..]) as usize;
        sink(Frame {
            headers: &body[PRELUDE..headers],
            payload: &body[headers..],
            end: self.consumed,
        });
    }
}

/// A big-endian number at the beginning of `bytes`, which are four at least.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .first_chunk()
        .map_or(0, |four| u32::from_be_bytes(*four))
}

fn total_of(prelude: &[u8]) -> usize {
    number(prelude) as usize
}

/// A frame of string headers, as a server writes it.
///
/// # Panics
/// A header's name is longer than 255 bytes or its value than 32,767, or the frame than 16 MiB.
#[must_use]
pub fn encode(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; PRELUDE];
    for (name, value) in headers {
        header::push(&mut bytes, name, value);
    }
    let length = bytes.len() - PRELUDE;
    bytes.extend_from_slice(payload);
    let total = bytes.len() + 4;
    assert!(total <= MAX_FRAME_BYTES, "a frame of {total} bytes");
    bytes[..4].copy_from_slice(&(total as u32).to_be_bytes());
    bytes[4..8].copy_from_slice(&(length as u32).to_be_bytes());
    let prelude = crc32fast::hash(&bytes[..8]);
    bytes[8..PRELUDE].copy_from_slice(&prelude.to_be_bytes());
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes
}
