//! Part of a body on its way between two versions of HTTP, without the framing of either.

use bytes::Bytes;
use http::HeaderMap;
use record::stamp::Arrival;

/// Part of a body; the last one says so.
#[derive(Debug, Default)]
pub(crate) struct Portion {
    pub(crate) data: Bytes,
    pub(crate) end: bool,
    /// Only with the end.
    pub(crate) trailers: Option<HeaderMap>,
}

/// A portion and when it came.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) portion: Portion,
    pub(crate) arrival: Arrival,
}

/// Why a body does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// The connection ended inside the message.
    #[error("closed")]
    Closed,
    /// The connection failed.
    #[error("failed: {0}")]
    Failed(std::io::ErrorKind),
    /// The framing of HTTP/1 is broken.
    #[error("sent a body that is not framed as its head says")]
    Malformed,
    /// HTTP/2 ended the stream.
    #[error("reset the stream: {0}")]
    Reset(h2::Reason),
}

impl From<h2::Error> for Broken {
    fn from(error: h2::Error) -> Self {
        match (error.reason(), error.get_io()) {
            (Some(reason), _) => Self::Reset(reason),
            (None, Some(io)) => Self::Failed(io.kind()),
            (None, None) => Self::Closed,
        }
    }
}
