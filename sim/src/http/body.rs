//! Taking the framing off a body.

use super::{Headers, HttpError};

const MAX_LINE: usize = 8 * 1024;

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Exactly this many bytes, 0 for no body.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// Everything until the peer closes.
    UntilClose,
}

impl Framing {
    /// The framing that a message's fields announce, `otherwise` when they announce none.
    pub(crate) fn of(headers: &Headers, otherwise: Self) -> Result<Self, HttpError> {
        if headers.has_token("transfer-encoding", "chunked") {
            return Ok(Self::Chunked);
        }
        match headers.get("content-length") {
            Some(length) => length
                .trim()
                .parse()
                .map(Self::Length)
                .map_err(|_| HttpError::Malformed("content-length is not a number")),
            None => Ok(otherwise),
        }
    }
}

enum State {
    Length(u64),
    UntilClose,
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailers,
    Done,
}

/// Turns a framed body, fed in pieces, into its bytes.
pub(crate) struct BodyDecoder {
    state: State,
    line: Vec<u8>,
}

impl BodyDecoder {
    /// A decoder at the first byte of a body.
    pub(crate) fn new(framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(left) => State::Length(left),
            Framing::Chunked => State::ChunkSize,
            Framing::UntilClose => State::UntilClose,
        };
        Self {
            state,
            line: Vec::new(),
        }
    }

    /// Whether the body is complete.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Appends the body bytes of `input` to `out` and tells how much of `input` was used.
    pub(crate) fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, HttpError> {
        let mut used = 0;
        while used < input.len() && !self.is_done() {
            used += self.step(&input[used..], out)?;
        }
        Ok(used)
    }

    /// Tells the decoder that the peer closed.
    pub(crate) fn end(&mut self) -> Result<(), HttpError> {
        match self.state {
            State::UntilClose | State::Done => {
                self.state = State::Done;
                Ok(())
            }
            _ => Err(HttpError::Truncated),
        }
    }

    fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, HttpError> {
        match self.state {
            State::UntilClose => {
                out.extend_from_slice(input);
                Ok(input.len())
            }
            State::Length(left) => Ok(self.data(left, input, out, State::Length, State::Done)),
            State::ChunkData(left) => {
                Ok(self.data(left, input, out, State::ChunkData, State::ChunkEnd))
            }
            State::ChunkSize | State::ChunkEnd | State::Trailers => self.framing_line(input),
            State::Done => Ok(0),
        }
    }

    fn data(
        &mut self,
        left: u64,
        input: &[u8],
        out: &mut Vec<u8>,
        unfinished: fn(u64) -> State,
        finished: State,
    ) -> usize {
        let take = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        out.extend_from_slice(&input[..take]);
        let left = left - take as u64;
        self.state = if left == 0 {
            finished
        } else {
            unfinished(left)
        };
        take
    }

    fn framing_line(&mut self, input: &[u8]) -> Result<usize, HttpError> {
        let end = memchr::memchr(b'\n', input);
        let used = end.map_or(input.len(), |at| at + 1);
        self.line.extend_from_slice(&input[..used]);
        if self.line.len() > MAX_LINE {
            return Err(HttpError::Malformed(
                "a line of chunked framing is too long",
            ));
        }
        if end.is_none() {
            return Ok(used);
        }
        let line = std::mem::take(&mut self.line);
        let line = line.trim_ascii_end();
        self.state = match (&self.state, line) {
            (State::ChunkSize, line) => match chunk_size(line)? {
                0 => State::Trailers,
                size => State::ChunkData(size),
            },
            (State::ChunkEnd, []) => State::ChunkSize,
            (State::ChunkEnd, _) => {
                return Err(HttpError::Malformed("a chunk is longer than its size"));
            }
            (_, []) => State::Done,
            _ => State::Trailers,
        };
        Ok(used)
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, HttpError> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or(line);
    std::str::from_utf8(digits.trim_ascii())
        .ok()
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or(HttpError::Malformed("a chunk size is not hexadecimal"))
}

#[cfg(test)]
mod tests {
    use super::{BodyDecoder, Framing};

    const CHUNKED: &[u8] = b"4\r\nwiki\r\nA;x=1\r\n0123456789\r\n0\r\nx-t: 1\r\n\r\nNEXT";

    #[test]
    fn any_split_of_a_chunked_body_gives_the_same_bytes() {
        for cut in 0..CHUNKED.len() {
            let mut decoder = BodyDecoder::new(Framing::Chunked);
            let mut body = Vec::new();
            let mut used = decoder.feed(&CHUNKED[..cut], &mut body).unwrap();
            used += decoder.feed(&CHUNKED[used..], &mut body).unwrap();
            assert!(decoder.is_done());
            assert_eq!(body, b"wiki0123456789");
            assert_eq!(&CHUNKED[used..], b"NEXT");
        }
    }

    #[test]
    fn an_early_end_is_an_error_unless_the_end_is_the_framing() {
        let mut body = Vec::new();
        let mut short = BodyDecoder::new(Framing::Length(5));
        short.feed(b"abc", &mut body).unwrap();
        assert!(short.end().is_err());
        let mut open = BodyDecoder::new(Framing::UntilClose);
        open.feed(b"abc", &mut body).unwrap();
        assert!(open.end().is_ok() && open.is_done());
        let mut wrong = BodyDecoder::new(Framing::Chunked);
        assert!(wrong.feed(b"zz\r\n", &mut body).is_err());
    }
}
