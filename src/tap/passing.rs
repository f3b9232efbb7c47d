//! How the two directions of an exchange take their turns, and how long each may be silent.

use super::context::Timeouts;
use super::ending::{Ending, Why};
use super::live::Live;
use super::patience::Patience;
use record::clock::Nanos;
use record::exchange::Outcome;
use std::task::{Context, Poll};
use std::time::Duration;

/// Rounds of one poll before other tasks of the thread have their turn.
const ROUNDS: u32 = 32;

/// An exchange that one task polls in both directions, so that a read and its write happen in the same
/// poll, with no channel between.
pub(super) trait Passing {
    /// One step of the response. `Ready(None)`: there may be more to do at once.
    fn step_homeward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>>;
    /// One step of the request.
    fn step_outward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>>;
    /// No byte of the final response went out to the client.
    fn unanswered(&self) -> bool;
    /// Since when the client takes nothing more.
    fn blocked_since(&self) -> Option<Nanos>;
    fn timeouts(&self) -> &Timeouts;
    fn patience(&mut self) -> &mut Patience;
    fn live(&mut self) -> &mut Live;

    /// Both directions until one has nothing more to do, the response first: it is what somebody waits for.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        for _ in 0..ROUNDS {
            let home = self.step_homeward(cx);
            if let Poll::Ready(Some(ending)) = home {
                return Poll::Ready(ending);
            }
            let out = self.step_outward(cx);
            if let Poll::Ready(Some(ending)) = out {
                return Poll::Ready(ending);
            }
            if home.is_pending() && out.is_pending() {
                let bound = self.bound();
                return self
                    .patience()
                    .poll(cx, bound)
                    .map(|()| self.given_up(Why::TimedOut));
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// The bound in force, and since when it counts.
    fn bound(&mut self) -> (Duration, Nanos) {
        let timeouts = self.timeouts();
        let (write, head, idle) = (
            timeouts.client_write,
            timeouts.response_head,
            timeouts.stream_idle,
        );
        match self.blocked_since() {
            Some(since) => (write, since),
            None if self.unanswered() => (head, self.patience().last_activity),
            None => (idle, self.patience().last_activity),
        }
    }

    /// How an exchange ends that cannot go on, or waited too long.
    fn given_up(&mut self, why: Why) -> Ending {
        if why == Why::TimedOut && self.blocked_since().is_some() {
            return Ending::ClientGone;
        }
        if self.unanswered() {
            return Ending::Unanswered(why);
        }
        self.live().fail(
            Outcome::Truncated,
            "response given up: silence or a refused request body",
        );
        Ending::Cut
    }
}
