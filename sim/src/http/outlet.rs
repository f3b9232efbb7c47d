//! The response side of an exchange: frames pieces, writes them in one call, stamps what they carry.

use std::io;

use super::{Conn, Framing, Headers, Written, reason};
use crate::truth::{ExchangeTruth, Mark, TokenTruth};

/// Bytes that wait to be written and the truths that they carry.
pub(crate) struct Outlet {
    framing: Framing,
    bytes: Vec<u8>,
    tokens: Vec<TokenTruth>,
    marks: Vec<(Mark, Option<u64>)>,
}

impl Outlet {
    /// An outlet for a body with this framing. [`Framing::Length`] is announced by the caller and not
    /// enforced here: a stand-in must be able to lie.
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            bytes: Vec::with_capacity(1024),
            tokens: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Adds bytes as they are, without framing.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a response head.
    pub(crate) fn head(&mut self, status: u16, headers: &Headers) {
        let line = format!("HTTP/1.1 {status} {}\r\n", reason(status));
        self.raw(line.as_bytes());
        for (name, value) in &headers.0 {
            self.raw(name.as_bytes());
            self.raw(b": ");
            self.raw(value);
            self.raw(b"\r\n");
        }
        self.raw(b"\r\n");
    }

    /// Adds one piece of the body, made of `parts`: one HTTP chunk where the body is chunked.
    pub(crate) fn piece(&mut self, parts: &[&[u8]]) {
        let chunked = self.framing == Framing::Chunked;
        if chunked {
            let length: usize = parts.iter().map(|part| part.len()).sum();
            if length == 0 {
                return; // an empty chunk would end the body
            }
            push_hex(&mut self.bytes, length);
            self.raw(b"\r\n");
        }
        for part in parts {
            self.raw(part);
        }
        if chunked {
            self.raw(b"\r\n");
        }
    }

    /// Adds the end of the body, with trailer fields (each with its line end) where it is chunked.
    pub(crate) fn end(&mut self, trailers: &[u8]) {
        if self.framing == Framing::Chunked {
            self.raw(b"0\r\n");
            self.raw(trailers);
            self.raw(b"\r\n");
        }
    }

    /// The bytes added so far carry the end of this text. Its write stamps are set by the flush.
    pub(crate) fn carry_token(&mut self, token: TokenTruth) {
        self.tokens.push(token);
    }

    /// The bytes added so far carry this mark, read at `read_at` by a component that forwards it.
    pub(crate) fn carry_mark(&mut self, mark: Mark, read_at: Option<u64>) {
        self.marks.push((mark, read_at));
    }

    /// The bytes added so far carry everything of one event.
    pub(crate) fn carry(
        &mut self,
        tokens: Vec<TokenTruth>,
        marks: &[Mark],
        read_at: Option<u64>,
        truth: &mut ExchangeTruth,
    ) {
        truth.text_events_written += u64::from(!tokens.is_empty());
        self.tokens.extend(tokens);
        self.marks.extend(marks.iter().map(|mark| (*mark, read_at)));
    }

    /// Takes the waiting bytes out, to write them in an unusual way.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Writes the waiting bytes in one call and stamps what they carry.
    pub(crate) async fn flush(
        &mut self,
        conn: &Conn,
        truth: &mut ExchangeTruth,
    ) -> io::Result<Written> {
        let written = conn.write(&self.bytes).await?;
        self.bytes.clear();
        self.stamp(written, truth);
        Ok(written)
    }

    /// Gives everything carried the stamps of one write.
    pub(crate) fn stamp(&mut self, written: Written, truth: &mut ExchangeTruth) {
        for mut token in self.tokens.drain(..) {
            token.write_begin = written.begin;
            token.write_end = written.end;
            truth.push_token(token);
        }
        for (mark, read_at) in self.marks.drain(..) {
            truth.set_written(mark, read_at, written.begin, written.end);
        }
    }
}

fn push_hex(out: &mut Vec<u8>, number: usize) {
    let digits = (usize::BITS - number.leading_zeros()).div_ceil(4).max(1);
    for place in (0..digits).rev() {
        let digit = (number >> (place * 4)) & 0xf;
        out.push(b"0123456789abcdef"[digit]);
    }
}

/// A whole answer with a body of known length.
pub(crate) fn simple_response(
    status: u16,
    content_type: &str,
    extra: &Headers,
    body: &[u8],
    keep_alive: bool,
) -> Vec<u8> {
    let mut headers = extra.clone();
    let mut add = |name: &str, value: String| headers.0.push((name.to_owned(), value.into_bytes()));
    add("content-type", content_type.to_owned());
    add("content-length", body.len().to_string());
    if !keep_alive {
        add("connection", "close".to_owned());
    }
    let mut outlet = Outlet::new(Framing::Length(body.len() as u64));
    outlet.head(status, &headers);
    outlet.piece(&[body]);
    outlet.take_bytes()
}

#[cfg(test)]
mod tests {
    use super::push_hex;

    #[test]
    fn hexadecimal_as_the_standard_library_writes_it() {
        for number in [0, 1, 15, 16, 255, 256, 4096, 65_535, 1 << 30] {
            let mut out = Vec::new();
            push_hex(&mut out, number);
            assert_eq!(String::from_utf8(out).unwrap(), format!("{number:x}"));
        }
    }
}
