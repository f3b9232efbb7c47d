//! One HTTP/1 exchange: bytes from the client to the upstream and back, each read stamped, each
//! write stamped at both ends, one write for each read.
//!
//! One task polls both directions, so a read and its write happen in the same poll, with no
//! channel between. The response ([`homeward`]) goes first: it is what somebody waits for; then the
//! request ([`outward`]).

mod homeward;
mod outward;

use super::context::{TapContext, Timeouts};
use super::ending::{Ending, Leftover, Why};
use super::head::RequestHead;
use super::live::Live;
use super::passing::Passing;
use super::patience::Patience;
use super::socket::Socket;
use homeward::{Homeward, HomewardState};
use outward::Outward;
use record::clock::Nanos;
use record::stamp::Arrival;
use std::task::{Context, Poll};

/// Bytes of one read.
const READ: usize = 16 * 1024;

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
        // are there, and so falsify what "waited" means; `Passing::poll` shares the thread instead.
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
}

impl Passing for Relay<'_> {
    fn step_homeward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        self.poll_homeward(cx)
    }

    fn step_outward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        self.poll_outward(cx)
    }

    fn unanswered(&self) -> bool {
        self.homeward.state == HomewardState::Head
    }

    fn blocked_since(&self) -> Option<Nanos> {
        self.homeward.sending.blocked_since()
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
