//! How an exchange ended, and what it leaves.

use super::context::TapContext;
use super::fault::Fault;
use std::io;

/// Request bytes kept for a resend and for the record; a longer request keeps none.
pub(crate) const RETAIN: usize = 1024 * 1024;

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
    /// What came is not HTTP.
    Malformed,
    /// HTTP/2 ended the stream.
    Reset(h2::Reason),
    /// Too long a silence.
    TimedOut,
    /// The request body is longer than allowed.
    TooLarge,
    /// The request body is malformed.
    BadRequest,
}

impl Why {
    /// What the client is told of upstream `at`.
    pub(crate) fn fault(self, tap: &TapContext, at: &str) -> Fault {
        match self {
            Self::Closed => Fault::new(
                502,
                "upstream_closed",
                format!("hopscope: upstream {at} closed the connection before it answered"),
            ),
            Self::Failed(kind) => Fault::new(
                502,
                "upstream_failed",
                format!("hopscope: connection to upstream {at} failed before it answered: {kind}"),
            ),
            Self::Malformed => Fault::new(
                502,
                "upstream_malformed",
                format!(
                    "hopscope: upstream {at} answered with something that is not HTTP, or cannot be passed on"
                ),
            ),
            Self::Reset(reason) => Fault::new(
                502,
                "upstream_reset",
                format!("hopscope: upstream {at} reset the stream before it answered: {reason}"),
            ),
            Self::TimedOut => Fault::new(
                504,
                "upstream_timeout",
                format!(
                    "hopscope: upstream {at} did not answer within limits.response_head_timeout"
                ),
            ),
            Self::TooLarge => Fault::too_large(tap),
            Self::BadRequest => Fault::new(
                400,
                "invalid_request_error",
                "hopscope: request body is not framed as its head says, or its head cannot be passed on",
            ),
        }
    }
}

/// What is left of the request when an exchange is over.
#[derive(Default)]
pub(crate) struct Leftover {
    /// Bytes of the next request.
    pub(crate) surplus: Vec<u8>,
    /// The request as sent: bytes, where its body begins, whether the body is chunked.
    pub(crate) sent: Option<(Vec<u8>, usize, bool)>,
}
