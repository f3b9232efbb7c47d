//! The request's direction: client to upstream.

use super::{READ, Relay};
use crate::tap::context::TapContext;
use crate::tap::ending::{Ending, RETAIN, Why};
use crate::tap::framing::{BodyLength, Framing};
use crate::tap::head::{MAX_HEAD, RequestHead};
use crate::tap::live::Live;
use crate::tap::passing::Passing as _;
use crate::tap::sending::Sending;
use record::stamp::{Arrival, Passage};
use std::ops::Range;
use std::task::{Context, Poll};

/// The request's direction.
pub(super) struct Outward {
    /// Head and body as sent upstream; grows while it is kept for a resend.
    pub(super) bytes: Vec<u8>,
    /// Up to here written.
    pub(super) written: usize,
    /// Where the body begins in `bytes`.
    pub(super) body_at: usize,
    pub(super) framing: Framing,
    pub(super) chunked: bool,
    pub(super) body_seen: u64,
    /// Bytes were dropped from the front: no resend, no facts.
    pub(super) dropped: bool,
    /// The read that brought the bytes being sent.
    pub(super) arrival: Arrival,
    pub(super) sending: Sending,
    pub(super) state: OutwardState,
    /// Bytes of the next request, read too early.
    pub(super) surplus: Vec<u8>,
    pub(super) ranges: Vec<Range<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutwardState {
    Sending {
        head: bool,
    },
    Reading,
    /// All of it is sent.
    Done,
    /// The upstream takes no more; its answer may still come.
    Broken,
}

impl Outward {
    /// The request's head, rewritten, and what came of its body together with it.
    pub(super) fn begin(
        tap: &TapContext,
        live: &Live,
        request: &RequestHead,
        early: &[u8],
        arrival: Arrival,
    ) -> Result<Self, Why> {
        let mut bytes = Vec::with_capacity(1024 + early.len());
        request.write(
            &mut bytes,
            tap.upstream.host().as_deref(),
            &tap.request_fields(&live.exchange),
        );
        let body_at = bytes.len();
        let mut framing = Framing::new(request.body);
        let mut ranges = Vec::new();
        let used = framing
            .follow(early, &mut ranges)
            .map_err(|_| Why::BadRequest)?;
        bytes.extend_from_slice(&early[..used]);
        Ok(Self {
            bytes,
            written: 0,
            body_at,
            framing,
            chunked: request.body == BodyLength::Chunked,
            body_seen: ranges.iter().map(|r| r.len() as u64).sum(),
            dropped: false,
            arrival,
            sending: Sending::default(),
            state: OutwardState::Sending { head: true },
            surplus: early[used..].to_vec(),
            ranges,
        })
    }
}

impl Relay<'_> {
    /// One step of the request's direction: `Ready(None)` is progress.
    pub(super) fn poll_outward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        match self.outward.state {
            OutwardState::Sending { head } => self.send_request(cx, head),
            OutwardState::Reading => self.read_request(cx),
            OutwardState::Done | OutwardState::Broken => self.watch_client(cx),
        }
    }

    fn send_request(&mut self, cx: &mut Context<'_>, head: bool) -> Poll<Option<Ending>> {
        let out = &mut self.outward;
        let sent = match out
            .sending
            .poll(cx, self.upstream, &out.bytes[out.written..])
        {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(departure)) => departure,
            Poll::Ready(Err(_)) => {
                // The upstream may have answered before it stopped listening.
                out.state = OutwardState::Broken;
                return Poll::Ready(None);
            }
        };
        self.patience.last_activity = sent.end;
        let passage = Passage {
            arrival: out.arrival,
            departure: Some(sent),
        };
        let exchange = &mut self.live.exchange;
        exchange.pressure.upstream_blocked += sent.blocked_for();
        if head {
            exchange.marks.head.departure = Some(sent);
        }
        out.written = out.bytes.len();
        if out.framing.done() {
            exchange.marks.request = Some(passage);
            out.state = OutwardState::Done;
            return Poll::Ready(None);
        }
        if out.bytes.len() > RETAIN {
            out.dropped = true;
        }
        if out.dropped {
            out.bytes.clear();
            out.written = 0;
        }
        out.state = OutwardState::Reading;
        Poll::Ready(None)
    }

    fn read_request(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let out = &mut self.outward;
        let from = out.bytes.len();
        out.bytes.resize(from + READ, 0);
        let polled = self.client.poll_read(cx, &mut out.bytes[from..]);
        let (count, arrival) = match polled {
            Poll::Pending => {
                out.bytes.truncate(from);
                return Poll::Pending;
            }
            Poll::Ready(Ok((count, arrival))) if count > 0 => (count, arrival),
            Poll::Ready(_) => return Poll::Ready(Some(Ending::ClientGone)),
        };
        self.patience.last_activity = arrival.at;
        out.bytes.truncate(from + count);
        out.ranges.clear();
        let Ok(used) = out.framing.follow(&out.bytes[from..], &mut out.ranges) else {
            return Poll::Ready(Some(Ending::Unanswered(Why::BadRequest)));
        };
        out.surplus.extend_from_slice(&out.bytes[from + used..]);
        out.bytes.truncate(from + used);
        out.body_seen += out.ranges.iter().map(|r| r.len() as u64).sum::<u64>();
        if out.body_seen > self.tap.body_max {
            return Poll::Ready(Some(self.given_up(Why::TooLarge)));
        }
        out.arrival = arrival;
        out.state = OutwardState::Sending { head: false };
        Poll::Ready(None)
    }

    /// Reads on where the request is over, only to learn that the client left.
    fn watch_client(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        if self.outward.surplus.len() >= MAX_HEAD {
            return Poll::Pending;
        }
        let mut scratch = [0_u8; 1024];
        match self.client.poll_read(cx, &mut scratch) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok((count, _))) if count > 0 => {
                self.outward.surplus.extend_from_slice(&scratch[..count]);
                Poll::Ready(None)
            }
            Poll::Ready(_) => Poll::Ready(Some(Ending::ClientGone)),
        }
    }
}
