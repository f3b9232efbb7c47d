//! One exchange in which at least one side speaks HTTP/2: heads are translated, bodies go over
//! portion by portion, one write for each read, each stamped as far as its connection allows.
//!
//! The shape is that of [`super::relay`], which passes HTTP/1 through byte by byte and is what
//! measured chains use.

mod line;
mod sides;
mod steps;

use super::context::{TapContext, Timeouts};
use super::ending::{Ending, Leftover};
use super::framing::BodyLength;
use super::head::{RequestHead, ResponseHead};
use super::http2::{Asked, Asking, Session};
use super::live::Live;
use super::passing::Passing;
use super::patience::Patience;
use super::portion::Portion;
use super::socket::Socket;
use line::Line;
use record::clock::Nanos;
use record::stamp::Arrival;
use sides::{Far, Near};
use std::task::{Context, Poll};

#[derive(Debug)]
enum Outward {
    Head,
    Reading,
    Sending(Portion),
    /// All of it is sent.
    Done,
    /// The upstream takes no more; its answer may still come.
    Broken,
}

#[derive(Debug)]
enum Homeward {
    Head,
    /// A 1xx on its way to a client of HTTP/1.
    Interim(Vec<u8>),
    SendingHead(Box<Answering>),
    Reading,
    Sending {
        portion: Portion,
        data: bytes::Bytes,
        arrival: Arrival,
    },
}

/// A response's head on its way to the client.
#[derive(Debug)]
struct Answering {
    head: ResponseHead,
    /// The same as HTTP/1.
    bytes: Vec<u8>,
    /// No body follows.
    end: bool,
    arrival: Arrival,
}

/// One exchange.
pub(crate) struct Crossing<'a> {
    tap: &'a TapContext,
    live: &'a mut Live,
    request: &'a RequestHead,
    /// The request's head as HTTP/1.
    request_bytes: Vec<u8>,
    near: Near<'a>,
    far: Far<'a>,
    /// No further request will be taken from this client.
    closing: bool,
    outward: Outward,
    /// When what is being sent upstream arrived.
    outward_arrival: Arrival,
    body_seen: u64,
    homeward: Homeward,
    keep_client: bool,
    keep_upstream: bool,
    patience: Patience,
}

/// The client of a [`Crossing`].
pub(crate) enum From<'a> {
    /// With what of its body was read together with the head.
    Http1(&'a mut Socket, Vec<u8>),
    Http2(&'a mut Asked),
}

/// The upstream of a [`Crossing`].
pub(crate) enum To<'a> {
    Http1(&'a mut Socket),
    Http2(&'a mut Session),
}

impl<'a> Crossing<'a> {
    /// `arrival` is that of the request's head.
    pub(crate) fn new(
        tap: &'a TapContext,
        (from, to): (From<'a>, To<'a>),
        live: &'a mut Live,
        request: &'a RequestHead,
        (arrival, closing): (Arrival, bool),
    ) -> Self {
        let mut homeward = Homeward::Head;
        let near = match from {
            From::Http1(socket, early) => {
                // Over HTTP/2 nobody waits to be told to go on, so the tap tells it itself
                // (RFC 9110 §10.1.1).
                if request.expects_continue() {
                    homeward = Homeward::Interim(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec());
                }
                Near::Http1(Box::new(Line::new(socket, request.body, early, arrival)))
            }
            From::Http2(asked) => Near::Http2(asked),
        };
        let mut request_bytes = Vec::new();
        let far = match to {
            To::Http1(socket) => {
                let mut line = Line::new(socket, BodyLength::None, Vec::new(), arrival);
                let chunked = request.body == BodyLength::Chunked;
                line.set_chunked(chunked);
                let host = tap.upstream.host();
                let mut extra = tap.request_fields(&live.exchange);
                if chunked {
                    extra.push(("transfer-encoding", "chunked"));
                }
                request.write(&mut request_bytes, host.as_deref(), &extra);
                Far::Http1(line, Vec::new())
            }
            To::Http2(session) => Far::Http2(Asking::new(session)),
        };
        Self {
            tap,
            live,
            request,
            request_bytes,
            near,
            far,
            closing,
            outward: Outward::Head,
            outward_arrival: arrival,
            body_seen: 0,
            homeward,
            keep_client: false,
            keep_upstream: false,
            patience: Patience::new(tap.timeouts.response_head),
        }
    }

    /// Runs the exchange to its end.
    pub(crate) async fn run(mut self) -> (Ending, Leftover) {
        // Unconstrained for the reason given in `Relay::run`.
        let ending = tokio::task::unconstrained(std::future::poll_fn(|cx| self.poll(cx))).await;
        let chunked =
            matches!(self.near, Near::Http1(..)) && self.request.body == BodyLength::Chunked;
        // What may be asked again must stay with an HTTP/2 client, which gives its body again.
        let stays = ending == Ending::Stale && matches!(self.near, Near::Http2(_));
        let kept = if stays { None } else { self.near.take_kept() };
        let surplus = match &mut self.near {
            Near::Http1(line) => std::mem::take(&mut line.surplus),
            Near::Http2(_) => Vec::new(),
        };
        let sent = kept.map(|body| (body, 0, chunked));
        (ending, Leftover { surplus, sent })
    }
}

impl Passing for Crossing<'_> {
    fn step_homeward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        self.poll_homeward(cx)
    }

    fn step_outward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        self.poll_outward(cx)
    }

    fn unanswered(&self) -> bool {
        matches!(self.homeward, Homeward::Head)
    }

    fn blocked_since(&self) -> Option<Nanos> {
        self.near.blocked_since()
    }

    fn timeouts(&self) -> &Timeouts {
        &self.tap.timeouts
    }

    fn patience(&mut self) -> &mut Patience {
        &mut self.patience
    }

    fn live(&mut self) -> &mut Live {
        self.live
    }
}
