//! One call as the load generator saw it: a row of `calls.parquet`.

use crate::clock::Nanos;
use crate::service::ServiceFault;
use serde::{Deserialize, Serialize};

/// How a call ended for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallOutcome {
    /// 2xx, finish reason and terminal marker seen, usage agrees where it was stated.
    Complete,
    /// 2xx, but the stream lacks its finish reason, its terminal marker or its framing's end.
    Truncated,
    /// 2xx stream with an error object in it.
    ErrorInStream,
    /// Another status.
    Status,
    /// No connection.
    Connect,
    /// The connection failed before a response head.
    Transport,
    /// The request's time ran out: its latencies are lower bounds.
    TimedOut,
    /// Still running when the cell ended: its latencies are lower bounds.
    CutOff,
    /// A managed service failed it and said why: before an answer, or by an exception in its stream (the status tells
    /// which).
    Service(ServiceFault),
}

impl CallOutcome {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::ErrorInStream => "error-in-stream",
            Self::Status => "status",
            Self::Connect => "connect",
            Self::Transport => "transport",
            Self::TimedOut => "timed-out",
            Self::CutOff => "cut-off",
            Self::Service(fault) => fault.name(),
        }
    }

    /// Its latencies are lower bounds, not values.
    #[must_use]
    pub fn censored(self) -> bool {
        self != Self::Complete
    }
}

/// One call. Instants are [`Nanos`]; what never happened is `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCall {
    /// Index of the cell in the manifest.
    pub cell: u32,
    /// Number within the cell.
    pub seq: u64,
    /// The agent task that the call belongs to, and its turn; `None` outside agent cells.
    pub task: Option<(u32, u16)>,
    /// The call is one of a session of an agent service: `true` of its first, with which the session starts, `false`
    /// behind one that was answered. `None` outside sessions, and where no earlier call of the session was answered:
    /// then it is not known whether the session was up.
    pub cold: Option<bool>,
    /// Sent during warm-up: in the record, out of every figure.
    pub warmup: bool,
    /// When the schedule wanted it sent. In a closed loop: when its worker was free.
    pub intended: Nanos,
    /// When it was taken up: connection sought, or request written.
    pub started: Nanos,
    /// When the first byte of the request was handed to the socket.
    pub sent: Option<Nanos>,
    /// Response head.
    pub head: Option<Nanos>,
    /// First event with a choice.
    pub first_choice: Option<Nanos>,
    /// First text.
    pub first_text: Option<Nanos>,
    /// Last text.
    pub last_text: Option<Nanos>,
    /// Finish reason.
    pub finish: Option<Nanos>,
    /// Terminal marker.
    pub done: Option<Nanos>,
    /// Last byte, or the instant at which the call was given up.
    pub end: Nanos,
    /// Status.
    pub status: Option<u16>,
    /// How it ended.
    pub outcome: CallOutcome,
    /// What went wrong, in a few words, without content.
    pub fault: Option<String>,
    /// The call used a connection that had carried another.
    pub reused: bool,
    /// Prompt tokens under the named tokenizer.
    pub prompt_tokens: u32,
    /// Prompt tokens as the server counted them.
    pub usage_prompt: Option<u32>,
    /// Of these, cached.
    pub usage_cached: Option<u32>,
    /// Of these, written to a cache, for which a service may charge more.
    pub usage_cache_write: Option<u32>,
    /// Completion tokens as the server counted them.
    pub usage_completion: Option<u32>,
    /// Content events.
    pub text_events: u32,
    /// Longest gap between content events, nanoseconds; `None` with fewer than two.
    pub longest_gap: Option<u64>,
    /// Response id.
    pub response_id: Option<String>,
    /// The gateway's own figure of its overhead from its response head, nanoseconds.
    pub claimed_overhead: Option<u64>,
}

