//! HTTP/2 on either side of a tap: connections ([`io`], [`serve`], [`sessions`]), one stream
//! ([`stream`]) and heads ([`fields`]). The exchange itself is [`super::crossing`].

mod fields;
mod io;
mod serve;
mod sessions;
mod stream;

pub(crate) use serve::serve;
pub(crate) use sessions::{Session, Sessions};
pub(crate) use stream::{Answer, Asked, Asking};

/// What a client of HTTP/2 sends first (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes that one stream may be ahead of the other side: what a slow reader makes the tap hold.
const STREAM_WINDOW: u32 = 1 << 20;
/// The same for a connection. So much that one slow stream does not hold up its neighbours.
const CONNECTION_WINDOW: u32 = 64 << 20;
/// Streams that a client may have at once; more would wait in the client, unseen.
const MAX_STREAMS: u32 = 4096;
