//! Where an HTTP/1 body ends, and which bytes of a read are its payload (RFC 9112 §6, §7).
//!
//! Bytes pass through unchanged, framing and all; this only follows along.

use std::ops::Range;

/// Longest chunk-size line with its extensions, and longest trailer section.
const MAX_LINE: usize = 16 * 1024;

/// How the length of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLength {
    /// No body.
    None,
    /// `Content-Length`.
    Fixed(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Until the connection ends (responses only).
    UntilClose,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fixed(u64),
    UntilClose,
    SizeLine {
        size: u64,
        digits: u8,
        extension: bool,
        length: usize,
    },
    Data(u64),
    DataEnd,
    Trailer {
        line: usize,
        total: usize,
    },
    Done,
}

/// A framing error: the peer broke HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed chunked body: {0}")]
pub(crate) struct FramingError(&'static str);

/// Follows one body.
#[derive(Debug)]
pub(crate) struct Framing {
    state: State,
    /// The trailer section as it came, its closing line too.
    trailers: Vec<u8>,
}

const SIZE_LINE: State = State::SizeLine {
    size: 0,
    digits: 0,
    extension: false,
    length: 0,
};

impl Framing {
    /// Before the first byte of a body of this length.
    pub(crate) fn new(length: BodyLength) -> Self {
        let state = match length {
            BodyLength::None | BodyLength::Fixed(0) => State::Done,
            BodyLength::Fixed(n) => State::Fixed(n),
            BodyLength::Chunked => SIZE_LINE,
            BodyLength::UntilClose => State::UntilClose,
        };
        Self {
            state,
            trailers: Vec::new(),
        }
    }

    /// The trailer section of a chunked body that has ended: field lines and the closing one.
    pub(crate) fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// The body has ended.
    pub(crate) fn done(&self) -> bool {
        self.state == State::Done
    }

    /// The end of the connection is a proper end of this body.
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.state == State::UntilClose
    }

    /// Takes the next bytes; returns how many belong to the body (fewer than all only where it
    /// ended) and adds the ranges of its payload to `payload`.
    pub(crate) fn follow(
        &mut self,
        bytes: &[u8],
        payload: &mut Vec<Range<usize>>,
    ) -> Result<usize, FramingError> {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                State::Done => break,
                State::UntilClose => {
                    payload.push(at..bytes.len());
                    at = bytes.len();
                }
                State::Fixed(left) => {
                    let take = take(left, bytes.len() - at);
                    payload.push(at..at + take);
                    at += take;
                    let left = left - take as u64;
                    self.state = if left == 0 {
                        State::Done
                    } else {
                        State::Fixed(left)
                    };
                }
                State::Data(left) => {
                    let take = take(left, bytes.len() - at);
                    payload.push(at..at + take);
                    at += take;
                    let left = left - take as u64;
                    self.state = if left == 0 {
                        State::DataEnd
                    } else {
                        State::Data(left)
                    };
                }
                state => {
                    if matches!(state, State::Trailer { .. }) {
                        self.trailers.push(bytes[at]);
                    }
                    self.state = self.line_byte(bytes[at])?;
                    at += 1;
                }
            }
        }
        Ok(at)
    }

    /// One byte of a size line, of a chunk's closing line end, or of the trailers.
    fn line_byte(&self, byte: u8) -> Result<State, FramingError> {
        match self.state {
            State::SizeLine {
                size,
                digits,
                extension,
                length,
            } => size_line(byte, size, digits, extension, length + 1),
            State::DataEnd => match byte {
                b'\r' => Ok(State::DataEnd),
                b'\n' => Ok(SIZE_LINE),
                _ => Err(FramingError("no line end after a chunk")),
            },
            State::Trailer { line, total } => match byte {
                _ if total > MAX_LINE => Err(FramingError("trailers longer than 16 KiB")),
                b'\n' if line == 0 => Ok(State::Done),
                b'\n' => Ok(State::Trailer {
                    line: 0,
                    total: total + 1,
                }),
                b'\r' => Ok(State::Trailer {
                    line,
                    total: total + 1,
                }),
                _ => Ok(State::Trailer {
                    line: line + 1,
                    total: total + 1,
                }),
            },
            state => Ok(state),
        }
    }
}

fn take(left: u64, there: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(there)
}

fn size_line(
    byte: u8,
    size: u64,
    digits: u8,
    extension: bool,
    length: usize,
) -> Result<State, FramingError> {
    if length > MAX_LINE {
        return Err(FramingError("chunk size line longer than 16 KiB"));
    }
    match byte {
        b'\n' if digits == 0 => Err(FramingError("no chunk size")),
        b'\n' if size == 0 => Ok(State::Trailer { line: 0, total: 0 }),
        b'\n' => Ok(State::Data(size)),
        _ if extension => Ok(State::SizeLine {
            size,
            digits,
            extension,
            length,
        }),
        b'\r' | b';' | b' ' | b'\t' if digits > 0 => Ok(State::SizeLine {
            size,
            digits,
            extension: true,
            length,
        }),
        _ => {
            let digit = (byte as char)
                .to_digit(16)
                .ok_or(FramingError("chunk size is not hexadecimal"))?;
            if digits >= 16 {
                return Err(FramingError("chunk size beyond 64 bits"));
            }
            Ok(State::SizeLine {
                size: size << 4 | u64::from(digit),
                digits: digits + 1,
                extension,
                length,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload_of(length: BodyLength, bytes: &[u8], cut: usize) -> (Vec<u8>, usize, bool) {
        let mut framing = Framing::new(length);
        let mut out = Vec::new();
        let mut used = 0;
        for part in [&bytes[..cut], &bytes[cut..]] {
            let mut ranges = Vec::new();
            used += framing.follow(part, &mut ranges).unwrap();
            for range in ranges {
                out.extend_from_slice(&part[range]);
            }
        }
        (out, used, framing.done())
    }

    #[test]
    fn any_split_gives_the_same_payload_and_end() {
        let chunked = b"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX-T: 1\r\n\r\nNEXT";
        for cut in 0..=chunked.len() {
            let (out, used, done) = payload_of(BodyLength::Chunked, chunked, cut);
            assert_eq!(
                (out.as_slice(), used, done),
                (&b"hello world"[..], chunked.len() - 4, true),
                "cut {cut}"
            );
        }
        for cut in 0..=7 {
            let (out, used, done) = payload_of(BodyLength::Fixed(5), b"helloXX", cut);
            assert_eq!(
                (out.as_slice(), used, done),
                (&b"hello"[..], 5, true),
                "cut {cut}"
            );
        }
    }

    #[test]
    fn broken_chunks_are_errors() {
        for bad in [
            &b"zz\r\n"[..],
            b"\r\n",
            b"3\r\nabcX",
            b"11111111111111111\r\n",
        ] {
            assert!(
                Framing::new(BodyLength::Chunked)
                    .follow(bad, &mut Vec::new())
                    .is_err(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_body_that_ends_with_the_connection_never_ends_before() {
        let mut framing = Framing::new(BodyLength::UntilClose);
        framing.follow(b"abc", &mut Vec::new()).unwrap();
        assert!(!framing.done() && framing.ends_with_connection());
        assert!(Framing::new(BodyLength::Fixed(0)).done());
    }
}
