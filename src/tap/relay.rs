//! One HTTP/1 exchange: bytes from the client to the upstream and back, each read stamped, each
//! write stamped at both ends, one write for each read.
//!
//! One task polls both directions, so a read and its write happen in the same poll, with no
//! channel between. The response ([`homeward`]) goes first: it is what somebody waits for; then the
//! request ([`outward`]).

mod homeward;
mod outward;

use super::context::TapContext;
use super::head::RequestHead;
use super::live::Live;
use super::socket::Socket;
use homeward::{Homeward, HomewardState};
use outward::Outward;
use record::clock::{self, Nanos};
use record::exchange::Outcome;
use record::stamp::Arrival;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// Bytes of one read.
const READ: usize = 16 * 1024;
/// Rounds of one poll before other tasks of the thread have their turn.
const ROUNDS: u32 = 32;

/// How an exchange ended, for the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Answered in full: both connections may go on as far as each side agrees.
    Complete { client: bool, upstream: bool },
    /// The upstream closed a reused connection before a response byte.
    Stale,
    /// No response head came: the client can still be told why.
    Unanswered(Why),
    /// Part of a response went out: only a cut is honest.
    Cut,
    /// The client left.
    ClientGone,
    /// 101: the connections are now a pipe.
    Upgraded,
}

/// Why no response head came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The connection ended.
    Closed,
    /// It failed.
    Failed(io::ErrorKind),
    /// What came is not HTTP/1.
    Malformed,
    /// Too long a silence.
    TimedOut,
    /// The request body is longer than allowed.
    TooLarge,
    /// The request body is malformed.
    BadRequest,
}

/// One exchange between two connections.
pub(crate) struct Relay<'a> {
    tap: &'a TapContext,
    client: &'a mut Socket,
    upstream: &'a mut Socket,
    live: &'a mut Live,
    request: &'a RequestHead,
    /// No further request will be taken from this client.
    closing: bool,
    outward: Outward,
    homeward: Homeward,
    timer: Pin<Box<Sleep>>,
    last_activity: Nanos,
}

/// What is left of the request when an exchange is over.
#[derive(Default)]
pub(crate) struct Leftover {
    /// Bytes of the next request.
    pub(crate) surplus: Vec<u8>,
    /// The request as sent: bytes, where its body begins, whether the body is chunked.
    pub(crate) sent: Option<(Vec<u8>, usize, bool)>,
}

impl<'a> Relay<'a> {
    /// `early` is what came of the body together with the head, read at `arrival`.
    pub(crate) fn new(
        tap: &'a TapContext,
        (client, upstream): (&'a mut Socket, &'a mut Socket),
        live: &'a mut Live,
        request: &'a RequestHead,
        early: &[u8],
        (arrival, closing): (Arrival, bool),
    ) -> Result<Self, Why> {
        let outward = Outward::begin(tap, live, request, early, arrival)?;
        let homeward = Homeward::begin();
        let timer = Box::pin(tokio::time::sleep(tap.timeouts.response_head));
        Ok(Self {
            tap,
            client,
            upstream,
            live,
            request,
            closing,
            outward,
            homeward,
            timer,
            last_activity: clock::now(),
        })
    }

    /// Runs the exchange to its end.
    pub(crate) async fn run(mut self) -> (Ending, Leftover) {
        // Unconstrained, since tokio's budget would answer a read with "pending" although bytes
        // are there, and so falsify what "waited" means; `ROUNDS` shares the thread instead.
        let ending = tokio::task::unconstrained(std::future::poll_fn(|cx| self.poll(cx))).await;
        let kept = !self.outward.dropped;
        let sent = kept.then(|| {
            (
                std::mem::take(&mut self.outward.bytes),
                self.outward.body_at,
                self.outward.chunked,
            )
        });
        (
            ending,
            Leftover {
                surplus: std::mem::take(&mut self.outward.surplus),
                sent,
            },
        )
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        for _ in 0..ROUNDS {
            let home = self.poll_homeward(cx);
            if let Poll::Ready(Some(ending)) = home {
                return Poll::Ready(ending);
            }
            let out = self.poll_outward(cx);
            if let Poll::Ready(Some(ending)) = out {
                return Poll::Ready(ending);
            }
            if home.is_pending() && out.is_pending() {
                return self.poll_timeout(cx);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// One timer for all bounds, looked at only when it fires.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let (limit, since) = self.bound();
            let passed = Duration::from_nanos(clock::now().saturating_sub(since));
            if passed >= limit {
                return Poll::Ready(self.timed_out());
            }
            let next = tokio::time::Instant::now() + (limit - passed);
            self.timer.as_mut().reset(next);
        }
    }

    /// The bound in force, and since when it counts.
    fn bound(&self) -> (Duration, Nanos) {
        let timeouts = &self.tap.timeouts;
        if let Some(since) = self.homeward.sending.blocked_since() {
            return (timeouts.client_write, since);
        }
        match self.homeward.state {
            HomewardState::Head => (timeouts.response_head, self.last_activity),
            _ => (timeouts.stream_idle, self.last_activity),
        }
    }

    fn timed_out(&mut self) -> Ending {
        if self.homeward.sending.blocked_since().is_some() {
            return Ending::ClientGone;
        }
        self.unanswered_or_cut(Why::TimedOut)
    }

    fn unanswered_or_cut(&mut self, why: Why) -> Ending {
        if self.homeward.state == HomewardState::Head {
            return Ending::Unanswered(why);
        }
        self.live.fail(
            Outcome::Truncated,
            "response given up: silence or a refused request body",
        );
        Ending::Cut
    }
}
