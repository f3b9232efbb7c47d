//! One HTTP request and response, as one tap saw it.

use crate::clock::Nanos;
use crate::stamp::{Arrival, Departure, Passage, StampClass};
use crate::stream::StreamRecord;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where a tap stands in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// Before the gateway: makes the call id.
    Outer,
    /// Behind the gateway: reads the call id.
    Inner,
    /// Behind a router that itself stands behind the inner tap.
    Engine,
}

/// How an exchange ended. Only `Complete` is a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A 2xx whose body ended as its framing promised and, for a generation, whose finish reason
    /// and terminal marker were seen.
    Complete,
    /// A 2xx that ended early: framing cut, no finish reason, or no terminal marker.
    Truncated,
    /// A 2xx stream that carried an error object.
    ErrorInStream,
    /// The upstream answered with another status than 2xx.
    Refused,
    /// No answer: refused, reset or timed out before a response head, or a malformed one.
    Failed,
    /// The client left before the end.
    Aborted,
    /// The connection was upgraded; its bytes were passed through and not measured.
    Upgraded,
}

impl Outcome {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::ErrorInStream => "error-in-stream",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Upgraded => "upgraded",
        }
    }
}

/// The named instants outside the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// First byte of the request head read.
    pub begin: Arrival,
    /// Last byte of the request head, in and out.
    pub head: Passage,
    /// Last byte of the request body (of the head, where there is no body), in and out. `None`
    /// where the request never came to its end.
    pub request: Option<Passage>,
    /// Last byte of the final response head, in and out.
    pub response_head: Option<Passage>,
    /// Last byte of the response, in and out.
    pub end: Option<Passage>,
    /// The exchange was over for this tap, whatever the outcome.
    pub closed: Nanos,
}

/// The connections that an exchange used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Stamp class of the client's side.
    pub client_class: StampClass,
    /// Stamp class of the upstream's side.
    pub upstream_class: StampClass,
    /// The client's connection had carried an earlier exchange.
    pub client_reused: bool,
    /// The upstream connection had; `None` where none was made.
    pub upstream_reused: Option<bool>,
    /// Address the exchange was sent to.
    pub upstream: Option<Arc<str>>,
    /// Time spent to connect (TCP and TLS), nanoseconds; `None` on a reused connection.
    pub connect: Option<u64>,
    /// The tap sent the request again on a fresh connection, because a pooled one was found
    /// closed before a response byte: excluded from measured legs.
    pub resent: bool,
}

/// What the tap held back, or was held back by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Nanoseconds in which writes to the client were blocked by the client.
    pub client_blocked: u64,
    /// Nanoseconds in which writes upstream were blocked by the upstream.
    pub upstream_blocked: u64,
    /// Reads from upstream that did not wait: more bytes were there than the tap had passed on.
    pub unwaited_reads: u32,
    /// Reads from upstream in all.
    pub reads: u32,
    /// Events that shared their read, and so their write, with an earlier event: coalescing that
    /// the tap itself may have made.
    pub joined_events: u32,
}

/// What the request said, without its text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestFacts {
    /// HTTP method.
    pub method: String,
    /// Path without its query.
    pub path: String,
    /// `model` of the body.
    pub model: Option<String>,
    /// `stream` of the body.
    pub stream: bool,
    /// The request asks for a generation (chat completions, completions, Converse and their like).
    pub generation: bool,
    /// Of MCP: the method that is called, such as `tools/call`.
    pub rpc: Option<String>,
    /// Of MCP: the tool that is called.
    pub tool: Option<String>,
    /// Body length in bytes.
    pub bytes: u64,
    /// FNV-1a of the whole body: equal bodies, equal work. `None` for a body too long to keep.
    pub body_hash: Option<u64>,
    /// Hash of messages, seed and token limit, without the model: pairs an outer with an inner
    /// request where no header came through. `None` where the body was not understood.
    pub fingerprint: Option<u64>,
}

/// Identifiers that pair exchanges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The call id: made here by an outer tap, read from the request by any other.
    pub call: Option<String>,
    /// Id of the inner exchange that the gateway echoed in its response.
    pub echoed: Option<u64>,
    /// Trace id of `traceparent`.
    pub trace: Option<String>,
    /// `x-hopscope-request`: the load generator's own name of the request.
    pub client: Option<String>,
}

/// What the gateway says of itself in its response head.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Its own figure of its overhead, nanoseconds.
    pub overhead: Option<u64>,
    /// It says that the answer came from its cache.
    pub cache_hit: bool,
}

/// One exchange. See the module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// Unique among all taps of a run: a random process part and a counter.
    pub id: u64,
    /// Name of the chain.
    pub chain: Arc<str>,
    /// Name of the tap.
    pub tap: Arc<str>,
    /// Where the tap stands.
    pub position: Position,
    /// Pairing identifiers.
    pub keys: Keys,
    /// The request.
    pub request: RequestFacts,
    /// Connections.
    pub connection: Connection,
    /// Instants outside the body.
    pub marks: Marks,
    /// Status of the final response head.
    pub status: Option<u16>,
    /// The body.
    pub stream: StreamRecord,
    /// Response body bytes.
    pub response_bytes: u64,
    /// What the gateway claims.
    pub claims: Claims,
    /// Blocking and coalescing.
    pub pressure: Pressure,
    /// How it ended.
    pub outcome: Outcome,
    /// For an outcome that is not complete: what happened, in a few words, no content.
    pub fault: Option<String>,
}

impl Exchange {
    /// When the last byte of the request left this tap.
    #[must_use]
    pub fn request_out(&self) -> Option<Departure> {
        self.marks.request.and_then(|p| p.departure)
    }

    /// When the last byte of the request reached this tap.
    #[must_use]
    pub fn request_in(&self) -> Option<Arrival> {
        self.marks.request.map(|p| p.arrival)
    }

    /// True where status and end make it a full answer.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.outcome == Outcome::Complete
    }
}
