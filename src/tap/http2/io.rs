//! The socket under an HTTP/2 connection, and the dates of what its streams receive.
//!
//! Only the connection's own task reads the socket; a stream is handed its frames afterwards. The
//! instants that count are those of the socket, so they are noted here and looked up there.

use crate::tap::socket::Socket;
use parking_lot::Mutex;
use record::clock::Nanos;
use record::stamp::Arrival;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The reads of a connection so far.
#[derive(Debug, Clone, Copy)]
struct Seen {
    count: u64,
    last: Arrival,
    /// Whatever had arrived before this was read.
    drained: Nanos,
}

/// What a connection last read. Its task writes it and its streams read it on the same thread, so
/// nobody ever waits for the lock.
#[derive(Debug, Clone)]
pub(crate) struct Reads(Arc<Mutex<Seen>>);

impl Reads {
    fn new(last: Arrival) -> Self {
        Self(Arc::new(Mutex::new(Seen {
            count: 0,
            last,
            drained: last.earliest,
        })))
    }

    fn now(&self) -> Seen {
        *self.0.lock()
    }
}

/// Dates what one stream receives.
#[derive(Debug)]
pub(crate) struct Dating {
    reads: Reads,
    /// As it was when the stream last had nothing: what comes next was read after.
    empty: Seen,
}

impl Dating {
    /// For a stream that begins now, with what the last read brought.
    pub(crate) fn begin(reads: &Reads) -> Self {
        let now = reads.now();
        let empty = Seen {
            count: now.count.saturating_sub(1),
            drained: now.last.earliest,
            ..now
        };
        Self {
            reads: reads.clone(),
            empty,
        }
    }

    /// The stream had nothing.
    pub(crate) fn nothing(&mut self) {
        self.empty = self.reads.now();
    }

    /// The stream had something: when it arrived.
    pub(crate) fn arrival(&self) -> Arrival {
        let now = self.reads.now();
        if now.count <= self.empty.count + 1 {
            return now.last;
        }
        // One of several reads: no later than the last, no earlier than the stream's last nothing.
        Arrival {
            at: now.last.at,
            earliest: self.empty.drained.min(now.last.at),
            kernel: None,
            waited: false,
        }
    }
}

/// A [`Socket`] as the `h2` crate wants it, beginning with bytes that were read before.
pub(crate) struct Noted {
    socket: Socket,
    before: Vec<u8>,
    reads: Reads,
}

impl Noted {
    /// `before` was read at `arrival`.
    pub(crate) fn new(socket: Socket, before: Vec<u8>, arrival: Arrival) -> (Self, Reads) {
        let reads = Reads::new(arrival);
        let noted = Self {
            socket,
            before,
            reads: reads.clone(),
        };
        (noted, reads)
    }
}

impl AsyncRead for Noted {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.before.is_empty() {
            let count = this.before.len().min(buffer.remaining());
            buffer.put_slice(&this.before[..count]);
            this.before.drain(..count);
            return Poll::Ready(Ok(()));
        }
        match this.socket.poll_read(cx, buffer.initialize_unfilled()) {
            Poll::Pending => {
                this.reads.0.lock().drained = this.socket.drained();
                Poll::Pending
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok((count, arrival))) => {
                let mut seen = this.reads.0.lock();
                seen.count += 1;
                seen.last = arrival;
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
        }
    }
}

impl AsyncWrite for Noted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(at: Nanos, earliest: Nanos) -> Arrival {
        Arrival {
            at,
            earliest,
            kernel: Some(at - 1),
            waited: true,
        }
    }

    fn read(reads: &Reads, at: Nanos, earliest: Nanos) {
        let mut seen = reads.0.lock();
        seen.count += 1;
        seen.last = arrival(at, earliest);
    }

    #[test]
    fn one_read_since_the_last_nothing_dates_exactly_and_several_only_between() {
        let reads = Reads::new(arrival(10, 5));
        read(&reads, 20, 15);
        let mut dating = Dating::begin(&reads);
        assert_eq!(dating.arrival(), arrival(20, 15));
        reads.0.lock().drained = 25;
        dating.nothing();
        read(&reads, 30, 28);
        assert_eq!(dating.arrival(), arrival(30, 28));
        read(&reads, 40, 38);
        let two = dating.arrival();
        assert_eq!(
            (two.at, two.earliest, two.kernel, two.waited),
            (40, 25, None, false)
        );
    }
}
