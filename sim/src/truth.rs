//! What really happened: the stamps that a stand-in took around its own system calls.
//!
//! A truth is never the delay that was asked for. Calibration and tests compare the stamps here with
//! those of the taps. All stamps are nanoseconds of `CLOCK_MONOTONIC` ([`crate::clock::now`]).
//!
//! Text positions are cumulative decoded UTF-8 bytes of one (choice, field, tool).

use serde::{Deserialize, Serialize};

mod log;
mod read;
mod recorder;
#[cfg(test)]
mod tests;
mod token;

pub use log::{Closed, Log, LogError};
pub use read::{ReadError, TruthLog, read, read_log};
pub(crate) use recorder::Recorder;
pub use token::{Direction, SegmentTruth, TokenTruth};

/// Most tokens, and most segments, kept of one exchange; the rest is counted.
pub const MAX_PER_EXCHANGE: usize = 200_000;

/// Which stand-in speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// [`crate::engine`].
    #[default]
    Engine,
    /// [`crate::gateway`].
    Gateway,
    /// [`crate::relay`].
    Relay,
}

/// How an exchange ended, as its stand-in knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything was sent.
    Complete,
    /// The request was answered with an error of the client's making.
    Rejected,
    /// A gateway answered with an error of its own, as 429, without asking its upstream; or a managed service
    /// did without asking its engine.
    Refused,
    /// A gateway answered from its cache.
    CacheHit,
    /// An injected fault ended the exchange or spoiled its content ([`ExchangeTruth::fault`]).
    Fault,
    /// The client closed first.
    ClientGone,
    /// The upstream failed, could not be reached or closed in the middle.
    UpstreamFailed,
    /// The stand-in was stopped, or the exchange dropped, before its end.
    #[default]
    Stopped,
}

/// A named instant of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The last byte of the request head.
    RequestHead,
    /// The last byte of the request body (of the head where there is no body).
    RequestBody,
    /// The last byte of the response head.
    ResponseHead,
    /// The chunk that names the role.
    Role,
    /// The chunk with the finish reason.
    Finish,
    /// The chunk with the usage.
    Usage,
    /// `[DONE]`.
    Done,
    /// The last byte of the response, framing included.
    End,
}

/// When a mark was read and written. A stand-in that makes a mark itself has only written it; one that
/// drops it has only read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkTruth {
    /// Which instant.
    pub mark: Mark,
    /// When the read that brought it returned, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<u64>,
    /// Immediately before the first call of the write that carried it, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_begin: Option<u64>,
    /// Right after the last call of that write, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_end: Option<u64>,
}

/// One attempt of a gateway at its upstream.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptTruth {
    /// 1 for the first.
    pub number: u32,
    /// Whether the connection had served before.
    pub reused_connection: bool,
    /// Immediately before the write call that took the last byte of the request, ns.
    pub request_write_begin: Option<u64>,
    /// Right after that call, ns.
    pub request_write_end: Option<u64>,
    /// When the read that completed the response head returned, ns.
    pub head_read_at: Option<u64>,
    /// Status of the response.
    pub status: Option<u16>,
    /// Given up by the gateway on purpose although it would have succeeded.
    pub abandoned: bool,
}

/// One exchange at one stand-in.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeTruth {
    /// Who speaks.
    pub role: Role,
    /// Value of the request's `x-hopscope-call` field, where it arrived with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// `id` of the response (`chatcmpl-…`), where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// At an engine: how often this call has arrived so far, this time included (1 without a call id).
    /// At a gateway: the attempt whose answer was used, 0 when its upstream was not asked. At a relay: 1.
    pub attempt: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The injected fault, in the words of `x-sim-fault`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Status sent to the client, `None` when no head was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether the answer was an event stream.
    #[serde(default)]
    pub streamed: bool,
    /// Number of the client's connection at this stand-in, from 1.
    pub connection: u64,
    /// Prompt tokens, as usage reports them (engine) or reported them (gateway).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Completion tokens, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    /// Prompt tokens that came from the KV cache, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Events with text that were read from the upstream (0 at an engine).
    #[serde(default)]
    pub text_events_read: u64,
    /// Events with text that were written to the client. Read ÷ written is the true merge ratio.
    #[serde(default)]
    pub text_events_written: u64,
    /// Named instants, in the order in which they were set; each at most once.
    #[serde(default)]
    pub marks: Vec<MarkTruth>,
    /// Ends of text. Engine: one per event written. Gateway and relay: one per *upstream* event, with
    /// the stamps of the write that carried its text, so that merged text keeps its positions.
    #[serde(default)]
    pub tokens: Vec<TokenTruth>,
    /// Texts whose truth was not kept because of [`MAX_PER_EXCHANGE`].
    #[serde(default)]
    pub tokens_lost: u64,
    /// Texts that were read but never written.
    #[serde(default)]
    pub tokens_unwritten: u64,
    /// A gateway's attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptTruth>,
    /// A relay's reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<SegmentTruth>,
    /// Reads whose truth was not kept because of [`MAX_PER_EXCHANGE`].
    #[serde(default)]
    pub segments_lost: u64,
}

impl ExchangeTruth {
    /// A mark, if it was reached.
    pub fn mark(&self, mark: Mark) -> Option<&MarkTruth> {
        self.marks.iter().find(|truth| truth.mark == mark)
    }

    /// The event with which the text of `(choice, field, tool)` reached position `offset`.
    pub fn reached(&self, text: (u16, Field, u16), offset: u64) -> Option<&TokenTruth> {
        self.tokens.iter().find(|token| {
            (token.choice, token.field, token.tool) == text && token.end_text_offset >= offset
        })
    }

    /// The first event with text of any kind.
    pub fn first_token(&self) -> Option<&TokenTruth> {
        self.tokens.first()
    }

    pub(crate) fn set_read(&mut self, mark: Mark, read_at: u64) {
        self.entry(mark).read_at = Some(read_at);
    }

    pub(crate) fn set_written(&mut self, mark: Mark, read_at: Option<u64>, begin: u64, end: u64) {
        let entry = self.entry(mark);
        entry.read_at = entry.read_at.or(read_at);
        entry.write_begin = Some(begin);
        entry.write_end = Some(end);
    }

    pub(crate) fn push_token(&mut self, token: TokenTruth) {
        if self.tokens.len() < MAX_PER_EXCHANGE {
            self.tokens.push(token);
        } else {
            self.tokens_lost += 1;
        }
    }

    fn entry(&mut self, mark: Mark) -> &mut MarkTruth {
        let at = self.marks.iter().position(|truth| truth.mark == mark);
        let at = at.unwrap_or_else(|| {
            self.marks.push(MarkTruth {
                mark,
                read_at: None,
                write_begin: None,
                write_end: None,
            });
            self.marks.len() - 1
        });
        &mut self.marks[at]
    }
}

/// Where text accumulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Field {
    /// `delta.content`, `message.content`, or `text` of the completions dialect.
    Content,
    /// `reasoning_content`, else `reasoning`.
    Reasoning,
    /// `tool_calls[i].function.arguments`.
    ToolArguments,
}