impl ClientCall {
    /// Call `seq` of `cell`, due at `intended` and taken up at `started`, of which nothing has come back.
    #[must_use]
    pub fn unanswered(cell: u32, seq: u64, intended: Nanos, started: Nanos) -> Self {
        Self {
            cell,
            seq,
            task: None,
            cold: None,
            warmup: false,
            intended,
            started,
            sent: None,
            head: None,
            first_choice: None,
            first_text: None,
            last_text: None,
            finish: None,
            done: None,
            end: started,
            status: None,
            outcome: CallOutcome::Transport,
            fault: None,
            reused: false,
            prompt_tokens: 0,
            usage_prompt: None,
            usage_cached: None,
            usage_cache_write: None,
            usage_completion: None,
            text_events: 0,
            longest_gap: None,
            response_id: None,
            claimed_overhead: None,
        }
    }

    /// The value of `x-hopscope-request` by which taps name this call: `cell-seq`.
    #[must_use]
    pub fn key(&self) -> String {
        Self::key_of(self.cell, self.seq)
    }

    /// The key of call `seq` of `cell`.
    #[must_use]
    pub fn key_of(cell: u32, seq: u64) -> String {
        format!("{cell}-{seq}")
    }

    /// The parts of a key.
    #[must_use]
    pub fn parse_key(key: &str) -> Option<(u32, u64)> {
        let (cell, seq) = key.split_once('-')?;
        Some((cell.parse().ok()?, seq.parse().ok()?))
    }

    /// TTFT from the actual send to the first text, nanoseconds.
    #[must_use]
    pub fn ttft(&self) -> Option<u64> {
        Some(self.first_text?.saturating_sub(self.sent?))
    }

    /// TTFT from the *intended* send: what a user behind the schedule would have seen.
    #[must_use]
    pub fn ttft_intended(&self) -> Option<u64> {
        Some(self.first_text?.saturating_sub(self.intended))
    }

    /// TTFT to the first event with a choice, text or not.
    #[must_use]
    pub fn ttft_choice(&self) -> Option<u64> {
        Some(self.first_choice?.saturating_sub(self.sent?))
    }

    /// E2E from the actual send to the last byte.
    #[must_use]
    pub fn e2e(&self) -> Option<u64> {
        Some(self.end.saturating_sub(self.sent?))
    }

    /// E2E from the intended send.
    #[must_use]
    pub fn e2e_intended(&self) -> u64 {
        self.end.saturating_sub(self.intended)
    }

    /// TPOT = (last text − first text) / (completion tokens − 1), nanoseconds; `None` with fewer
    /// than two tokens or without the server's count.
    #[must_use]
    pub fn tpot(&self) -> Option<f64> {
        let tokens = self.usage_completion.filter(|n| *n > 1)?;
        let span = self.last_text?.saturating_sub(self.first_text?);
        Some(span as f64 / f64::from(tokens - 1))
    }

    /// How late the call was taken up, against its schedule.
    #[must_use]
    pub fn lag(&self) -> u64 {
        self.started.saturating_sub(self.intended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Due at 100, taken up at 150, sent at 160; first text at 300, last at 900.
    fn call(tokens: Option<u32>) -> ClientCall {
        ClientCall {
            sent: Some(160),
            first_text: Some(300),
            last_text: Some(900),
            end: 950,
            usage_completion: tokens,
            ..ClientCall::unanswered(0, 0, 100, 150)
        }
    }

    #[test]
    fn latency_from_the_intended_send_holds_the_lag() {
        let call = call(None);
        assert_eq!((call.ttft(), call.ttft_intended()), (Some(140), Some(200)));
        assert_eq!((call.e2e(), call.e2e_intended()), (Some(790), 850));
        assert_eq!(call.lag(), 50);
    }

    #[test]
    fn tpot_holds_no_first_token_and_is_absent_without_the_servers_count() {
        assert_eq!(call(Some(4)).tpot(), Some(200.0));
        assert_eq!((call(None).tpot(), call(Some(1)).tpot()), (None, None));
    }

    #[test]
    fn a_call_without_text_has_no_latency_rather_than_none_at_all() {
        let call = ClientCall::unanswered(0, 0, 100, 150);
        assert_eq!(
            (call.ttft(), call.ttft_choice(), call.e2e()),
            (None, None, None)
        );
    }
}
