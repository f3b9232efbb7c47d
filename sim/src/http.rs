//! A small HTTP/1.1 of the stand-ins' own, kept close to the system calls so that stamps sit right
//! around them: no pipelining, no upgrade, one message at a time per connection.

mod body;
mod conn;
mod head;
mod outlet;
mod pool;

pub(crate) use body::{BodyDecoder, Framing};
pub(crate) use conn::{Conn, Written};
pub(crate) use head::{Headers, RequestHead, ResponseHead, error_body, percent_decoded, reason};
pub(crate) use outlet::{Outlet, simple_response};
pub(crate) use pool::Pool;

/// Most bytes of a message head.
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// Most bytes of a body that a stand-in holds whole.
pub(crate) const MAX_BODY: usize = 64 * 1024 * 1024;

/// Why a message could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The socket failed.
    #[error("socket failed: {0}")]
    Io(#[from] std::io::Error),
    /// The peer closed in the middle of a message.
    #[error("connection closed in the middle of a message")]
    Truncated,
    /// The head has more than [`MAX_HEAD`] bytes or too many fields.
    #[error("message head exceeds {MAX_HEAD} bytes or 96 fields")]
    HeadTooLarge,
    /// The body has more than [`MAX_BODY`] bytes.
    #[error("message body exceeds {MAX_BODY} bytes")]
    BodyTooLarge,
    /// The bytes are no HTTP/1 message.
    #[error("not an http/1 message: {0}")]
    Malformed(&'static str),
}

impl HttpError {
    /// The status to answer a request with, `None` when no answer can be given.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Io(_) | Self::Truncated => None,
            Self::HeadTooLarge => Some(431),
            Self::BodyTooLarge => Some(413),
            Self::Malformed(_) => Some(400),
        }
    }
}
