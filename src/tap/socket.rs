//! A connection whose reads and writes are stamped where they happen.

use crate::lag;
use pingora::protocols::l4::stream::Stream as L4Stream;
use pingora::protocols::{ALPN, Stream};
use record::clock::{self, Nanos};
use record::stamp::{Arrival, StampClass};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Cleartext TCP is kept as its own type, since only there the kernel's stamp can be reached.
#[derive(Debug)]
enum Io {
    Plain(Box<L4Stream>),
    Other(Stream),
}

/// One connection of a tap.
#[derive(Debug)]
pub(crate) struct Socket {
    io: Io,
    /// Before this instant everything that had arrived was read.
    drained: Nanos,
    /// The last poll found nothing.
    waiting: bool,
    /// The next poll asks the socket itself. The runtime asks only while the socket counts as ready:
    /// otherwise a poll finds nothing without a look, and what came since the reactor's last turn
    /// (no longer ago than the thread's lateness) may be there already.
    asks: bool,
    last_kernel: Option<SystemTime>,
    reused: bool,
}

impl Socket {
    /// Wraps a connection as the listener gave it. Its first bytes may have come before it was taken
    /// up: the accept loop and then the connection's own task may each have woken as late as the
    /// probe says that this thread does.
    pub(crate) fn accepted(stream: Stream, kernel_stamps: bool) -> Self {
        let mut socket = Self::new(stream, kernel_stamps, false);
        socket.drained = socket.drained.saturating_sub(2 * lag::bound());
        socket
    }

    /// Wraps a connection as the connector or its pool gave it, or as an upgrade leaves it.
    pub(crate) fn new(stream: Stream, kernel_stamps: bool, reused: bool) -> Self {
        let io = if (*stream).as_any().is::<L4Stream>() {
            match stream.into_any().downcast::<L4Stream>() {
                Ok(mut plain) => {
                    if kernel_stamps && !reused && plain.set_rx_timestamp().is_err() {
                        tracing::debug!("the kernel gives no receive stamps on this socket");
                    }
                    Io::Plain(plain)
                }
                Err(_) => unreachable!("the type was asked for one line above"),
            }
        } else {
            Io::Other(stream)
        };
        Self {
            io,
            drained: clock::now(),
            waiting: false,
            asks: false,
            last_kernel: None,
            reused,
        }
    }

    /// The connection had carried an exchange before this one.
    pub(crate) fn reused(&self) -> bool {
        self.reused
    }

    /// Marks that further exchanges are on a used connection.
    pub(crate) fn mark_reused(&mut self) {
        self.reused = true;
    }

    /// TLS has agreed on HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        match &self.io {
            Io::Plain(_) => false,
            Io::Other(stream) => stream.selected_alpn_proto() == Some(ALPN::H2),
        }
    }

    /// Whatever arrived before this instant has been read.
    pub(crate) fn drained(&self) -> Nanos {
        self.drained
    }

    /// The stamp class of HTTP/1 on this connection.
    pub(crate) fn class(&self) -> StampClass {
        match self.io {
            Io::Plain(_) => StampClass::Socket,
            Io::Other(_) => StampClass::Tls,
        }
    }

    /// The bare connection, for the pool or for HTTP/2.
    pub(crate) fn into_stream(self) -> Stream {
        match self.io {
            Io::Plain(stream) => stream,
            Io::Other(stream) => stream,
        }
    }

    /// Reads into `buffer`; `Ok(0)` is the peer's end. One call is at most one read of the socket.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, Arrival)>> {
        let before = clock::now();
        let room = buffer.len();
        let mut target = ReadBuf::new(buffer);
        let polled = match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_read(cx, &mut target),
            Io::Other(stream) => Pin::new(stream).poll_read(cx, &mut target),
        };
        match polled {
            Poll::Pending => {
                let empty = if self.asks {
                    before
                } else {
                    before.saturating_sub(lag::bound())
                };
                self.drained = self.drained.max(empty);
                self.asks = false;
                self.waiting = true;
                Poll::Pending
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => {
                let count = target.filled().len();
                let arrival = self.arrived(clock::now());
                if let Io::Plain(stream) = &self.io {
                    // Less than there was room for is all there was. Not so under TLS, which gives
                    // one record at a time.
                    if count < room {
                        self.drained = before;
                    }
                    self.asks = count == room || stream.rx_ts.is_some();
                }
                Poll::Ready(Ok((count, arrival)))
            }
        }
    }

    fn arrived(&mut self, at: Nanos) -> Arrival {
        let kernel = self.kernel_stamp();
        let waited = std::mem::take(&mut self.waiting);
        let earliest = if waited {
            self.drained.max(at.saturating_sub(lag::bound()))
        } else {
            self.drained
        };
        // Nothing knows better than the kernel when the last segment came.
        let earliest = kernel.map_or(earliest, |k| earliest.min(k));
        Arrival {
            at,
            earliest: earliest.min(at),
            kernel,
            waited,
        }
    }

    /// The stamp of this read's last segment. The stream keeps the last one for ever, so one that
    /// has not changed is not of this read.
    fn kernel_stamp(&mut self) -> Option<Nanos> {
        let Io::Plain(stream) = &self.io else {
            return None;
        };
        let stamp = stream.rx_ts?;
        if self.last_kernel.replace(stamp) == Some(stamp) {
            return None;
        }
        let wall = stamp.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(lag::monotonic(u64::try_from(wall.as_nanos()).ok()?))
    }

    /// Writes some of `bytes`.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Io::Other(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    /// Brings what TLS holds back onto the socket; nothing to do in cleartext.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(_) => Poll::Ready(Ok(())),
            Io::Other(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    /// Ends the writing side.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Io::Other(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
