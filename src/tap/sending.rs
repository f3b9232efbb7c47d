//! One write, stamped at both ends, however many calls it takes.

use super::socket::Socket;
use record::clock::{self, Nanos};
use record::stamp::Departure;
use std::io;
use std::task::{Context, Poll, ready};

/// A write under way.
#[derive(Debug, Default)]
pub(crate) struct Sending {
    at: usize,
    begin: Option<Nanos>,
    blocked: bool,
}

impl Sending {
    /// Writes all of `bytes` (the same on each call) and says when they left.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        socket: &mut Socket,
        bytes: &[u8],
    ) -> Poll<io::Result<Departure>> {
        let begin = *self.begin.get_or_insert_with(clock::now);
        while self.at < bytes.len() {
            match socket.poll_write(cx, &bytes[self.at..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.at += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.blocked = true;
                    return Poll::Pending;
                }
            }
        }
        if socket.poll_flush(cx).is_pending() {
            self.blocked = true;
            return Poll::Pending;
        }
        let departure = Departure {
            begin,
            end: clock::now(),
            blocked: self.blocked,
        };
        *self = Self::default();
        Poll::Ready(Ok(departure))
    }

    /// For how long the write has been blocked by the peer; `None` where it is not.
    pub(crate) fn blocked_since(&self) -> Option<Nanos> {
        self.begin.filter(|_| self.blocked)
    }
}

/// Writes all of `bytes` to `socket`.
pub(crate) async fn send(socket: &mut Socket, bytes: &[u8]) -> io::Result<Departure> {
    let mut sending = Sending::default();
    std::future::poll_fn(|cx| Poll::Ready(ready!(sending.poll(cx, socket, bytes)))).await
}
