//! The live feed of finished calls, as `/calls` shows them.

use record::exchange::Exchange;
use record::leg::Legs;
use record::pairing::{Call, CallClass};
use record::span::Span;
use serde::Serialize;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Calls kept for a reader that is slow; it is told how many it missed.
const BACKLOG: usize = 1024;

/// Sends calls to whoever listens; costs nothing while nobody does.
#[derive(Clone)]
pub struct Feed {
    sender: broadcast::Sender<Arc<str>>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            sender: broadcast::channel(BACKLOG).0,
        }
    }
}

impl Feed {
    /// A listener's end: one JSON object a call.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<str>> {
        self.sender.subscribe()
    }

    pub(super) fn send(&self, call: impl FnOnce() -> LiveCall) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        if let Ok(line) = serde_json::to_string(&call()) {
            // Nobody listening any more is no error.
            let _ = self.sender.send(line.into());
        }
    }
}

/// One finished call. Durations are nanoseconds; what was not seen is `null`.
#[derive(Debug, Clone, Serialize)]
pub struct LiveCall {
    /// The chain.
    pub chain: String,
    /// Call id.
    pub call: Option<String>,
    /// The load generator's name of the request.
    pub request: Option<String>,
    /// What became of it; `None` where this process has no inner tap of the chain.
    pub class: Option<CallClass>,
    /// Outcome at the outer tap.
    pub outcome: &'static str,
    /// What went wrong.
    pub fault: Option<String>,
    /// Status.
    pub status: Option<u16>,
    /// Model.
    pub model: Option<String>,
    /// Inner exchanges.
    pub attempts: usize,
    /// Last request byte out to first text in, at the outer tap.
    pub ttft: Option<u64>,
    /// Last request byte out to last response byte in, at the outer tap.
    pub duration: Option<u64>,
    /// Content events.
    pub text_events: u32,
    /// Completion tokens, as the engine counted.
    pub completion_tokens: Option<u64>,
    /// Legs; `None` without an inner exchange.
    pub legs: Option<LiveLegs>,
}

/// The legs of a live call.
#[derive(Debug, Clone, Serialize)]
pub struct LiveLegs {
    /// Request head.
    pub head: Option<Span>,
    /// Request.
    pub request: Option<Span>,
    /// Recovery.
    pub recovery: Option<Span>,
    /// First token.
    pub first_token: Option<Span>,
    /// Last token.
    pub last_token: Option<Span>,
    /// Finish reason.
    pub finish: Option<Span>,
    /// Terminal marker.
    pub terminal: Option<Span>,
    /// Last byte.
    pub end: Option<Span>,
    /// Added TTFT.
    pub added_ttft: Option<Span>,
    /// Added E2E to the last text.
    pub added_text: Option<Span>,
    /// Added E2E to the last byte.
    pub added_end: Option<Span>,
    /// Inner over outer content events.
    pub merge_ratio: Option<f64>,
}

impl LiveCall {
    /// A call of which only the outer side is seen here.
    pub(super) fn alone(outer: &Exchange) -> Self {
        let from = outer.request_out();
        let since = |at: Option<u64>| Some(at?.saturating_sub(from?.begin));
        Self {
            chain: outer.chain.to_string(),
            call: outer.keys.call.clone(),
            request: outer.keys.client.clone(),
            class: None,
            outcome: outer.outcome.name(),
            fault: outer.fault.clone(),
            status: outer.status,
            model: outer.request.model.clone(),
            attempts: 0,
            ttft: since(outer.stream.marks.first_text.map(|p| p.arrival.latest())),
            duration: since(outer.marks.end.map(|p| p.arrival.latest())),
            text_events: outer.stream.counts.text_events,
            completion_tokens: outer.stream.usage.and_then(|u| u.completion_tokens),
            legs: None,
        }
    }

    /// A call with its inner side.
    pub(super) fn paired(call: &Call, legs: Option<&Legs>) -> Self {
        Self {
            class: Some(call.class),
            attempts: call.attempts.len(),
            legs: legs.map(|l| LiveLegs {
                head: l.head,
                request: l.request,
                recovery: l.recovery,
                first_token: l.first_token,
                last_token: l.last_token,
                finish: l.finish,
                terminal: l.terminal,
                end: l.end,
                added_ttft: l.added_ttft,
                added_text: l.added_text,
                added_end: l.added_end,
                merge_ratio: l.merge_ratio,
            }),
            ..Self::alone(&call.outer)
        }
    }
}
