//! The two sides of an exchange, each of either version of HTTP.

use super::line::Line;
use crate::tap::ending::Why;
use crate::tap::framing::BodyLength;
use crate::tap::head::{self, RequestHead, ResponseHead};
use crate::tap::http2::{Answer, Asked, Asking};
use crate::tap::portion::{Broken, Portion, Received};
use record::clock::Nanos;
use record::stamp::{Arrival, Departure};
use std::task::{Context, Poll, ready};

/// The client's side.
pub(super) enum Near<'a> {
    Http1(Box<Line<'a>>),
    Http2(&'a mut Asked),
}

/// The upstream's side.
pub(super) enum Far<'a> {
    /// With the bytes of its head so far, then free.
    Http1(Line<'a>, Vec<u8>),
    Http2(Asking<'a>),
}

/// Why the upstream gave no head.
pub(super) enum NoHead {
    /// The request was certainly not taken up: it may be sent again.
    Untouched,
    Because(Why),
}

impl Near<'_> {
    pub(super) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, Broken>> {
        match self {
            Self::Http1(line) => line.poll_received(cx),
            Self::Http2(asked) => asked.poll_received(cx),
        }
    }

    /// Sends the head of the answer: `bytes` over HTTP/1, `head` over HTTP/2.
    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        (head, bytes): (&ResponseHead, &[u8]),
        extra: &[(&str, &str)],
        end: bool,
    ) -> Poll<Result<Departure, Broken>> {
        match self {
            Self::Http1(line) => line.poll_send_bytes(cx, bytes),
            Self::Http2(asked) => Poll::Ready(asked.answer(head, extra, end)),
        }
    }

    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        portion: &mut Portion,
    ) -> Poll<Result<Departure, Broken>> {
        match self {
            Self::Http1(line) => line.poll_send(cx, portion),
            Self::Http2(asked) => asked.poll_send(cx, portion),
        }
    }

    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Http1(line) => line.poll_gone(cx),
            Self::Http2(asked) => asked.poll_gone(cx),
        }
    }

    pub(super) fn blocked_since(&self) -> Option<Nanos> {
        match self {
            Self::Http1(line) => line.blocked_since(),
            Self::Http2(asked) => asked.blocked_since(),
        }
    }

    /// The request's body as it came, where it was kept.
    pub(super) fn take_kept(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Http1(line) => line.take_kept(),
            Self::Http2(asked) => asked.take_kept(),
        }
    }
}

impl Far<'_> {
    /// Sends the request's head: `bytes` over HTTP/1, `head` over HTTP/2.
    pub(super) fn poll_ask(
        &mut self,
        cx: &mut Context<'_>,
        (head, bytes): (&RequestHead, &[u8]),
        host: Option<&str>,
        extra: &[(&str, &str)],
        end: bool,
    ) -> Poll<Result<Departure, Broken>> {
        match self {
            Self::Http1(line, _) => line.poll_send_bytes(cx, bytes),
            Self::Http2(asking) => Poll::Ready(asking.ask(head, host, extra, end)),
        }
    }

    pub(super) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        portion: &mut Portion,
    ) -> Poll<Result<Departure, Broken>> {
        match self {
            Self::Http1(line, _) => line.poll_send(cx, portion),
            Self::Http2(asking) => asking.poll_send(cx, portion),
        }
    }

    pub(super) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        method: &str,
    ) -> Poll<Result<Answer, NoHead>> {
        match self {
            Self::Http1(line, bytes) => poll_line_head(line, bytes, cx, method),
            Self::Http2(asking) => asking.poll_head(cx).map_err(|(broken, untouched)| {
                if untouched {
                    NoHead::Untouched
                } else {
                    NoHead::Because(why(broken))
                }
            }),
        }
    }

    pub(super) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, Broken>> {
        match self {
            Self::Http1(line, _) => line.poll_received(cx),
            Self::Http2(asking) => asking.poll_received(cx),
        }
    }

    /// Nothing stands behind the answer.
    pub(super) fn clean(&self) -> bool {
        match self {
            Self::Http1(line, _) => line.surplus.is_empty(),
            Self::Http2(_) => true,
        }
    }
}

fn why(broken: Broken) -> Why {
    match broken {
        Broken::Closed => Why::Closed,
        Broken::Failed(kind) => Why::Failed(kind),
        Broken::Malformed => Why::Malformed,
        Broken::Reset(reason) => Why::Reset(reason),
    }
}

fn poll_line_head(
    line: &mut Line<'_>,
    bytes: &mut Vec<u8>,
    cx: &mut Context<'_>,
    method: &str,
) -> Poll<Result<Answer, NoHead>> {
    // A final head can stand right behind an interim one: first what is there.
    let mut arrival = Arrival::instant(record::clock::now());
    loop {
        match head::response(bytes, method) {
            Err(_) => return Poll::Ready(Err(NoHead::Because(Why::Malformed))),
            Ok(None) => {}
            // Nothing was asked to be upgraded, so 101 answers nothing.
            Ok(Some((_, head))) if head.status == 101 => {
                return Poll::Ready(Err(NoHead::Because(Why::Malformed)));
            }
            Ok(Some((length, head))) if head.status < 200 => {
                bytes.drain(..length);
                return Poll::Ready(Ok(Answer::Interim(head)));
            }
            Ok(Some((length, head))) => {
                let rest = bytes.split_off(length);
                *bytes = Vec::new();
                let end = matches!(head.body, BodyLength::None | BodyLength::Fixed(0));
                line.expect(head.body, rest, arrival);
                return Poll::Ready(Ok(Answer::Final(head, end, arrival)));
            }
        }
        let reused = line.socket.reused();
        match ready!(line.poll_bytes(cx)) {
            Ok((read, at)) => {
                bytes.extend_from_slice(read);
                arrival = at;
            }
            Err(_) if reused && bytes.is_empty() => {
                return Poll::Ready(Err(NoHead::Untouched));
            }
            Err(broken) => return Poll::Ready(Err(NoHead::Because(why(broken)))),
        }
    }
}
