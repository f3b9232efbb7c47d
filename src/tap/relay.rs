//! One HTTP/1 exchange: bytes from the client to the upstream and back, each read stamped, each
//! write stamped at both ends, one write for each read.
//!
//! One task polls both directions, so a read and its write happen in the same poll, with no
//! channel between. The response ([`homeward`]) goes first: it is what somebody waits for; then the
//! request ([`outward`]).

mod homeward;
mod outward;

use super::context::TapContext;
use super::ending::{Ending, Leftover, Why};
use super::head::RequestHead;
use super::live::Live;
use super::patience::Patience;
use super::socket::Socket;
use homeward::{Homeward, HomewardState};
use outward::Outward;
use record::clock::Nanos;
use record::exchange::Outcome;
use record::stamp::Arrival;
use std::task::{Context, Poll};
use std::time::Duration;

/// Bytes of one read.
const READ: usize = 16 * 1024;
/// Rounds of one poll before other tasks of the thread have their turn.
const ROUNDS: u32 = 32;

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
    patience: Patience,
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
        Ok(Self {
            tap,
            client,
            upstream,
            live,
            request,
            closing,
            outward,
            homeward,
            patience: Patience::new(tap.timeouts.response_head),
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
                let bound = self.bound();
                return self.patience.poll(cx, bound).map(|()| self.timed_out());
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The bound in force, and since when it counts.
    fn bound(&self) -> (Duration, Nanos) {
        let timeouts = &self.tap.timeouts;
        if let Some(since) = self.homeward.sending.blocked_since() {
            return (timeouts.client_write, since);
        }
        match self.homeward.state {
            HomewardState::Head => (timeouts.response_head, self.patience.last_activity),
            _ => (timeouts.stream_idle, self.patience.last_activity),
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
