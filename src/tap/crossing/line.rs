//! The HTTP/1 side of an exchange whose other side speaks HTTP/2.

use crate::tap::ending::RETAIN;
use crate::tap::framing::{BodyLength, Framing};
use crate::tap::head::{MAX_HEAD, field};
use crate::tap::portion::{Broken, Portion, Received};
use crate::tap::sending::Sending;
use crate::tap::socket::Socket;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use record::clock::Nanos;
use record::stamp::{Arrival, Departure};
use std::ops::Range;
use std::task::{Context, Poll, ready};

/// Bytes of one read.
const READ: usize = 16 * 1024;
/// A connection of HTTP/1 for one exchange.
pub(super) struct Line<'a> {
    pub(super) socket: &'a mut Socket,
    framing: Framing,
    /// Read before its turn, and when.
    early: (Vec<u8>, Arrival),
    buffer: Box<[u8]>,
    ranges: Vec<Range<usize>>,
    /// Bytes behind the end of the message.
    pub(super) surplus: Vec<u8>,
    /// The body as it came, framing and all, while it is kept.
    kept: Option<Vec<u8>>,
    /// What goes out has chunks.
    chunked: bool,
    out: Vec<u8>,
    encoded: bool,
    sending: Sending,
}

impl<'a> Line<'a> {
    /// What is read has a body of `length`, of which `early` was read before, at `arrival`.
    pub(super) fn new(
        socket: &'a mut Socket,
        length: BodyLength,
        early: Vec<u8>,
        arrival: Arrival,
    ) -> Self {
        Self {
            socket,
            framing: Framing::new(length),
            early: (early, arrival),
            buffer: vec![0; READ].into_boxed_slice(),
            ranges: Vec::new(),
            surplus: Vec::new(),
            kept: Some(Vec::new()),
            chunked: false,
            out: Vec::new(),
            encoded: false,
            sending: Sending::default(),
        }
    }

    /// The body to be read becomes known with the head.
    pub(super) fn expect(&mut self, length: BodyLength, early: Vec<u8>, arrival: Arrival) {
        self.framing = Framing::new(length);
        self.early = (early, arrival);
    }

    /// What is sent from now on has chunks, or has none.
    pub(super) fn set_chunked(&mut self, chunked: bool) {
        self.chunked = chunked;
    }

    /// Reads some of the connection, outside of any body.
    pub(super) fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(&[u8], Arrival), Broken>> {
        match ready!(self.socket.poll_read(cx, &mut self.buffer)) {
            Ok((0, _)) => Poll::Ready(Err(Broken::Closed)),
            Ok((count, arrival)) => Poll::Ready(Ok((&self.buffer[..count], arrival))),
            Err(error) => Poll::Ready(Err(Broken::Failed(error.kind()))),
        }
    }

    /// The next portion of the body: what one read brought of it.
    pub(super) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, Broken>> {
        loop {
            if !self.early.0.is_empty() {
                let (early, arrival) = (std::mem::take(&mut self.early.0), self.early.1);
                let portion = self.take(&early)?;
                if portion.end || !portion.data.is_empty() {
                    return Poll::Ready(Ok(Received { portion, arrival }));
                }
            }
            let (count, arrival) = match ready!(self.socket.poll_read(cx, &mut self.buffer)) {
                Ok(read) => read,
                Err(error) => return Poll::Ready(Err(Broken::Failed(error.kind()))),
            };
            if count == 0 {
                let end = self.framing.ends_with_connection();
                return Poll::Ready(if end {
                    let portion = Portion {
                        end,
                        ..Portion::default()
                    };
                    Ok(Received { portion, arrival })
                } else {
                    Err(Broken::Closed)
                });
            }
            self.early = (self.buffer[..count].to_vec(), arrival);
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Portion, Broken> {
        self.ranges.clear();
        let used = self
            .framing
            .follow(bytes, &mut self.ranges)
            .map_err(|_| Broken::Malformed)?;
        self.surplus.extend_from_slice(&bytes[used..]);
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&bytes[..used]);
        }
        self.kept.take_if(|kept| kept.len() > RETAIN);
        let data: Vec<u8> = match self.ranges.as_slice() {
            [one] => bytes[one.clone()].to_vec(),
            many => many
                .iter()
                .flat_map(|r| &bytes[r.clone()])
                .copied()
                .collect(),
        };
        let end = self.framing.done();
        Ok(Portion {
            data: Bytes::from(data),
            end,
            trailers: end.then(|| trailers(self.framing.trailers())).flatten(),
        })
    }

    /// The body as it came, where it was short enough to be kept.
    pub(super) fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.kept.take()
    }

    /// Sends `bytes` (the same on each call).
    pub(super) fn poll_send_bytes(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<Departure, Broken>> {
        self.sending
            .poll(cx, self.socket, bytes)
            .map_err(|error| Broken::Failed(error.kind()))
    }

    /// Sends `portion` (the same on each call) in one write.
    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        portion: &Portion,
    ) -> Poll<Result<Departure, Broken>> {
        if !self.encoded {
            self.out.clear();
            encode(&mut self.out, portion, self.chunked);
            self.encoded = true;
        }
        let sent = ready!(self.sending.poll(cx, self.socket, &self.out));
        self.encoded = false;
        Poll::Ready(sent.map_err(|error| Broken::Failed(error.kind())))
    }

    /// Reads on where the message is over, only to learn that the peer left.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.surplus.len() < MAX_HEAD {
            match ready!(self.socket.poll_read(cx, &mut self.buffer)) {
                Ok((count, _)) if count > 0 => {
                    self.surplus.extend_from_slice(&self.buffer[..count]);
                }
                _ => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Since when the peer takes no more; `None` where it does.
    pub(super) fn blocked_since(&self) -> Option<Nanos> {
        self.sending.blocked_since()
    }
}

fn encode(out: &mut Vec<u8>, portion: &Portion, chunked: bool) {
    if !chunked {
        out.extend_from_slice(&portion.data);
        return;
    }
    if !portion.data.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", portion.data.len()).as_bytes());
        out.extend_from_slice(&portion.data);
        out.extend_from_slice(b"\r\n");
    }
    if portion.end {
        out.extend_from_slice(b"0\r\n");
        for (name, value) in portion.trailers.iter().flatten() {
            field(out, name.as_str(), value.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// The fields of a trailer section; `None` where it has none. What is no field is left out.
fn trailers(section: &[u8]) -> Option<HeaderMap> {
    let mut storage = [httparse::EMPTY_HEADER; 32];
    let Ok(httparse::Status::Complete((_, found))) = httparse::parse_headers(section, &mut storage)
    else {
        return None;
    };
    let mut map = HeaderMap::new();
    for header in found {
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(header.name.as_bytes()),
            HeaderValue::from_bytes(header.value),
        ) {
            map.append(name, value);
        }
    }
    (!map.is_empty()).then_some(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_cross_and_the_last_portion_closes_the_chunks() {
        let trailers = trailers(b"X-Sum: 1\r\nx-b: 2\r\n\r\n").unwrap();
        let portion = Portion {
            data: Bytes::from_static(b"hello"),
            end: true,
            trailers: Some(trailers),
        };
        let mut out = Vec::new();
        encode(&mut out, &portion, true);
        assert_eq!(out, b"5\r\nhello\r\n0\r\nx-sum: 1\r\nx-b: 2\r\n\r\n");
        out.clear();
        encode(&mut out, &portion, false);
        assert_eq!(out, b"hello");
    }

    #[test]
    fn a_section_without_fields_is_none() {
        assert_eq!(trailers(b"\r\n"), None);
        assert_eq!(trailers(b""), None);
    }
}
