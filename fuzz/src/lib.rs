//! What the fuzz targets share: an input is five control bytes and a body. The control bytes choose
//! the splits and the bound, so that the fuzzer can steer them.

use wire::{Decoder, Dialect, Framing, Limits};

/// An input's control bytes, read.
#[derive(Debug, Clone, Copy)]
pub struct Control {
    seed: u32,
    variant: u8,
}

impl Control {
    /// Takes the control bytes off; `None` when there are too few.
    pub fn split_off(input: &[u8]) -> Option<(Self, &[u8])> {
        let (&[a, b, c, d, variant], body) = input.split_first_chunk()?;
        Some((
            Self {
                seed: u32::from_le_bytes([a, b, c, d]),
                variant,
            },
            body,
        ))
    }

    /// A bound that is usually large, and sometimes small enough to be met.
    pub fn bound(self) -> usize {
        match self.variant >> 2 {
            small @ 0..16 => usize::from(small) * 8,
            _ => 1 << 20,
        }
    }

    fn content_type(self) -> Option<&'static str> {
        match self.variant & 3 {
            0 | 1 => Some("text/event-stream"),
            2 => Some("application/json"),
            _ => None,
        }
    }

    /// The body in pieces of random lengths (0 too). Another `salt` splits otherwise.
    pub fn pieces(self, body: &[u8], salt: u32) -> Vec<&[u8]> {
        let mut state = self.seed ^ salt.wrapping_mul(0x9E37_79B9) | 1;
        let longest = 1 + (self.seed >> 24) as usize;
        let mut pieces = Vec::new();
        let mut rest = body;
        while !rest.is_empty() {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let (piece, tail) = rest.split_at((state as usize % (longest + 1)).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        pieces
    }
}

/// Decodes the input's body whole and under two random splits, and requires the same of all.
///
/// # Panics
/// When two splits disagree, or an event breaks a promise of the decoder: that is the find.
pub fn decoder_agrees(dialect: Dialect, input: &[u8]) {
    let Some((control, body)) = Control::split_off(input) else {
        return;
    };
    let whole = decode(dialect, control, &[body]);
    assert_eq!(decode(dialect, control, &control.pieces(body, 1)), whole);
    assert_eq!(decode(dialect, control, &control.pieces(body, 2)), whole);
}

fn decode(dialect: Dialect, control: Control, pieces: &[&[u8]]) -> Vec<String> {
    let limits = Limits {
        max_event_bytes: control.bound(),
        max_body_bytes: control.bound(),
    };
    let mut decoder = Decoder::new(dialect, control.content_type(), limits);
    let mut seen = Vec::new();
    let mut fed = 0;
    let mut last = 0;
    for piece in pieces {
        fed += piece.len() as u64;
        decoder.feed(piece, &mut |framed| {
            assert!(!framed.events.is_empty() && !framed.unterminated);
            assert!(
                last < framed.end && framed.end <= fed,
                "ends rise and lie within the bytes fed"
            );
            last = framed.end;
            seen.push(format!("{framed:?}"));
        });
    }
    decoder.finish(&mut |framed| {
        assert!(
            framed.end == fed && (framed.unterminated || decoder_is_json(control, body_of(pieces)))
        );
        seen.push(format!("{framed:?}"));
    });
    assert_ne!(decoder.framing(), Framing::Opaque);
    seen.push(format!("{:?}", decoder.counts()));
    seen
}

fn body_of<'a>(pieces: &[&'a [u8]]) -> Option<&'a u8> {
    pieces.iter().find_map(|piece| piece.first())
}

fn decoder_is_json(control: Control, first: Option<&u8>) -> bool {
    match control.content_type() {
        Some(content_type) => content_type == "application/json",
        None => first == Some(&b'{'),
    }
}

/// Decodes Amazon frames whole and under two random splits, and requires the same of all.
///
/// # Panics
/// As [`decoder_agrees`].
pub fn frames_agree(dialect: Dialect, control: Control, bytes: &[u8]) {
    let whole = decode_frames(dialect, &[bytes]);
    assert_eq!(decode_frames(dialect, &control.pieces(bytes, 1)), whole);
    assert_eq!(decode_frames(dialect, &control.pieces(bytes, 2)), whole);
}

fn decode_frames(dialect: Dialect, pieces: &[&[u8]]) -> Vec<String> {
    let kind = Some("application/vnd.amazon.eventstream");
    let mut decoder = Decoder::new(dialect, kind, Limits::default());
    let (mut seen, mut fed, mut last) = (Vec::new(), 0, 0);
    for piece in pieces {
        fed += piece.len() as u64;
        decoder.feed(piece, &mut |framed| {
            assert!(!framed.events.is_empty() && !framed.unterminated);
            assert!(last < framed.end && framed.end <= fed);
            last = framed.end;
            seen.push(format!("{framed:?}"));
        });
    }
    decoder.finish(&mut |framed| panic!("nothing is held back: {framed:?}"));
    seen.push(format!("{:?}", decoder.counts()));
    seen
}
